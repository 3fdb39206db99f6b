/** Direct uploads against a service that is as strict as the contract. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { UNKNOWN_CAPABILITIES } from '../src/capabilities';
import { createClient, deadlineIn } from '../src/client';
import { deliverRun } from '../src/delivery';
import type { AttachmentFile } from '../src/files';
import { startLive, type Live } from '../src/live/session';
import { createLog } from '../src/log';
import type { DeliveredRun, OutgoingAttempt } from '../src/outgoing';
import { deliverReports } from '../src/report-delivery';
import type { RunFields, StartFields } from '../src/run';
import { entriesIn, flushSpool } from '../src/spool/spool';
import { releaseEntry } from '../src/spool/entry';
import type { AttemptIdentity, TestCaseEntry } from '../src/test-case';
import { AT_ONCE, startService, unpack, type Received } from './service';
import { folder, keep, results } from './spool-entries';
import { calls, plannedOf, sha256, startUploadService, type UploadService, type UploadServiceOptions } from './upload-service';

const silent = createLog(false, () => process.stdout);
const MIB = 1024 * 1024;
const GATEWAY_BYTES = 6 * MIB;
const KEY = { kind: 'key', apiKey: 'pd_1' } as const;

const identity = (title: string): AttemptIdentity => ({
  title, location: 'a.spec.ts:1:1', retries: 1, suitePath: ['Cart'], repeatEachIndex: 0, browser: { projectName: 'chromium' },
}) as unknown as AttemptIdentity;

function fileOf(name: string, bytes: Buffer, kind: AttachmentFile['kind'] = 'attachment'): AttachmentFile {
  const place = path.join(mkdtempSync(path.join(os.tmpdir(), 'callboard-upload-')), name);
  writeFileSync(place, bytes);
  return { kind, name, contentType: 'application/zip', originalName: `${name}.zip`, content: { kind: 'file', path: place, size: bytes.length } };
}

async function withUploads(options: UploadServiceOptions, check: (service: UploadService) => Promise<void>): Promise<void> {
  const service = await startUploadService(options);
  try {
    await check(service);
  } finally {
    await service.close();
  }
}

/** A live run of one result with these files; what has arrived is checked when it has ended. */
async function live(service: UploadService, files: AttachmentFile[], check: (live: Live, key: object) => void = () => undefined): Promise<void> {
  let opened = (): void => undefined;
  const isOpen = new Promise<void>((resolve) => (opened = resolve));
  const run = startLive({
    client: createClient(service.service.url, KEY, silent), log: silent, batchSize: 3, batchDelayMs: 10, filesAtOnce: true,
    start: Promise.resolve({ projectName: 'shop' } as StartFields), setup: undefined,
    onOpen: () => opened(), onAccepted: () => undefined,
  });
  const key = {};
  run.complete(key, JSON.stringify({ type: 'complete', title: 'pays' }), identity('pays'), files);
  try {
    // A service that has not answered by the end of the tests would be given little time.
    await isOpen;
    assert.equal(await run.settle(deadlineIn(40_000)), true);
    check(run, key);
  } finally {
    run.stop();
  }
}

async function deliver(service: UploadService, files: AttachmentFile[], capabilities = { ...UNKNOWN_CAPABILITIES }): Promise<DeliveredRun> {
  const attempt = { identity: identity('pays'), entry: { type: 'complete', ...identity('pays') } as unknown as TestCaseEntry, files };
  return deliverRun({
    client: createClient(service.service.url, KEY, silent), deadline: deadlineIn(40_000), log: silent, capabilities,
    run: { projectName: 'shop', status: 'failed', clientRunId: 'run-0001' } as unknown as RunFields, attempts: [attempt],
  });
}

