/**
 * The whole reporter under a real Playwright (without browsers): a suite is copied into a
 * folder that has the package installed the way a user has it.
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { RunFields } from '../src/run';
import type { TestCaseEntry } from '../src/test-case';
import { installedSuite, playwright } from './playwright-run';
import { field, fileBytes, liveReplies, startService, unpack, type Service } from './service';

describe('a run sent as a batch, under a CommonJS configuration', () => {
  let service: Service;
  let dir: string;
  let finished: Awaited<ReturnType<typeof playwright>>;
  let run: RunFields;
  let cases: TestCaseEntry[];

  before(async () => {
    service = await startService();
    dir = installedSuite('commonjs');
    finished = await playwright(dir, ['-c', 'playwright.config.cjs'], {
      SERVICE_URL: service.url, SERVICE_STREAMING: 'false', SERVICE_LABEL: 'nightly', SERVICE_OUTPUT_FILE: 'out/run.json', CI: '1',
    });
    run = field(service.received[0]!.form, 'testRun');
    cases = field(service.received[0]!.form, 'testCases');
  });

  after(() => service.close());

  const entriesOf = (title: string): TestCaseEntry[] => cases.filter((entry) => entry.title === title);
  const entryOf = (title: string): TestCaseEntry => {
    assert.equal(entriesOf(title).length, 1, title);
    return entriesOf(title)[0]!;
  };

  test('keeps its exit code and says in one line where it is', () => {
    assert.equal(finished.exitCode, 1);
    assert.deepEqual(finished.lines, [`[callboard] run: ${service.url}/test-runs/7`]);
  });

  test('is sent once, then its HTML report', () => {
    assert.deepEqual(service.paths(), ['test-runs/upload', 'test-runs/upload']);
    assert.equal(service.received[1]!.form.get('testRunId'), '7');
    assert.equal(field<RunFields>(service.received[1]!.form, 'testRun').status, 'already-submitted');
  });

  test('the report archive holds the report as it was written', async () => {
    const archive = unpack(await fileBytes(service.received[1]!.form.get('report_html')));
    assert.deepEqual(archive.get('index.html'), readFileSync(path.join(dir, 'report/index.html')));
    assert.ok([...archive.keys()].some((name) => /^data\/[^\\]+$/.test(name)), [...archive.keys()].join());
  });

  test('describes the run in tests, not in attempts', () => {
    const { metadata, startTime, duration, instanceId, clientRunId, ...fixed } = run;
    assert.deepEqual(fixed, {
      projectName: 'sample-shop', status: 'failed', label: 'nightly', isFullRun: true, filterDetails: null,
      totalTests: 7, passedTests: 3, failedTests: 2, timedOutTests: 1, skippedTests: 1, didNotRunTests: 1, flakyTests: 1,
      plannedTests: 7, playwrightVersion: '1.65.1', reporterVersion: '0.1.0',
    });
    assert.ok(Date.parse(startTime) > 0 && duration > 0);
    assert.match(instanceId, /^[0-9a-f]{16}$/);
    assert.match(clientRunId, /^[A-Za-z0-9-]{8,64}$/);
    assert.deepEqual(metadata!['tags'], ['sample']);
    assert.deepEqual(metadata!['customData'], { team: 'core' });
    assert.deepEqual(metadata!['ci'], { provider: 'Unknown CI', detected: true });
  });

  test('secrets of the configuration stay where they are', () => {
    assert.ok(!JSON.stringify([run, cases]).includes('secret'));
  });

  test('has one entry per attempt, each with the history up to it', () => {
    const [first, second] = entriesOf('fails once, with files');
    assert.deepEqual(entriesOf('fails once, with files').map((entry) => [entry.retries, entry.status]), [[0, 'failed'], [1, 'passed']]);
    assert.deepEqual(first!.attempts.map(({ retry, status }) => [retry, status]), [[0, 'failed']]);
    assert.deepEqual(second!.attempts.map(({ retry, status }) => [retry, status]), [[0, 'failed'], [1, 'passed']]);
    assert.equal(second!.attempts[0]!.startedAt, first!.startedAt);
    assert.deepEqual(second!.suitePath, ['Files']);
  });

  test('its files are with their attempts, data of fixtures is not a file', async () => {
    const { form } = service.received[0]!;
    for (const entry of entriesOf('fails once, with files')) {
      const index = cases.indexOf(entry);
      assert.equal((await fileBytes(form.get(`trace_${index}`))).toString(), `trace of attempt ${entry.retries}`);
      assert.deepEqual(field<{ name: string }[]>(form, `attach_meta_${index}`).map(({ name }) => name), [
        'note', ...(entry.status === 'failed' ? ['error-context'] : [])]);
      assert.equal((await fileBytes(form.get(`attach_file_${index}`))).toString(), `note ${entry.retries}`);
    }
  });

  test('a passed test tells its place, steps, tags, annotations, output and browser', () => {
    const { location, status, steps, tags, testAnnotations, stdout, browser, error, testSource, expectedStatus } = entryOf('prints and steps');
    assert.deepEqual(
      { location, status, tags, testAnnotations, stdout, browser, error, testSource, expectedStatus },
      {
        location: 'sample.spec.ts:4:1', status: 'passed', tags: ['fast'], stdout: 'hello from the test\n', error: null,
        testAnnotations: [{ type: 'link', description: 'https://example.com/1' }], testSource: null, expectedStatus: 'passed',
        browser: { projectName: 'plain', browserName: 'chromium', viewport: { width: 800, height: 600 } },
      });
    const titles = steps.map(({ title }) => title);
    assert.equal(titles.indexOf('inner'), titles.indexOf('outer') + 1);
  });

  test('a failed test tells its error, where it is, and the source around it', () => {
    const { error, testSource, testSourceFrames } = entryOf('breaks');
    assert.match(error!, /Received[\s\S]*\n {4}at sample\.spec\.ts:26:20$/);
    assert.match(testSource!, /^\* {3}25 \| {3}test\('breaks'/m);
    assert.match(testSource!, /^> {3}26 \| {5}expect\('left'\)/m);
    assert.deepEqual(testSourceFrames.map(({ file, line }) => [file, line]), [['sample.spec.ts', 26]]);
  });

  test('a test that never got its turn did not run, and says which failure blocked it', () => {
    const { status, didNotRunReason, blockedBy, suiteConfig } = entryOf('comes after');
    assert.deepEqual({ status, didNotRunReason, blockedBy, suiteConfig }, {
      status: 'didnotrun', didNotRunReason: 'previous-failure', blockedBy: 'sample.spec.ts:25:3',
      suiteConfig: [{ mode: 'serial', annotations: [] }],
    });
    assert.equal(entryOf('is skipped').status, 'skipped');
  });

  test('an expected failure is sent as it happened, with what was expected', () => {
    const { status, expectedStatus } = entryOf('fails as expected');
    assert.deepEqual({ status, expectedStatus }, { status: 'failed', expectedStatus: 'failed' });
  });

  test('a timed-out test names the step it was stuck in', () => {
    const [entry] = entriesOf('hangs');
    assert.equal(entry!.status, 'timedOut');
    assert.equal(entry!.timeout, 600);
    assert.equal(entry!.slowestStep, 'waits for nothing');
    assert.ok(entry!.slowestStepDuration! > 0);
    assert.match(entry!.error!, /Test timeout of 600ms exceeded[\s\S]*\n {4}at sample\.spec\.ts:41:\d+$/);
  });

  test('leaves a file for later steps of the pipeline', () => {
    assert.deepEqual(JSON.parse(readFileSync(path.join(dir, 'out/run.json'), 'utf8')), {
      runUrl: `${service.url}/test-runs/7`, runId: 7, projectId: 3, projectName: 'sample-shop', status: 'failed', ciBuildUrl: null,
    });
  });
});

describe('a run under an ES module configuration', () => {
  const only = ['-c', 'playwright.config.mjs', '-g', 'prints and steps'];

  test('is sent, and leaves the JSON another reporter prints on stdout readable', async () => {
    const service = await startService();
    const dir = installedSuite('module');
    const { exitCode, stdout, lines } = await playwright(dir, only, { SERVICE_URL: service.url, SERVICE_STREAMING: '0' });
    await service.close();
    assert.equal(exitCode, 0);
    assert.deepEqual(service.paths(), ['test-runs/submit']);
    assert.deepEqual(service.received[0]!.json['filterDetails'], { grep: 'prints and steps' });
    assert.equal((JSON.parse(stdout) as { stats: { expected: number } }).stats.expected, 1);
    assert.equal(lines.length, 1);
  });

  test('a service that does not stream gets the run as a batch', async () => {
    const service = await startService(({ path: where }) => (where.endsWith('/start') ? { status: 404, body: {} } : {}));
    const { lines } = await playwright(installedSuite('module'), only, { SERVICE_URL: service.url });
    await service.close();
    assert.deepEqual(service.paths(), ['test-runs/start', 'test-runs/submit']);
    assert.deepEqual(lines, [`[callboard] run: ${service.url}/test-runs/7`]);
  });

  test('repetitions are one test, as its page counts them', async () => {
    const service = await startService();
    const repeated = ['-c', 'playwright.config.cjs', '-g', 'prints and steps|fails once', '--repeat-each=3'];
    await playwright(installedSuite('commonjs'), repeated, { SERVICE_URL: service.url, SERVICE_STREAMING: '0' });
    await service.close();
    const { totalTests, plannedTests, passedTests, flakyTests } = field<RunFields>(service.received[0]!.form, 'testRun');
    assert.deepEqual({ totalTests, plannedTests, passedTests, flakyTests }, { totalTests: 2, plannedTests: 2, passedTests: 2, flakyTests: 1 });
    assert.equal(field<TestCaseEntry[]>(service.received[0]!.form, 'testCases').length, 9);
  });

  test('listing tests, and running them without an address, sends and says nothing', async () => {
    const service = await startService();
    const dir = installedSuite('module');
    const listed = await playwright(dir, [...only, '--list'], { SERVICE_URL: service.url });
    const off = await playwright(dir, only);
    await service.close();
    assert.deepEqual([...listed.lines, ...off.lines], []);
    assert.deepEqual(service.received, []);
  });

  test('a misspelt address is told from none', async () => {
    const dir = installedSuite('module');
    writeFileSync(path.join(dir, 'misspelt.config.mjs'), "export default { reporter: [['dot'], ['callboard-reporter', { serverURL: 'http://a.example' }]] };");
    const { exitCode, lines } = await playwright(dir, ['-c', 'misspelt.config.mjs', '-g', 'prints and steps']);
    assert.equal(exitCode, 0);
    assert.deepEqual(lines, ['[callboard] there is no option "serverURL", did you mean "serverUrl"?']);
  });
});

describe('a run with options that cannot be used, and a report by a reporter listed after this one', () => {
  let service: Service;
  let finished: Awaited<ReturnType<typeof playwright>>;
  let summary: string;

  before(async () => {
    service = await startService(liveReplies());
    const dir = installedSuite('commonjs');
    writeFileSync(path.join(dir, 'occupied'), '');
    finished = await playwright(dir, ['-c', 'late.config.cjs', '-g', 'prints and steps'], {
      SERVICE_URL: service.url, SERVICE_OUTPUT_FILE: 'occupied/run.json', GITHUB_STEP_SUMMARY: path.join(dir, 'summary.md'), CI: '1',
    });
    summary = readFileSync(path.join(dir, 'summary.md'), 'utf8');
  });

  after(() => service.close());

  test('arrives, and says once what could not be done', () => {
    assert.equal(finished.exitCode, 0);
    assert.deepEqual(finished.lines.map((line) => line.replace(/: ENOTDIR.*|: EEXIST.*/, '')), [
      `[callboard] live: ${service.url}/test-runs/7`,
      '[callboard] the option "customData" must be an object that can be written as JSON, got an object',
      '[callboard] there is no option "colour"',
      `[callboard] run: ${service.url}/test-runs/7`,
      '[callboard] the file of the option outputFile could not be written',
    ]);
    assert.match(summary, /run 7/);
  });

  test('the report is sent when it is complete, and once', async () => {
    const reports = service.received.filter(({ form }) => form.has('report_late'));
    assert.equal(reports.length, 1);
    const archive = unpack(await fileBytes(reports[0]!.form.get('report_late')));
    assert.deepEqual([...archive.keys()].sort(), ['results.txt', 'summary.txt']);
  });
});

