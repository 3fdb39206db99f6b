import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { createClient, deadlineIn, RequestFailed } from '../src/client';
import { deliverRun } from '../src/delivery';
import type { AttachmentFile } from '../src/files';
import { jsonBody } from '../src/http';
import { createLog } from '../src/log';
import type { OutgoingAttempt } from '../src/outgoing';
import type { RunFields } from '../src/run';
import type { AttemptIdentity, TestCaseEntry } from '../src/test-case';
import { ACCEPTED, AT_ONCE, busyTrace, field, fileBytes, goneFile, liveReplies, startService, STREAM_TOKEN, type Received, type Reply, type Service } from './service';

const silent = createLog(false, () => process.stdout);
const RUN = { projectName: 'shop', status: 'failed', clientRunId: 'run-0001', metadata: { a: 1 } } as unknown as RunFields;

function attempt(title: string, files: AttachmentFile[] = [], evidence = ''): OutgoingAttempt {
  const identity = { title, location: 'a.spec.ts:1:1', retries: 0 } as unknown as AttemptIdentity;
  return { identity, entry: { type: 'complete', ...identity, testSource: evidence } as unknown as TestCaseEntry, files };
}

function attachment(name: string, bytes: Buffer): AttachmentFile {
  return {
    kind: 'attachment', name, contentType: 'text/plain', originalName: `${name}.txt`,
    content: { kind: 'bytes', bytes, size: bytes.length },
  };
}

function traceFile(bytes: string): AttachmentFile {
  const file = path.join(mkdtempSync(path.join(tmpdir(), 'callboard-trace-')), 'trace.zip');
  writeFileSync(file, bytes);
  return {
    kind: 'trace', name: 'trace', contentType: 'application/zip', originalName: 'trace.zip',
    content: { kind: 'file', path: file, size: bytes.length },
  };
}

async function deliver(service: Service, attempts: OutgoingAttempt[]): ReturnType<typeof deliverRun> {
  const client = createClient(service.url, { kind: 'key', apiKey: 'pd_1' }, silent);
  return deliverRun({ client, deadline: deadlineIn(10_000), log: silent, run: RUN, attempts });
}

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

const filesOf = (form: FormData): number => form.getAll('attach_file_0').length;
const titles = (cases: unknown): string[] => (cases as { title: string }[]).map(({ title }) => title);

test('a run without files is one compressed submission', () => withService(() => ({}), async (service) => {
  const delivered = await deliver(service, [attempt('one'), attempt('two')]);
  assert.equal(delivered.runId, 7);
  assert.deepEqual(service.paths(), ['test-runs/submit']);
  const [request] = service.received;
  assert.equal(request!.headers['content-encoding'], 'gzip');
  assert.equal(request!.headers.authorization, 'Bearer pd_1');
  assert.equal(request!.json['projectName'], 'shop');
  assert.deepEqual(titles(request!.json['testCases']), ['one', 'two']);
}));

test('a run with files is one upload that names each file by its attempt', () => withService(() => ({}), async (service) => {
  const image = Buffer.from([0, 13, 10, 255, 45, 45]);
  await deliver(service, [attempt('one'), attempt('two', [traceFile('zip bytes'), attachment('a "b"', image), attachment('c', image)])]);
  assert.deepEqual(service.paths(), ['test-runs/upload']);
  const { form, headers } = service.received[0]!;
  assert.ok(Number(headers['content-length']) > 0, 'the length is known in advance');
  assert.deepEqual([...form.keys()], [
    'projectName', 'testRun', 'testCases', 'trace_hashes', 'trace_1', 'attach_meta_1', 'attach_file_1', 'attach_file_1']);
  assert.deepEqual(field(form, 'trace_hashes'), { 1: createHash('sha256').update('zip bytes').digest('hex') });
  assert.equal((await fileBytes(form.get('trace_1'))).toString(), 'zip bytes');
  assert.deepEqual(field(form, 'attach_meta_1'), [
    { name: 'a "b"', contentType: 'text/plain', originalName: 'a "b".txt' },
    { name: 'c', contentType: 'text/plain', originalName: 'c.txt' }]);
  assert.deepEqual(await fileBytes(form.getAll('attach_file_1')[1] ?? null), image);
}));

