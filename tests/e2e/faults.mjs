/**
 * Runs over a line that does harm: each kind of call meets each fault, and the
 * run that is stored in the end is the one that would have been stored without. Needs
 * `CALLBOARD_URL`; no browser.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { cuttableLine } from './support/cuttable-line.mjs';
import { TRANSIENT_FAULTS, faultyLine } from './support/faulty-line.mjs';
import { callboardReporter, countingDir, linesOfReporter, startPlaywright } from './support/playwright-run.mjs';
import { getAll, getBytes, getJson, reporterEnvironment, serviceUrl, sha256 } from './support/service.mjs';

if (!serviceUrl) {
  throw new Error('CALLBOARD_URL must name the running service, for instance CALLBOARD_URL=http://127.0.0.1:3000');
}

const scratch = mkdtempSync(path.join(tmpdir(), 'callboard-e2e-'));
after(() => rm(scratch, { recursive: true, force: true }));

const SUITE = ['files', '--project=one', '--retries=1', '--reporter=html,callboard-reporter'];
/** Kinds of calls of a run. */
const CALLS = ['start', 'events', 'case-files', 'finish', 'upload'];

function sent(url, env = {}) {
  const name = randomUUID();
  const settings = {
    ...reporterEnvironment(), SERVICE_URL: url, SERVICE_PROJECT_NAME: `faults ${name.slice(0, 8)}`, SERVICE_STREAMING_BATCH_DELAY: '20',
    SERVICE_STREAMING_BATCH_SIZE: '4', SERVICE_SPOOL_DIR: path.join(scratch, name, 'spool'), COUNTING_PAUSE_MS: '300',
    PLAYWRIGHT_HTML_OUTPUT_DIR: path.join(scratch, name, 'report'), PLAYWRIGHT_HTML_OPEN: 'never', ...env,
  };
  const running = startPlaywright([...SUITE, `--output=${path.join(scratch, name, 'results')}`], settings, countingDir);
  return { settings, running };
}

/** The only run of the project, as far as two runs of the same tests are alike. */
async function storedRun({ SERVICE_PROJECT_NAME: projectName }) {
  const project = (await getAll('/api/projects')).find(({ name }) => name === projectName);
  assert.ok(project, `${projectName} was stored`);
  const runs = await getAll(`/api/projects/${project.id}/test-runs`);
  assert.equal(runs.length, 1, 'one run');
  const run = await getJson(`/api/test-runs/${runs[0].id}`);
  const executions = await getAll(`/api/test-runs/${run.id}/executions`);
  const tests = await Promise.all(executions.map(async ({ id, title, status, flaky, retries, error }) => {
    const { attempts, evidence } = await getJson(`/api/test-run-cases/${id}`);
    const files = await getAll(`/api/test-run-cases/${id}/files`);
    return {
      title, status, flaky, retries, error, attempts: attempts.map(({ retry, status: how }) => [retry, how]),
      steps: evidence?.steps?.map((step) => step.title), source: evidence?.testSource,
      files: await Promise.all(files.map(async (file) =>
        [file.attempt?.retry, file.name, sha256(await getBytes(`/api/files/${file.id}?download=1`))].join(' '))).then((all) => all.sort()),
    };
  }));
  const reports = await getJson(`/api/test-runs/${run.id}/reports`);
  const { status, totalTests, passedTests, failedTests, flakyTests, skippedTests, didNotRunTests, isFullRun, totalsSource } = run;
  return {
    run: { status, totalTests, passedTests, failedTests, flakyTests, skippedTests, didNotRunTests, isFullRun, totalsSource },
    reports: reports.items.map(({ type, label }) => `${type} ${label}`),
    tests: tests.sort((one, other) => one.title.localeCompare(other.title)),
  };
}

/** A line of this test alone, closed behind it. */
async function faulty(context) {
  const line = await faultyLine(serviceUrl);
  context.after(() => line.close());
  return line;
}

async function cuttable(context) {
  const line = await cuttableLine(serviceUrl);
  context.after(() => line.close());
  return line;
}

async function spooled({ SERVICE_SPOOL_DIR: dir }) {
  const names = await readdir(dir, { recursive: true }).catch(() => []);
  return names.filter((name) => name.endsWith('.json.gz'));
}

