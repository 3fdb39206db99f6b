/** Streamed runs under a real Playwright: what arrives when, and what happens when it cannot. */
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import type { RunFields } from '../src/run';
import type { TestCaseEntry } from '../src/test-case';
import { callboard, installedSuite, playwright, type Finished } from './playwright-run';
import { ACCEPTED, eventsOf, field, fileBytes, liveReplies, startService, STREAM_TOKEN, unpack, type Received, type Reply, type Service } from './service';

const COMMONJS = ['-c', 'playwright.config.cjs'];
const ONE = ['-c', 'playwright.config.mjs', '-g', 'prints and steps'];

async function withService(
  reply: (request: Received, count: number) => Reply, check: (service: Service) => Promise<void>,
): Promise<void> {
  const service = await startService(reply);
  try {
    await check(service);
  } finally {
    await service.close();
  }
}

/** A failing test as the service lists it. */
const FAILING = { id: 12, title: 'adds [2]', suitePath: ['Cart'], browserProject: 'plain', error: 'expected 3, received 4' };

describe('a streamed run', () => {
  let service: Service;
  let dir: string;
  let finished: Finished;

  before(async () => {
    service = await startService(liveReplies(({ path: asked }) =>
      asked.includes('/executions?') ? { body: { items: [FAILING, FAILING], total: 3, nextCursor: 'x' } } : undefined));
    dir = installedSuite('commonjs');
    mkdirSync(path.join(dir, 'ci'));
    finished = await playwright(dir, COMMONJS, {
      SERVICE_URL: service.url, SERVICE_API_KEY: 'pd_1', CI: '1', SERVICE_OUTPUT_FILE: 'ci/run.json',
      GITHUB_ACTIONS: 'true', GITHUB_OUTPUT: path.join(dir, 'ci/output'), GITHUB_STEP_SUMMARY: path.join(dir, 'ci/summary.md'),
    });
  });

  after(() => service.close());

  const requests = (call: string): Received[] => service.received.filter((request) => request.path.endsWith(`/${call}`));

  test('is opened, fed, finished, and then gets its report', () => {
    const calls = service.paths().map((each) => each.replace('test-runs/', ''));
    assert.equal(calls.pop(), '7/executions?outcome=failing&limit=20');
    assert.equal(calls[0], 'start');
    assert.deepEqual(calls.slice(-2), ['7/finish', 'upload']);
    assert.deepEqual([...new Set(calls.slice(1, -2))].sort(), ['7/case-files', '7/events']);
    const { form } = requests('upload')[0]!;
    assert.deepEqual([...form.keys()], ['testRunId', 'projectName', 'clientRunId', 'testRun', 'testCases', 'report_html']);
    assert.deepEqual([form.get('testRunId'), form.get('clientRunId')], ['7', requests('start')[0]!.json['clientRunId']]);
  });

  test('says where it is at the beginning and at the end, and keeps its exit code', () => {
    assert.equal(finished.exitCode, 1);
    assert.deepEqual(finished.lines, [
      `[callboard] live: ${service.url}/test-runs/7`, `[callboard] run: ${service.url}/test-runs/7`]);
  });

  test('identifies itself by the key at first and by the token of the run from then on', () => {
    assert.equal(requests('start')[0]!.headers.authorization, 'Bearer pd_1');
    for (const { json, form, headers } of [...requests('events'), ...requests('case-files'), ...requests('finish')]) {
      assert.equal(json['streamToken'] ?? form.get('streamToken'), STREAM_TOKEN);
      assert.equal(headers.authorization, undefined);
    }
  });

  test('tells of every attempt once, and of tests and steps as they begin', () => {
    const completed = eventsOf<TestCaseEntry>(service, 'complete');
    assert.deepEqual(completed.map(({ title, retries, status }) => `${title} ${retries} ${status}`).sort(), [
      'breaks 0 failed', 'comes after 0 didnotrun', 'fails as expected 0 failed', 'fails once, with files 0 failed',
      'fails once, with files 1 passed', 'hangs 0 timedOut', 'hangs 1 timedOut', 'is skipped 0 skipped', 'prints and steps 0 passed']);
    assert.equal(eventsOf(service, 'begin').length, completed.length);
    const steps = eventsOf<{ title: string; parentTitle: string; status?: string }>(service, 'step-end');
    assert.deepEqual(
      steps.filter(({ parentTitle }) => parentTitle === 'prints and steps').map(({ title, status }) => [title, status]), [['outer', 'passed']]);
    const blocked = completed.find(({ title }) => title === 'comes after')!;
    assert.deepEqual([blocked.didNotRunReason, blocked.blockedBy], ['previous-failure', 'sample.spec.ts:25:3']);
  });

  test('sends files to their attempts with the hash of the trace', async () => {
    const own = requests('case-files').filter(({ form }) => field<{ title: string }>(form, 'testCase').title === 'fails once, with files');
    const ofRetry = (retry: number): FormData | undefined =>
      own.find(({ form }) => field<{ retries: number }>(form, 'testCase').retries === retry)?.form;
    assert.equal(own.length, 2);
    assert.equal((await fileBytes(ofRetry(0)!.get('trace'))).toString(), 'trace of attempt 0');
    const form = ofRetry(1)!;
    assert.deepEqual(field(form, 'testCase'), {
      title: 'fails once, with files', location: 'sample.spec.ts:12:3', retries: 1, suitePath: ['Files'], repeatEachIndex: 0,
      browserProject: 'plain',
    });
    assert.equal((await fileBytes(form.get('trace'))).toString(), 'trace of attempt 1');
    assert.match(String(form.get('trace_hash')), /^[0-9a-f]{64}$/);
    assert.deepEqual(field<{ name: string }[]>(form, 'attach_meta').map(({ name }) => name), ['note']);
  });

  test('what fixtures captured is part of the result, and of no file or report', () => {
    const attempt = eventsOf<TestCaseEntry>(service, 'complete').find(({ title }) => title === 'fails once, with files')!;
    assert.deepEqual(attempt.consoleLogs, [{ type: 'error', text: 'oh', timestamp: 1, location: null }]);
    const names = requests('case-files').flatMap(({ form }) => field<{ name: string }[] | null>(form, 'attach_meta') ?? []).map(({ name }) => name);
    assert.ok(!names.some((name) => name.includes('callboard')), names.join());
  });

  test('finishes with what is known only then', () => {
    const { json } = requests('finish')[0]!;
    assert.equal(json['status'], 'failed');
    assert.equal(json['hasPendingUploads'], true);
    assert.ok(Number(json['duration']) > 0);
    assert.ok('performance' in (json['metadata'] as object));
    assert.equal(json['clientRunId'], requests('start')[0]!.json['clientRunId']);
  });

  test('leaves its address for later steps of the pipeline', () => {
    const read = (name: string): string => readFileSync(path.join(dir, 'ci', name), 'utf8');
    assert.equal((JSON.parse(read('run.json')) as RunFields).status, 'failed');
    assert.equal(read('output'),
      `callboard_run_url=${service.url}/test-runs/7\ncallboard_run_id=7\ncallboard_run_status=failed\ncallboard_project_id=3\n`);
    assert.match(read('summary.md'), /\| failed \| 7 \| 2 \| 2 \| 1 \| 1 \| 1 \|/);
    const line = `- [\`Cart › adds [2]\`](${service.url}/test-run-cases/12) (\`plain\`): \`expected 3, received 4\``;
    assert.deepEqual(read('summary.md').split('\n').filter((each) => each.startsWith('- ')), [
      line, line, `- [and 1 more](${service.url}/test-runs/7?outcome=failing)`]);
    assert.match(finished.stdout, /^::notice title=Callboard::sample-shop: http/m);
  });
});