test('a name or type no header may hold travels beside its file', () => withService(() => ({}), async (service) => {
  const names = ['a\0b', 'a\u0001b\u007f', 'a\tb', 'ä\u2028b'];
  const files = names.map((name) => ({ ...attachment(name, Buffer.from(name)), contentType: `text/${name}` }));
  await deliver(service, [attempt('one', files)]);
  const { form } = service.received[0]!;
  assert.deepEqual(form.getAll('attach_file_0').map((file) => (file as File).name), ['a_b.txt', 'a_b_.txt', 'a_b.txt', 'ä\u2028b.txt']);
  assert.ok(form.getAll('attach_file_0').slice(0, 3).every((file) => (file as File).type === 'application/octet-stream'));
  assert.deepEqual(field<AttachmentFile[]>(form, 'attach_meta_0'), names.map((name) => (
    { name, contentType: `text/${name}`, originalName: `${name}.txt` })));
}));

test('large files follow their results in bounded uploads of the same run', () => withService(() => ({}), async (service) => {
  const big = Buffer.alloc(12 * 1024 * 1024, 1);
  const attempts = [0, 1, 2, 3].map((index) => attempt(`test ${index}`, [attachment('big', big)]));
  const delivered = await deliver(service, attempts);
  assert.deepEqual(service.paths(), ['test-runs/submit', 'uploads/plan', 'test-runs/upload', 'test-runs/upload']);
  assert.deepEqual({ sent: delivered.filesSent, lost: delivered.filesLost }, { sent: 4, lost: 0 });
  const uploads = service.received.slice(2).map(({ form }) => form);
  assert.deepEqual(uploads.map((form) => titles(field(form, 'testCases'))), [['test 0', 'test 1'], ['test 2', 'test 3']]);
  for (const form of uploads) assert.equal(field<RunFields>(form, 'testRun').clientRunId, 'run-0001');
}));

test('hundreds of files are split by number', () => withService(() => ({}), async (service) => {
  const many = Array.from({ length: 450 }, (_, index) => attachment(`file ${index}`, Buffer.from('x')));
  await deliver(service, [attempt('one', many)]);
  assert.deepEqual(service.paths(), ['test-runs/submit', 'test-runs/upload', 'test-runs/upload', 'test-runs/upload']);
}));

const isTooLarge = ({ json }: Received): boolean => (json['testCases'] as unknown[] | undefined ?? []).length > 1;
const THREE = (): OutgoingAttempt[] => [attempt('one'), attempt('two'), attempt('three')];
const taken = ({ received }: Service): string[] => received.filter((request) => !isTooLarge(request))
  .flatMap(({ json }) => titles(json['testCases'] ?? []));

test('results too large for one request are halved until they fit, and the run is over with the last of them', () => withService(
  liveReplies((request) => (isTooLarge(request) ? { status: 413, body: {} } : undefined)),
  async (service) => {
    const { runId, status } = await deliver(service, THREE());
    assert.deepEqual([runId, status], [7, 'finalizing']);
    assert.deepEqual(taken(service), ['one', 'two', 'three']);
    const calls = service.paths();
    assert.deepEqual([calls[0], calls[1], calls.at(-1)], ['test-runs/submit', 'test-runs/start', 'test-runs/7/finish']);
    assert.ok(calls.slice(2, -1).every((each) => each === 'test-runs/7/events'));
    const [start, finish] = [service.received[1]!.json, service.received.at(-1)!.json];
    assert.deepEqual([start['clientRunId'], start['metadata'], finish['status'], finish['streamToken']], ['run-0001', { a: 1 }, 'failed', STREAM_TOKEN]);
  }));