for (const isDirect of [true, false]) {
  test(`large files of a live run pass a gateway ${isDirect ? 'by way of the bucket' : 'through the service'}, small ones go together`, () => withUploads(
    isDirect ? { isDirect, gatewayBytes: GATEWAY_BYTES } : { isDirect }, async (service) => {
      const [trace, video, shot] = [randomBytes(11 * MIB), randomBytes(2 * MIB), randomBytes(1_000)];
      await live(service, [fileOf('trace', trace, 'trace'), fileOf('shot', shot), fileOf('video', video)], (run, key) => {
        assert.ok(run.areFilesDone(key));
        assert.deepEqual(run.progress(), { eventsSent: 1, events: 1, filesSent: 3, files: 3, bytesLeft: 0 });
      });
      assert.deepEqual(service.linked.map(({ sha256: hash, kind }) => [hash, kind]), [[sha256(trace), 'trace'], [sha256(video), 'attachment']]);
      assert.ok(service.blobs.get(sha256(trace))!.equals(trace) && service.blobs.get(sha256(video))!.equals(video));
      assert.deepEqual(service.linked[0]!.link, {
        type: 'trace', name: 'trace', contentType: 'application/zip', originalName: 'trace.zip',
        testCase: { title: 'pays', location: 'a.spec.ts:1:1', retries: 1, suitePath: ['Cart'], repeatEachIndex: 0, browserProject: 'chromium' },
      });
      assert.deepEqual([...service.together.values()].map(sha256), [sha256(shot)]);
      assert.deepEqual(calls(service).filter((each) => each.includes('PUT')), Array(2).fill(isDirect ? 'PUT bucket' : 'PUT'));
    }));
}

test('what the project has is linked and not sent, and the same bytes twice are sent once', () => withUploads({ isDirect: true }, async (service) => {
  const bytes = randomBytes(2 * MIB);
  await live(service, [fileOf('one', bytes), fileOf('two', bytes)]);
  await live(service, [fileOf('three', bytes)]);
  assert.deepEqual(service.linked.map(({ link }) => link['name']), ['one', 'two', 'three']);
  assert.equal(service.bucket.received.length, 1);
}));

test('a bucket that is busy, breaks off, forgets the ticket or damages the bytes gets the file in the end', () => {
  let puts = 0;
  const damaged = (request: Received): void => void (request.raw[0]! ^= 1);
  return withUploads({
    isDirect: true,
    special: (request) => {
      if (request.method !== 'PUT') return undefined;
      puts++;
      if (puts === 1) return { status: 503, headers: AT_ONCE, body: {} };
      if (puts === 2) return { breaksOff: true };
      if (puts === 3) return { status: 403, body: '<Error><Code>AccessDenied</Code></Error>' };
      if (puts === 4) damaged(request);
      return undefined;
    },
  }, async (service) => {
    const trace = randomBytes(2 * MIB);
    await live(service, [fileOf('trace', trace, 'trace')], (run, key) => assert.ok(run.areFilesDone(key)));
    assert.deepEqual([puts, plannedOf(service).length, service.linked.length], [5, 3, 1]);
    assert.ok(service.blobs.get(sha256(trace))!.equals(trace));
  });
});

test('an answer of the service that was lost is asked for again', () => {
  const lost = new Set<string>();
  return withUploads({
    special: ({ path: where }) => {
      const call = where.replace(/[0-9a-f]{64}/, 'PUT');
      if (!call.startsWith('/api/uploads/') || lost.has(call)) return undefined;
      lost.add(call);
      return { status: 429, headers: AT_ONCE, body: {} };
    },
  }, async (service) => {
    await live(service, [fileOf('trace', randomBytes(2 * MIB), 'trace')]);
    assert.deepEqual([lost.size, service.linked.length], [3, 1]);
  });
});

test('a commit that is still checking, or does not know the result yet, is repeated', () => {
  const answers = ['pending', 'case_not_found'];
  return withUploads({
    special: ({ path: where, json }) => {
      const status = where === '/api/uploads/commit' ? answers.shift() : undefined;
      return status === undefined ? undefined : { body: { items: [{ sha256: (json['items'] as { sha256: string }[])[0]!.sha256, status }] } };
    },
  }, async (service) => {
    await live(service, [fileOf('trace', randomBytes(2 * MIB), 'trace')], (run, key) => assert.ok(run.areFilesDone(key)));
    assert.equal(service.linked.length, 1);
  });
});