test('a run registered before global setup is continued, and the setup works as it did', () => withService(
  liveReplies(), async (service) => {
    const { exitCode, stdout } = await playwright(installedSuite('commonjs'), ['-c', 'setup.config.cjs', '-g', 'prints'], { SERVICE_URL: service.url });
    assert.equal(exitCode, 0);
    assert.match(stdout, /torn down/);
    assert.deepEqual(service.paths().filter((each) => !each.endsWith('events')), ['test-runs/setup', 'test-runs/7/begin', 'test-runs/7/finish']);
    const [setup, begin] = service.received;
    assert.equal(begin!.json['setupToken'], 'e'.repeat(64));
    assert.equal(begin!.json['clientRunId'], setup!.json['clientRunId']);
    const steps = service.received.at(-1)!.json['setupSteps'] as { title: string; status: string }[];
    assert.deepEqual(steps.map(({ title, status }) => [title, status]), [['global setup', 'passed']]);
  }));

test('a setup token that was used up leads to a new start', () => withService(
  liveReplies(({ path: where }) => (where.endsWith('/begin') ? { status: 409, body: { code: 'begin_not_possible' } } : undefined)),
  async (service) => {
    await playwright(installedSuite('commonjs'), ['-c', 'setup.config.cjs', '-g', 'prints'], { SERVICE_URL: service.url });
    assert.deepEqual(service.paths().slice(0, 3), ['test-runs/setup', 'test-runs/7/begin', 'test-runs/start']);
    assert.equal(service.paths().at(-1), 'test-runs/7/finish');
  }));