test('tens of thousands of results are one run, fed in requests that are answered in time', () => withService(liveReplies(), async (service) => {
  const { runId } = await deliver(service, Array.from({ length: 20_500 }, (_, index) => attempt(`${index}`)));
  assert.equal(runId, 7);
  const events = service.received.slice(1, -1);
  assert.deepEqual([service.paths()[0], service.paths().at(-1)], ['test-runs/start', 'test-runs/7/finish']);
  assert.ok(events.every(({ path: where, json }) => where.endsWith('/7/events') && (json['testCases'] as unknown[]).length <= 2_000));
  assert.equal(new Set(events.flatMap(({ json }) => titles(json['testCases']))).size, 20_500);
}));

for (const [what, special] of [
  ['starts no run', ({ path: where }: Received) => (where.endsWith('/start') ? { status: 400, body: {} } : undefined)],
  ['takes no events for it', ({ path: where }: Received) => (where.endsWith('/events') ? { status: 409, body: { code: 'run_finished' } } : undefined)],
  ['cannot finish it', ({ path: where }: Received) => (where.endsWith('/finish') ? { status: 409, body: { code: 'run_cancelled' } } : undefined)],
] as const) {
  test(`a service that ${what} gets the results by submissions`, () => withService(
    liveReplies((request) => (isTooLarge(request) ? { status: 413, body: {} } : special(request))),
    async (service) => {
      const { runId, resultsLeft } = await deliver(service, THREE());
      assert.deepEqual([runId, resultsLeft, service.paths().at(-1)], [7, [], 'test-runs/submit']);
      assert.deepEqual([...new Set(taken(service))], ['one', 'two', 'three']);
    }));
}

test('one result too large for the server goes without its evidence', () => withService(
  ({ json }) => (JSON.stringify(json).includes('source') ? { status: 413, body: {} } : {}),
  async (service) => {
    await deliver(service, [attempt('one', [], 'source')]);
    assert.deepEqual(titles(service.received.at(-1)!.json['testCases']), ['one']);
  }));

test('a server that redirects is named with its target', () => withService(
  () => ({ status: 301, headers: { location: 'https://callboard.example.com/api/x?a=b' }, body: {} }),
  (service) => assert.rejects(deliver(service, [attempt('one')]), /redirect; set serverUrl to https:\/\/callboard\.example\.com$/)));

test('when files are refused, the results are sent without them', () => withService(
  ({ path: where }) => (where.endsWith('upload') ? { status: 422, body: { message: 'no' } } : {}),
  async (service) => {
    const delivered = await deliver(service, [attempt('one', [attachment('a', Buffer.from('1')), attachment('b', Buffer.from('2'))])]);
    assert.equal(delivered.runId, ACCEPTED.runId);
    assert.equal(delivered.filesLost, 2);
    assert.equal(service.paths()[1], 'test-runs/submit');
  }));

test('a file that is gone is lost alone, and nothing is asked twice for it', () => withService(() => ({}), async (service) => {
  const kept = (name: string): AttachmentFile => attachment(name, Buffer.from(name));
  const delivered = await deliver(service, [attempt('one', [kept('a'), goneFile('b')]), attempt('two', [kept('c'), kept('d')])]);
  assert.deepEqual({ sent: delivered.filesSent, lost: delivered.filesLost, left: delivered.filesLeft }, { sent: 3, lost: 1, left: [] });
  assert.match(delivered.firstFileLost!, /^b of "one": .*ENOENT/);
  assert.deepEqual(service.paths(), ['test-runs/submit', 'test-runs/upload', 'test-runs/upload']);
}));

test('a busy or broken server is asked again', () => withService(
  (_, count) => (count === 1 ? { status: 429, headers: AT_ONCE } : count === 2 ? { status: 503, headers: AT_ONCE } : {}),
  async (service) => {
    assert.equal((await deliver(service, [attempt('one')])).runId, 7);
    assert.equal(service.received.length, 3);
  }));