describe('a run that stops at its first failure while another test goes on', () => {
  let summary: string;
  let cases: TestCaseEntry[];

  before(async () => {
    const service = await startService();
    const dir = installedSuite('commonjs', 'stopped');
    await playwright(dir, ['-c', 'stopped.config.cjs'], {
      SERVICE_URL: service.url, SERVICE_STREAMING: 'false', GITHUB_STEP_SUMMARY: path.join(dir, 'summary.md'), CI: '1',
    });
    await service.close();
    summary = readFileSync(path.join(dir, 'summary.md'), 'utf8');
    cases = field(service.received[0]!.form, 'testCases');
  });

  test('is counted as its page counts it', () => {
    assert.deepEqual(cases.map(({ title, status }) => `${title}: ${status}`).sort(), [
      'comes after: didnotrun', 'fails: failed', 'fails: failed', 'goes on: failed', 'goes on: interrupted', 'is skipped, if it has its turn: didnotrun']);
    assert.match(summary, /\| Failed \| Flaky \| Skipped \| Did not run \| Interrupted \|/);
    assert.match(summary, /\| failed \| 4 \| 0 \| 2 \| 0 \| 0 \| 2 \| 0 \|/);
  });

  test('what was printed says how much is missing, in the room the service has for it', () => {
    const { stdout } = cases.find(({ title, status }) => title === 'goes on' && status === 'interrupted')!;
    assert.equal(stdout, `${'x'.repeat(19_960)}\n[truncated 10041 chars]`);
    assert.ok(stdout.length <= 20_000);
  });
});