test('a test declared with callboardTest is where it was declared', () => withService(liveReplies(), async (service) => {
  const { exitCode } = await playwright(installedSuite('module'), ['-c', 'playwright.config.mjs', 'captured'], { SERVICE_URL: service.url });
  assert.equal(exitCode, 0);
  assert.deepEqual(eventsOf<TestCaseEntry>(service, 'complete').map(({ title, location }) => [title, location]), [
    ['with a test of the package', 'captured.spec.ts:3:1']]);
}));

for (const [status, code] of [[401, 'missing_token'], [403, 'token_revoked'], [404, 'run_not_found'], [409, 'run_finished']] as const) {
  test(`when events are answered ${status}, the run is sent as a batch under the same id`, () => withService(
    liveReplies(({ path: where }) => (where.endsWith('/events') ? { status, body: { code } } : undefined)),
    async (service) => {
      const { exitCode, lines } = await playwright(installedSuite('module'), ONE, { SERVICE_URL: service.url });
      assert.equal(exitCode, 0);
      assert.deepEqual(service.paths(), ['test-runs/start', 'test-runs/7/events', 'test-runs/submit']);
      const batch = service.received.at(-1)!.json;
      assert.equal(batch['clientRunId'], service.received[0]!.json['clientRunId']);
      assert.deepEqual((batch['testCases'] as TestCaseEntry[]).map(({ title }) => title), ['prints and steps']);
      assert.equal(lines.at(-1), `[callboard] run: ${service.url}/test-runs/7`);
    }));
}

test('a run that cannot be finished is sent as a batch, without repeating what is there', () => withService(
  liveReplies(({ path: where }) => (where.endsWith('/finish') ? { status: 409, body: { code: 'run_finished' } } : undefined)),
  async (service) => {
    await playwright(installedSuite('commonjs'), COMMONJS, { SERVICE_URL: service.url });
    const batch = service.received.filter(({ path: where }) => where.endsWith('/submit'));
    assert.equal(batch.length, 1);
    const cases = batch[0]!.json['testCases'] as TestCaseEntry[];
    assert.equal(cases.length, 9);
    assert.ok(cases.every((each) => each.steps === undefined && each.title && each.status));
    const files = service.received.filter(({ form }) => [...form.keys()].some((name) => name.startsWith('attach_file_')));
    assert.equal(files.length, 0);
  }));