test('a refusal is final and carries the sentence of the server', () => withService(
  () => ({ status: 403, body: { message: 'You have no access to this project.' } }),
  async (service) => {
    await assert.rejects(deliver(service, [attempt('one', [attachment('a', Buffer.from('1'))])]), (error) =>
      error instanceof RequestFailed && error.status === 403 && error.message === 'HTTP 403: You have no access to this project.');
    assert.equal(service.received.length, 1);
  }));

test('with a password it logs in once, reuses the session and renews it when it ended', () => withService(
  ({ path: where }, count) => (where === '/api/auth/login'
    ? { body: { success: true }, headers: { 'set-cookie': [`sid=${count}; Path=/; HttpOnly`, 'b=2'] } }
    : count === 4 ? { status: 401, body: {} } : {}),
  async (service) => {
    const client = createClient(service.url, { kind: 'password', username: 'ada', password: 'secret' }, silent);
    for (const status of ['first', 'second', 'third']) {
      await client.send('/api/test-runs/submit', jsonBody({ status }), deadlineIn(5_000));
    }
    assert.deepEqual(service.paths(), [
      'auth/login', 'test-runs/submit', 'test-runs/submit', 'test-runs/submit', 'auth/login', 'test-runs/submit']);
    assert.deepEqual(service.received[0]!.json, { username: 'ada', password: 'secret' });
    assert.deepEqual(service.received.slice(3).map(({ headers }) => headers.cookie), ['sid=1; b=2', undefined, 'sid=5; b=2']);
    assert.equal(service.received.at(-1)!.json['status'], 'third');
  }));

test('an answer that is not from the service is a failure, not a run', () => withService(
  () => ({ body: 'a login page' }),
  async (service) => {
    await assert.rejects(deliver(service, [attempt('one')]), /is this the address of the service/);
  }));

test('a run that has no form in JSON is refused, and ends no process', () => withService(() => ({}), async (service) => {
  const metadata: Record<string, unknown> = {};
  metadata['self'] = metadata;
  const client = createClient(service.url, { kind: 'none' }, silent);
  const run = { ...RUN, metadata } as unknown as RunFields;
  await assert.rejects(deliverRun({ client, deadline: deadlineIn(5_000), log: silent, run, attempts: [attempt('one')] }), /circular/);
  assert.deepEqual(service.paths(), []);
}));

test('a file the service fails on is left alone, the others arrive', () => withService(
  ({ path: where, form }) => (where.endsWith('upload') && form.getAll('attach_file_0').some((file) => (file as File).name === 'bad.txt')
    ? { status: 500, headers: AT_ONCE, body: {} } : {}),
  async (service) => {
    const names = ['a', 'b', 'bad', 'c', 'd'];
    const { filesSent, filesLost, filesLeft } = await deliver(service, [attempt('one', names.map((name) => attachment(name, Buffer.from(name))))]);
    assert.deepEqual([filesSent, filesLost, filesLeft.map(({ file }) => file.name)], [4, 0, ['bad']]);
  }));

test('a service that fails on all files is not asked for each of them', () => withService(
  ({ path: where }) => (where.endsWith('upload') ? { status: 500, headers: AT_ONCE, body: {} } : {}),
  async (service) => {
    const many = Array.from({ length: 40 }, (_, index) => attachment(`${index}`, Buffer.from('x')));
    const { filesLost, filesLeft } = await deliver(service, [attempt('one', many)]);
    assert.deepEqual([filesLost, filesLeft.length], [0, 40]);
    assert.ok(service.received.length < 30, `${service.received.length} requests`);
  }));

test('a service that fails on many files at once is asked patiently for the first batch only', () => withService(
  ({ path: where, form }) => (where.endsWith('upload') && filesOf(form) > 50 ? { status: 500, headers: AT_ONCE, body: {} } : {}),
  async (service) => {
    const many = Array.from({ length: 400 }, (_, index) => attachment(`${index}`, Buffer.from('x')));
    const { filesSent, filesLeft } = await deliver(service, [attempt('one', many)]);
    assert.deepEqual([filesSent, filesLeft], [400, []]);
    const sizes = service.received.map(({ form }) => filesOf(form)).filter((count) => count > 50);
    assert.deepEqual(sizes.slice(sizes.indexOf(100)), [100, 100, 200, 100, 100]);
  }));