let whole;

before(async () => {
  const { settings, running } = sent(serviceUrl);
  assert.equal((await running.finished).exitCode, 1);
  whole = await storedRun(settings);
  assert.deepEqual([whole.run.totalTests, whole.run.flakyTests, whole.run.failedTests, whole.run.status], [5, 1, 1, 'failed']);
  assert.deepEqual(whole.reports, ['html HTML Report']);
  assert.equal(whole.tests.find(({ title }) => title === 'leaves files and recovers').files.length, 5);
});

// Most of each of these is waiting, and each has its own line: a few at once disturb nobody.
describe('a run whose every kind of call meets a fault', { concurrency: 4 }, () => {
  for (const fault of TRANSIENT_FAULTS) {
    test(fault, async (context) => {
      const line = await faulty(context);
      line.with((name, count) => (CALLS.includes(name) && count <= 2 ? fault : undefined));
      const { settings, running } = sent(line.url);
      const { exitCode, output } = await running.finished;
      assert.equal(exitCode, 1, 'the exit code is that of the tests');
      assert.deepEqual(CALLS.filter((call) => !line.calls.includes(call)), [], `calls that were not made: ${line.calls.join()}`);
      assert.deepEqual(await storedRun(settings), whole, linesOfReporter(output).join('\n'));
      assert.deepEqual(await spooled(settings), []);
    });
  }

  // A set-up that stays unknown is made up for by a start; only one that is known is begun.
  for (const call of ['setup', 'begin']) {
    for (const fault of ['cut on the way back', 'answered 500']) {
      test(`${call} of a run that is registered before its set-up, ${fault}`, async (context) => {
        const line = await faulty(context);
        line.with((name, count) => (name === call && count <= 2 ? fault : undefined));
        const { settings, running } = sent(line.url, { COUNTING_SETUP: '1' });
        const { output } = await running.finished;
        assert.ok(line.calls.includes(call), line.calls.join());
        assert.deepEqual(await storedRun(settings), whole, linesOfReporter(output).join('\n'));
      });
    }
  }

  test('every second call of any kind', async (context) => {
    const line = await faulty(context);
    const kinds = TRANSIENT_FAULTS.filter((name) => name !== 'slow');
    line.with((name, count, number) => (number % 2 === 0 ? kinds[(number / 2) % kinds.length] : undefined));
    const { settings, running } = sent(line.url);
    const { output } = await running.finished;
    assert.deepEqual(await storedRun(settings), whole, linesOfReporter(output).join('\n'));
  });
});

/** What happens on the way of a file that is uploaded by itself, and how often it does. */
const UPLOAD_FAULTS = [
  ['plan', 'answered 403', 1],
  ['plan', 'answered 503', 2],
  ['plan', 'cut on the way back', 2],
  ['put', 'cut at 60 %', 2],
  ['put', 'answered 503', 2],
  ['put', 'cut on the way back', 2],
  ['commit', 'cut on the way back', 2],
  ['commit', 'done and answered 502', 2],
  ['plan', 'answered 404', Infinity],
  ['start', 'answered without capabilities', Infinity],
];