for (const [what, reply] of [
  ['refuses', { status: 403, body: '<Code>AccessDenied</Code>' }],
  ['redirects', { status: 307, headers: { location: 'http://127.0.0.1:9/elsewhere' } }],
] as const) {
  test(`a bucket that ${what} costs the run neither its results nor the file, which is left for another day`, () => withUploads(
    { isDirect: true, special: ({ method }) => (method === 'PUT' ? reply : undefined) },
    async (service) => {
      await live(service, [fileOf('trace', randomBytes(2 * MIB), 'trace'), fileOf('small', Buffer.from('1'))], (run, key) => {
        assert.deepEqual([run.areFilesDone(key), run.stoppedBy, run.filesLost], [false, undefined, 0]);
      });
      const left = await deliver(service, [fileOf('trace', randomBytes(2 * MIB), 'trace'), fileOf('big', randomBytes(5 * MIB))]);
      assert.deepEqual([left.filesSent, left.filesLost, left.filesLeft.length], [0, 0, 2]);
    }));
}

test('where nobody reaches the bucket, files that fit a request go through the service, and larger ones wait', () => withUploads(
  { isDirect: true, gatewayBytes: GATEWAY_BYTES, special: ({ method }) => (method === 'PUT' ? { breaksOff: true } : undefined) },
  async (service) => {
    const [fits, large] = [randomBytes(2 * MIB), randomBytes(5 * MIB)];
    await live(service, [fileOf('fits', fits), fileOf('large', large)], (run) => {
      assert.deepEqual([run.progress().filesSent, run.filesLost, run.stoppedBy], [1, 0, undefined]);
    });
    assert.deepEqual([...service.together.values()].map(sha256), [sha256(fits)]);
    const left = await deliver(service, [fileOf('fits', randomBytes(2 * MIB)), fileOf('large', large)]);
    assert.deepEqual([left.filesSent, left.filesLost, left.filesLeft.map(({ file }) => file.name)], [1, 0, ['large']]);
  }));

test('a file that is too large for the service is lost alone, and the reason is said', () => withUploads({
  special: ({ path: where, json }) => (where === '/api/uploads/plan'
    ? { body: { files: (json['files'] as { size: number }[]).map((file) => ({ ...file, status: 'too_large' })) } } : undefined),
}, async (service) => {
  const { filesSent, filesLost, firstFileLost } = await deliver(service, [fileOf('trace', randomBytes(5 * MIB), 'trace'), fileOf('small', Buffer.from('1'))]);
  assert.deepEqual([filesSent, filesLost], [1, 1]);
  assert.equal(firstFileLost, 'trace of "pays": the file is larger than the service takes');
}));

test('a batch passes a gateway whose limit it was not told: results first, large files by themselves', () => withUploads(
  { isDirect: true, gatewayBytes: GATEWAY_BYTES }, async (service) => {
    const bytes = ['a', 'b', 'c'].map(() => randomBytes(5 * MIB));
    const small = Array.from({ length: 12 }, (_, index) => fileOf(`small ${index}`, randomBytes(900_000)));
    const sent = await deliver(service, [...bytes.map((each, index) => fileOf(`big ${index}`, each)), ...small]);
    assert.deepEqual([sent.filesSent, sent.filesLost, sent.filesLeft], [15, 0, []]);
    assert.deepEqual(service.linked.map(({ sha256: hash }) => hash).sort(), bytes.map(sha256).sort());
    assert.equal(service.together.size, 12);
    assert.deepEqual(service.service.received.filter(({ raw, method }) => method === 'POST' && raw.length * 4 / 3 > GATEWAY_BYTES), []);
  }));

test('results beyond what one request may carry come in through several, each within the limit', () => withUploads(
  { gatewayBytes: 1 * MIB }, async ({ service }) => {
    // Hardly compressible, as measurements and base64 are.
    const evidence = (): string => randomBytes(6_000).toString('base64');
    const attempts = Array.from({ length: 600 }, (_, index): OutgoingAttempt => ({
      identity: identity(`${index}`), files: [], entry: { type: 'complete', ...identity(`${index}`), testSource: evidence() } as unknown as TestCaseEntry,
    }));
    for (const requestMaxBytes of [700 * 1024, undefined]) {
      service.received.length = 0;
      await deliverRun({
        client: createClient(service.url, KEY, silent), deadline: deadlineIn(60_000), log: silent, capabilities: { plan: true, requestMaxBytes },
        run: { projectName: 'shop', clientRunId: 'run-0001' } as unknown as RunFields, attempts,
      });
      const taken = service.received.filter(({ raw }) => raw.length * 4 / 3 <= MIB);
      const titles = taken.flatMap(({ json }) => (json['testCases'] as { title: string; testSource?: string }[] | undefined ?? []).filter(({ testSource }) => testSource).map(({ title }) => title));
      assert.deepEqual(titles, attempts.map(({ identity: { title } }) => title), 'all of them once, in order, with their evidence');
      const submitted = taken.filter(({ path: where }) => where.endsWith('/submit'));
      assert.deepEqual([submitted, taken.at(-1)!.path], [[], '/api/test-runs/7/finish'], 'the run is over with its last result');
      // What is not known is learned from the first refusals.
      assert.ok(service.received.length - taken.length <= (requestMaxBytes === undefined ? 6 : 0), `${service.received.length - taken.length} refused`);
    }
  }));