test('a service that is busy names the time or the seconds until it is not', async () => {
  const waited: number[] = [];
  for (const pause of [() => '1', () => new Date(Date.now() + 3_000).toUTCString()]) {
    await withService((_, count) => (count === 1 ? { status: 429, headers: { 'retry-after': pause() }, body: {} } : {}), async (service) => {
      const from = Date.now();
      await deliver(service, [attempt('one')]);
      waited.push(Date.now() - from);
    });
  }
  // At least as long as it was asked to; how much longer is the machine's affair.
  assert.ok(waited[0]! >= 950 && waited[1]! >= 1_900, String(waited));
});

test('a file that cannot be read for the moment is left, and not lost', () => withService(() => ({}), async (service) => {
  const big = attachment('big', Buffer.alloc(17 * 1024 * 1024, 1));
  const { filesSent, filesLost, filesLeft } = await deliver(service, [attempt('one', [big]), attempt('two', [busyTrace(9)])]);
  assert.deepEqual([filesLost, filesSent + filesLeft.length, filesLeft.some(({ file }) => file.kind === 'trace')], [0, 2, true]);
}));

test('a result the service fails on is left with its files, the others arrive with theirs', () => withService(
  ({ json, form }) => (JSON.stringify(json['testCases'] ?? []).includes('bad') || String(form.get('testCases')).includes('bad')
    ? { status: 500, headers: AT_ONCE, body: {} } : {}),
  async (service) => {
    const names = ['a', 'b', 'bad', 'c', 'd'];
    const { runId, filesSent, filesLost, filesLeft, resultsLeft } = await deliver(
      service, names.map((name) => attempt(name, [attachment(name, Buffer.from(name))], `source of ${name}`)));
    assert.deepEqual([runId, filesSent, filesLost, filesLeft.map(({ file }) => file.name)], [7, 4, 0, ['bad']]);
    assert.deepEqual(resultsLeft.map(({ entry, identity }) => [entry.testSource, identity.title]), [['source of bad', 'bad']]);
    const accepted = service.received.filter(({ path: where, json }) => where.endsWith('submit') && !JSON.stringify(json).includes('bad'));
    assert.deepEqual(accepted.flatMap(({ json }) => titles(json['testCases'])), ['a', 'b', 'c', 'd']);
  }));

test('a service that fails on many results at once is asked patiently for the first batch only', () => withService(
  ({ json }) => ((json['testCases'] as unknown[]).length > 10 ? { status: 500, headers: AT_ONCE, body: {} } : {}),
  async (service) => {
    const many = Array.from({ length: 60 }, (_, index) => `test ${index}`);
    const { resultsLeft } = await deliver(service, many.map((title) => attempt(title)));
    assert.deepEqual(resultsLeft, []);
    const batches = service.received.map(({ json }) => titles(json['testCases']));
    assert.deepEqual(batches.filter(({ length }) => length <= 10).flat(), many);
    const sizes = batches.map(({ length }) => length).filter((length) => length > 10);
    assert.deepEqual(sizes.slice(sizes.lastIndexOf(60) + 1), [30, 15, 15, 30, 15, 15]);
  }));

test('a service that fails on every result took none', () => withService(
  () => ({ status: 500, headers: AT_ONCE, body: {} }),
  async (service) => {
    const many = Array.from({ length: 200 }, (_, index) => attempt(`${index}`));
    await assert.rejects(deliver(service, many), (error) => error instanceof RequestFailed && error.status === 500);
    assert.ok(service.received.length < 30, `${service.received.length} requests`);
    await assert.rejects(deliver(service, [attempt('only')]), /HTTP 500/);
  }));