test('a result the service fails on waits alone, the run is finished', () => withService(
  liveReplies(({ path: where, json }) => (where.endsWith('/events') && JSON.stringify(json['testCases']).includes('"title":"fails once, with files"')
    ? { status: 500, headers: { 'retry-after': '0' }, body: {} } : undefined)),
  async (service) => {
    const dir = installedSuite('commonjs');
    const { lines } = await playwright(dir, [...COMMONJS, '-g', 'prints and steps|fails once'], { SERVICE_URL: service.url, SERVICE_STREAMING_BATCH_SIZE: '50' });
    assert.equal(service.paths().filter((each) => each.endsWith('/finish')).length, 1);
    assert.ok(!service.paths().includes('test-runs/submit'));
    assert.match(lines.join('\n'), /[12] results and \d files are left, spooled to/);
    assert.match(lines.join('\n'), /run: http/);
    const [entry] = readdirSync(path.join(dir, 'spool'), { recursive: true }).map(String).filter((name) => name.endsWith('.json.gz'));
    const { testCases } = JSON.parse(gunzipSync(readFileSync(path.join(dir, 'spool', entry!))).toString('utf8')) as { testCases: TestCaseEntry[] };
    assert.deepEqual([...new Set(testCases.map(({ title }) => title))], ['fails once, with files']);
    assert.ok(testCases.every(({ steps }) => steps !== undefined), 'with all that is known');
  }));

test('tests and steps without a title are told by the same placeholder everywhere', () => withService(
  liveReplies(), async (service) => {
    const dir = installedSuite('module');
    writeFileSync(path.join(dir, 'untitled.spec.ts'), `import { test } from '@playwright/test';
      test.describe.configure({ mode: 'serial' });
      test('', async ({}, info) => {
        await test.step('', async () => {});
        await info.attach('note', { body: 'x' });
        throw new Error('no');
      });
      test.describe('later', () => void test(' ', () => {}));`);
    await playwright(dir, ['-c', 'playwright.config.mjs', 'untitled'], { SERVICE_URL: service.url });
    const completed = eventsOf<TestCaseEntry>(service, 'complete').map(({ title, status }) => [title, status]);
    assert.deepEqual(completed, [['(no title)', 'failed'], ['(no title)', 'didnotrun']]);
    assert.ok(eventsOf<TestCaseEntry>(service, 'begin').every(({ title }) => title === '(no title)'));
    const steps = eventsOf<{ title: string; parentTitle: string }>(service, 'step-end').map(({ title, parentTitle }) => [title, parentTitle]);
    assert.deepEqual(steps, [['(no title)', '(no title)']]);
    const files = service.received.filter(({ path: where }) => where.endsWith('/case-files'));
    assert.deepEqual(files.map(({ form }) => field<{ title: string }>(form, 'testCase').title), ['(no title)']);
  }));

test('what the service left out is said in one line, and all of it with verbose', () => withService(
  liveReplies(({ path: where }) => {
    const warnings = where.endsWith('/events') ? [{ code: 'field_dropped', message: 'duration must be a number, got text; the field was left out.', index: 3 }]
      : where.endsWith('/case-files') ? [{ code: 'file_ignored', message: '4 attachments were ignored.' }, { code: 'field_dropped', message: 'trace_hash was left out.' }]
      : undefined;
    return warnings && { body: { ...ACCEPTED, warnings } };
  }),
  async (service) => {
    const args = [...COMMONJS, '-g', 'fails once', '--retries=0'];
    const env = { SERVICE_URL: service.url, SERVICE_UPLOAD_REPORT: '0', SERVICE_STREAMING_BATCH_SIZE: '50', SERVICE_STREAMING_BATCH_DELAY: '60000' };
    const { lines } = await playwright(installedSuite('commonjs'), args, env);
    assert.deepEqual(lines.slice(-2), [
      `[callboard] run: ${service.url}/test-runs/7`,
      '[callboard] the service left out or read leniently: 2 field_dropped, 1 file_ignored; first: duration must be a number, got text; the field was left out.',
    ]);
    const { stdout } = await playwright(installedSuite('commonjs'), args, { ...env, SERVICE_VERBOSE: '1' });
    for (const said of ['(entry 3): duration must be', '4 attachments were ignored. (file_ignored)', 'trace_hash was left out. (field_dropped)']) {
      assert.ok(stdout.includes(said), stdout);
    }
  }));