test('an older service is asked for no plan when it announced none, and once when nothing is known', async () => {
  const older = await startService(({ path: where }) => (where.startsWith('/api/uploads') ? { status: 404, body: { code: 'not_found' } } : {}));
  const service = { service: older } as UploadService;
  const files = (): AttachmentFile[] => [fileOf('a', randomBytes(5 * MIB)), fileOf('b', randomBytes(2 * MIB))];
  try {
    assert.equal((await deliver(service, files(), { plan: false, requestMaxBytes: undefined })).filesSent, 2);
    assert.deepEqual(older.paths().splice(0), ['test-runs/upload']);
    older.received.length = 0;
    assert.equal((await deliver(service, files())).filesSent, 2);
    assert.deepEqual(older.paths(), ['test-runs/submit', 'uploads/plan', 'test-runs/upload']);
  } finally {
    await older.close();
  }
});

test('a large report is attached by its hash, and its run need not wait any more', () => withUploads({ isDirect: true, gatewayBytes: GATEWAY_BYTES }, async (service) => {
  const dir = mkdtempSync(path.join(os.tmpdir(), 'callboard-html-'));
  mkdirSync(path.join(dir, 'data'));
  const data = randomBytes(9 * MIB);
  writeFileSync(path.join(dir, 'index.html'), '<p>');
  writeFileSync(path.join(dir, 'data/trace.zip'), data);
  const { status, left } = await deliverReports({
    client: createClient(service.service.url, KEY, silent), deadline: deadlineIn(20_000), log: silent, done: new Set(),
    reports: [{ type: 'html', dir, label: 'All' }], run: { runId: 7, projectName: 'shop', startedAtMs: 0, clientRunId: 'run-0001' },
    capabilities: { ...UNKNOWN_CAPABILITIES },
  });
  assert.deepEqual([status, left], ['failed', []]);
  assert.deepEqual(calls(service), ['uploads/plan', 'uploads/commit', 'test-runs/upload', 'PUT bucket']);
  const { link, sha256: hash } = service.linked[0]!;
  assert.deepEqual(link, { type: 'report', reportType: 'html', label: 'All' });
  assert.deepEqual(unpack(service.blobs.get(hash)!).get('data/trace.zip'), data);
  const ended = service.service.received.at(-1)!.form;
  assert.deepEqual([ended.get('testRunId'), ended.get('clientRunId'), ended.has('report_html')], ['7', 'run-0001', false]);
}));

test('a kept run is sent the same way, and what arrived before is not sent again', () => {
  let isBroken = true;
  return withUploads({ isDirect: true, special: ({ method, raw }) => (isBroken && method === 'PUT' && raw[0] === 2 ? { status: 403, body: '' } : undefined) },
    async (service) => {
      const dir = folder();
      const [attempt] = results(3 * MIB);
      const second = { ...attempt!.files[1]!, content: { kind: 'bytes' as const, bytes: Buffer.alloc(4 * MIB, 2), size: 4 * MIB } };
      await releaseEntry(await keep(dir, service.service.url, [{ ...attempt!, files: [attempt!.files[0]!, second] }]));
      const flush = async (): Promise<void> => flushSpool({
        entries: await entriesIn(dir), deadline: deadlineIn(20_000), log: silent, tries: 2,
        clientFor: () => createClient(service.service.url, KEY, silent), onSent: () => undefined, onFailed: () => undefined,
      });
      await flush();
      assert.deepEqual([service.linked.length, (await entriesIn(dir)).length], [1, 1]);
      isBroken = false;
      const before = service.bucket.received.length;
      await flush();
      assert.deepEqual([service.linked.length, (await entriesIn(dir)).length, service.bucket.received.length - before], [2, 0, 1]);
    });
});