describe('a run with large files', { concurrency: 4 }, () => {
  const LARGE = { COUNTING_LARGE_BYTES: String(3 * 1024 * 1024) };
  /** Names that the reporter must not need to explain what happened. */
  const UNREADABLE = /undefined|\[object|\bE[A-Z]{4,}\b|\n\s+at /;
  let wholeLarge;

  before(async () => {
    const { settings, running } = sent(serviceUrl, LARGE);
    await running.finished;
    wholeLarge = await storedRun(settings);
    assert.equal(wholeLarge.tests.find(({ title }) => title === 'leaves files and recovers').files.length, 9);
  });

  for (const [call, fault, times] of UPLOAD_FAULTS) {
    test(`whose ${call} is ${fault}`, async (context) => {
      const line = await faulty(context);
      line.with((name, count) => (name === call && count <= times ? fault : undefined));
      const { settings, running } = sent(line.url, LARGE);
      const { exitCode, output } = await running.finished;
      const said = linesOfReporter(output);
      assert.equal(exitCode, 1, 'the exit code is that of the tests');
      assert.ok(line.calls.includes(call), `${call} was not made: ${line.calls.join()}`);
      assert.deepEqual(await storedRun(settings), wholeLarge, said.join('\n'));
      assert.deepEqual(await spooled(settings), []);
      assert.equal(line.calls.includes('commit'), times !== Infinity, 'large files go by themselves where the service takes them');
      assert.doesNotMatch(said.join('\n'), UNREADABLE);
    });
  }

  test('whose uploads never arrive keeps them until somebody flushes', async (context) => {
    const line = await faulty(context);
    line.with((name) => (name === 'put' ? 'cut at 60 %' : undefined));
    const { settings, running } = sent(line.url, { ...LARGE, SERVICE_FINALIZE_TIMEOUT: '8000' });
    const { output } = await running.finished;
    assert.doesNotMatch(linesOfReporter(output).join('\n'), UNREADABLE);
    assert.equal((await spooled(settings)).length, 1, linesOfReporter(output).join('\n'));
    line.with(() => undefined);
    const flushed = await callboardReporter(['flush'], settings, countingDir);
    assert.equal(flushed.exitCode, 0, flushed.output);
    assert.deepEqual(await storedRun(settings), wholeLarge, flushed.output);
    assert.deepEqual(await spooled(settings), []);
  });
});

describe('a service that is away', { concurrency: 3 }, () => {
  test('when the tests begin, and back before they end', async (context) => {
    const line = await cuttable(context);
    line.cut();
    const { settings, running } = sent(line.url, { COUNTING_PAUSE_MS: '8000' });
    setTimeout(() => line.mend(), 1_000);
    const { output } = await running.finished;
    assert.deepEqual(await storedRun(settings), whole, linesOfReporter(output).join('\n'));
    assert.deepEqual(await spooled(settings), []);
  });

  test('when the tests end, and back a moment later', async (context) => {
    const line = await cuttable(context);
    const { settings, running } = sent(line.url, { COUNTING_PAUSE_MS: '1500' });
    await running.line(/^\[callboard\] live: /);
    setTimeout(() => line.cut(), 1_500);
    setTimeout(() => line.mend(), 4_500);
    const { output } = await running.finished;
    assert.deepEqual(await storedRun(settings), whole, linesOfReporter(output).join('\n'));
    assert.deepEqual(await spooled(settings), []);
  });

  test('from the middle on, until somebody flushes what was kept', async (context) => {
    const line = await cuttable(context);
    const { settings, running } = sent(line.url, { COUNTING_PAUSE_MS: '3000', SERVICE_FINALIZE_TIMEOUT: '1500' });
    await running.line(/^\[callboard\] live: /);
    await line.traffic();
    line.cut();
    const { exitCode, output } = await running.finished;
    assert.equal(exitCode, 1);
    assert.match(linesOfReporter(output).at(-1), /offline, spooled to .*\.json\.gz$/);
    line.mend();
    const flushed = await callboardReporter(['flush'], settings, countingDir);
    assert.equal(flushed.exitCode, 0, flushed.output);
    const stored = await storedRun(settings);
    // The report was written when nobody could be told which run it belongs to.
    assert.deepEqual({ ...stored, reports: whole.reports }, whole);
    assert.deepEqual(await spooled(settings), []);
  });
});

test('what a killed client was told is stored stays', async () => {
  const { settings, running } = sent(serviceUrl, { COUNTING_PAUSE_MS: '60000' });
  const runId = Number(/\/test-runs\/(\d+)/.exec(await running.line(/^\[callboard\] live: /))[1]);
  let run;
  do {
    run = await getJson(`/api/test-runs/${runId}`);
  } while (run.totalTests < 4);
  running.signal('SIGKILL');
  await running.finished;
  const executions = await getAll(`/api/test-runs/${runId}/executions`);
  const titles = whole.tests.map(({ title }) => title).filter((title) => title !== 'takes its time');
  assert.deepEqual(executions.map(({ title }) => title).sort(), titles.sort());
  assert.equal((await getJson(`/api/test-runs/${runId}`)).status, 'running', 'it may come back for two minutes');
  assert.ok(settings.SERVICE_PROJECT_NAME);
});