test('a busy service is asked again and gets every event once', () => withService(
  liveReplies((_, count) => (count === 1 || count === 3 ? { status: 503, headers: { 'retry-after': '0' }, body: {} } : undefined)),
  async (service) => {
    await playwright(installedSuite('module'), ONE, { SERVICE_URL: service.url });
    assert.deepEqual(service.paths(), ['test-runs/start', 'test-runs/start', 'test-runs/7/events', 'test-runs/7/events', 'test-runs/7/finish']);
    assert.deepEqual(service.received[2]!.json, service.received[3]!.json);
  }));

describe('a service that does not take the run', () => {
  const spooled = (dir: string): string[] => {
    try {
      return readdirSync(path.join(dir, 'spool'), { recursive: true }).map(String).filter((name) => name.endsWith('.json.gz'));
    } catch {
      return [];
    }
  };

  for (const [title, reply, said] of [
    ['is down', undefined, /offline, spooled to/],
    ['answers 500', { status: 500, body: {} }, /^\[callboard\] offline, spooled to .*\.json\.gz$/],
    ['answers 401', { status: 401, body: { message: 'No key.' } }, /failed: HTTP 401: No key\. \(set apiKey or SERVICE_API_KEY.*spooled to/],
    ['hangs', { hangs: true }, /offline, spooled to/],
  ] as const) {
    test(`and ${title}: the exit code stays, the run is spooled, the next start delivers it once`, async () => {
      const broken = await startService(() => reply ?? {});
      if (!reply) await broken.close();
      const dir = installedSuite('module');
      const { exitCode, lines } = await playwright(dir, ONE, { SERVICE_URL: broken.url, SERVICE_FINALIZE_TIMEOUT: '600' });
      const { port } = new URL(broken.url);
      if (reply) await broken.close();
      assert.equal(exitCode, 0);
      assert.equal(lines.length, 1, lines.join('\n'));
      assert.match(lines[0]!, said);
      assert.equal(spooled(dir).length, 1);

      const service = await startService(liveReplies(), Number(port));
      const next = await playwright(dir, ONE, { SERVICE_URL: service.url });
      await playwright(dir, ONE, { SERVICE_URL: service.url });
      await service.close();
      assert.equal(next.exitCode, 0);
      const batches = service.received.filter(({ path: where }) => where.endsWith('/submit'));
      assert.equal(batches.length, 1);
      const ids = service.received.filter(({ path: where }) => where.endsWith('/start')).map(({ json }) => json['clientRunId']);
      assert.ok(!ids.includes(batches[0]!.json['clientRunId']), 'it is a run of its own');
      assert.deepEqual((batches[0]!.json['testCases'] as TestCaseEntry[]).map(({ title: name }) => name), ['prints and steps']);
      assert.deepEqual(spooled(dir), []);
    });
  }

  test('and is gone: the flush command sends the run with its files and its report, even after the next run emptied their folders', async () => {
    const gone = await startService();
    const { port } = new URL(gone.url);
    await gone.close();
    const dir = installedSuite('commonjs');
    const { exitCode, lines } = await playwright(dir, COMMONJS, { SERVICE_URL: gone.url, SERVICE_API_KEY: 'pd_secret' });
    assert.equal(exitCode, 1);
    assert.equal(lines.length, 1, lines.join('\n'));
    const report = readFileSync(path.join(dir, 'report/index.html'));
    await playwright(dir, [...COMMONJS, '-g', 'is skipped']);
    assert.notDeepEqual(readFileSync(path.join(dir, 'report/index.html')), report);
    const stored = readdirSync(path.join(dir, 'spool'), { recursive: true }).map(String);
    assert.ok(!stored.filter((name) => name.endsWith('.files.json'))
      .some((name) => readFileSync(path.join(dir, 'spool', name), 'utf8').includes('pd_secret')));

    const failed = await callboard(dir, ['flush']);
    assert.equal(failed.exitCode, 1);
    const service = await startService(liveReplies(), Number(port));
    const flushed = await callboard(dir, ['flush', '--url', gone.url], { SERVICE_API_KEY: 'pd_2' });
    const again = await callboard(dir, ['flush']);
    await service.close();
    assert.equal(flushed.exitCode, 0);
    assert.match(flushed.stdout, /sample-shop: .*\/test-runs\/7/);
    assert.match(again.stdout, /nothing/);
    assert.deepEqual(service.paths(), ['test-runs/upload', 'test-runs/upload']);
    const attached = service.received[1]!.form;
    assert.equal(attached.get('testRunId'), '7');
    assert.deepEqual(unpack(await fileBytes(attached.get('report_html'))).get('index.html'), report);
    const { form, headers } = service.received[0]!;
    assert.equal(headers.authorization, 'Bearer pd_2');
    const cases = field<TestCaseEntry[]>(form, 'testCases');
    const first = cases.findIndex(({ title }) => title === 'fails once, with files');
    assert.equal((await fileBytes(form.get(`trace_${first}`))).toString(), 'trace of attempt 0');
    assert.deepEqual(cases[first]!.consoleLogs, [{ type: 'error', text: 'oh', timestamp: 1, location: null }]);
    assert.deepEqual(spooled(dir), []);
  });

  for (const [title, refusal, said] of [
    ['is out of reach', { status: 503, headers: { 'retry-after': '0' }, body: { message: 'Busy.' } }, /could not be sent: HTTP 503: Busy\., spooled to .*\.json\.gz$/],
    ['refuses the key', { status: 401, body: { message: 'No.' } }, /could not be sent: HTTP 401: No\. \(set apiKey or SERVICE_API_KEY, or username and password\), spooled to/],
  ] as const) {
    test(`and ${title} once the run has ended: its report is kept as it was, and sent to it later`, async () => {
      let isRefused = true;
      const service = await startService(liveReplies(({ path: where }) => (isRefused && where.endsWith('/upload') ? refusal : undefined)));
      const dir = installedSuite('commonjs');
      const { lines } = await playwright(dir, [...COMMONJS, '-g', 'prints and steps'], { SERVICE_URL: service.url });
      assert.equal(lines.length, 3, lines.join('\n'));
      assert.equal(lines[1], `[callboard] run: ${service.url}/test-runs/7`);
      assert.match(lines[2]!, said);
      const report = readFileSync(path.join(dir, 'report/index.html'));
      await playwright(dir, [...COMMONJS, '-g', 'is skipped']);
      assert.notDeepEqual(readFileSync(path.join(dir, 'report/index.html')), report);

      const { clientRunId } = service.received[0]!.json;
      service.received.length = 0;
      const failed = await callboard(dir, ['flush', '--url', service.url]);
      assert.deepEqual([failed.exitCode, spooled(dir).length], [1, 1]);
      isRefused = false;
      service.received.length = 0;
      const flushed = await callboard(dir, ['flush', '--url', service.url]);
      await service.close();
      assert.equal(flushed.exitCode, 0);
      assert.deepEqual(service.paths(), ['test-runs/submit', 'test-runs/upload']);
      const [{ json }, { form }] = service.received as [Received, Received];
      assert.deepEqual([json['clientRunId'], json['testCases']], [clientRunId, []], 'by its id the service finds the run');
      assert.deepEqual([form.get('testRunId'), form.get('clientRunId')], ['7', clientRunId]);
      assert.deepEqual(unpack(await fileBytes(form.get('report_html'))).get('index.html'), report);
      assert.deepEqual(spooled(dir), []);
    });
  }

  test('a folder that cannot be written changes nothing but the sentence', async () => {
    const dir = installedSuite('module');
    writeFileSync(path.join(dir, 'occupied'), '');
    const { exitCode, lines } = await playwright(dir, ONE, {
      SERVICE_URL: 'http://127.0.0.1:9', SERVICE_SPOOL_DIR: path.join(dir, 'occupied/spool'), SERVICE_FINALIZE_TIMEOUT: '300',
    });
    assert.equal(exitCode, 0);
    assert.match(lines.join(), /sending the run to http:\/\/127\.0\.0\.1:9 failed: .* and so did spooling it/);
  });
});
