/** The streamed run against a service of the test: what is sent again, cut, split or given up. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { createClient, deadlineIn, RequestFailed, type Deadline } from '../src/client';
import type { AttachmentFile } from '../src/files';
import { jsonBody } from '../src/http';
import { createEventQueue } from '../src/live/event-queue';
import { createRetryPolicy } from '../src/live/retry-policy';
import { startLive, type Live } from '../src/live/session';
import { createLog } from '../src/log';
import type { StartFields } from '../src/run';
import type { AttemptIdentity } from '../src/test-case';
import { AT_ONCE, busyTrace, eventsOf, field, goneFile, liveReplies, startService, type Received, type Reply, type Service } from './service';

const silent = createLog(false, () => process.stdout);

async function withLive(
  special: (request: Received, count: number) => Reply | undefined,
  check: (live: Live, service: Service) => Promise<void>,
): Promise<void> {
  const service = await startService(liveReplies(special));
  const live = startLive({
    client: createClient(service.url, { kind: 'none' }, silent), log: silent, batchSize: 3, batchDelayMs: 60_000, filesAtOnce: true,
    start: Promise.resolve({ projectName: 'shop' } as StartFields), setup: undefined,
    onOpen: () => undefined, onAccepted: () => undefined,
  });
  try {
    await check(live, service);
  } finally {
    live.stop();
    await service.close();
  }
}

const identity = (title: string): AttemptIdentity =>
  ({ title, location: 'a.spec.ts:1:1', retries: 0, suitePath: [], repeatEachIndex: 0, browser: { projectName: 'p' } }) as unknown as AttemptIdentity;

function complete(live: Live, title: string, more: object = {}, files: AttachmentFile[] = []): object {
  const key = { title };
  live.complete(key, JSON.stringify({ type: 'complete', title, ...more }), identity(title), files);
  return key;
}

function file(name: string): AttachmentFile {
  const bytes = Buffer.from(name);
  return { kind: 'attachment', name, contentType: 'text/plain', originalName: name, content: { kind: 'bytes', bytes, size: bytes.length } };
}

const titles = ({ json }: Received): string[] => (json['testCases'] as { title: string }[]).map(({ title }) => title);
const eventRequests = ({ received }: Service): Received[] => received.filter(({ path }) => path.endsWith('/events'));
const isEvents = ({ path }: Received): boolean => path.endsWith('/events');

test('a full batch goes at once, the rest when the run is over', () => withLive(() => undefined, async (live, service) => {
  for (const title of ['a', 'b', 'c', 'd']) complete(live, title);
  assert.equal(await live.settle(deadlineIn(5_000)), true);
  assert.deepEqual(eventsOf<{ title: string }>(service, 'complete').map(({ title }) => title), ['a', 'b', 'c', 'd']);
  assert.equal((await live.finish({ status: 'passed' }, deadlineIn(5_000)))?.['runId'], 7);
  assert.equal(service.paths().at(-1), 'test-runs/7/finish');
}));

test('a batch that is too large is halved, and one result loses evidence, the bulkiest first', () => withLive(
  (request) => (isEvents(request) && JSON.stringify(request.json).length > 300 ? { status: 413, body: {} } : undefined),
  async (live, service) => {
    const key = complete(live, 'large', { networkRequests: ['n'.repeat(400)], consoleLogs: ['c'.repeat(400)], steps: ['s'], status: 'failed' });
    for (const title of ['b', 'c', 'd']) complete(live, title, { testSource: 'x'.repeat(50) });
    assert.equal(await live.settle(deadlineIn(5_000)), true);
    const stored = service.received.filter(isEvents).filter(({ json }) => JSON.stringify(json).length <= 300);
    assert.deepEqual(stored.flatMap(titles), ['large', 'b', 'c', 'd']);
    assert.deepEqual(stored[0]!.json['testCases'], [{ type: 'complete', title: 'large', steps: ['s'], status: 'failed' }]);
    assert.ok(live.isAccepted(key));
  }));

test('one event the service refuses is found and dropped, the others arrive', () => withLive(
  (request) => (isEvents(request) && titles(request).includes('bad') ? { status: 400, body: { code: 'invalid_body' } } : undefined),
  async (live, service) => {
    for (const title of ['a', 'bad', 'c', 'd']) complete(live, title);
    assert.equal(await live.settle(deadlineIn(5_000)), true);
    const stored = eventRequests(service).filter((request) => !titles(request).includes('bad')).flatMap(titles);
    assert.deepEqual(stored, ['a', 'c', 'd']);
    assert.equal(live.resultsRefused, 1);
  }));

for (const count of [2, 9]) {
  test(`a service that refuses all of ${count} results drops none: they are left to the batch`, () => withLive(
    (request) => (isEvents(request) ? { status: 415, body: { code: 'unsupported_media_type' } } : undefined),
    async (live, service) => {
      const keys = Array.from({ length: count }, (_, index) => complete(live, `${index}`));
      assert.equal(await live.settle(deadlineIn(5_000)), false);
      assert.deepEqual([live.stoppedBy?.status, live.resultsRefused, accepted(live, keys).some(Boolean)], [415, 0, false]);
      assert.equal(await live.finish({}, deadlineIn(1_000)), undefined);
      assert.ok(eventRequests(service).length < 14);
    }));
}

test('a request that failed is repeated as it was, and later events wait for it', () => withLive(
  (_, count) => (count === 2 || count === 3 ? { status: count === 2 ? 429 : 502, headers: AT_ONCE, body: {} } : undefined),
  async (live, service) => {
    for (const title of ['a', 'b', 'c', 'd']) complete(live, title);
    assert.equal(await live.settle(deadlineIn(5_000)), true);
    const [first, second, third] = eventRequests(service);
    assert.deepEqual(first!.json, second!.json);
    assert.deepEqual(first!.json, third!.json);
    assert.deepEqual(eventRequests(service).slice(2).flatMap(titles), ['a', 'b', 'c', 'd']);
  }));

test('files wait until their result is accepted, and are tried again while it is unknown', () => {
  let refused = 0;
  return withLive(
    ({ path, form }) => (path.endsWith('/case-files') && field<{ title: string }>(form, 'testCase').title === 'a' && refused++ === 0
      ? { status: 404, body: { code: 'case_not_found' } } : undefined),
    async (live, service) => {
      const key = complete(live, 'a', {}, [file('one'), file('two')]);
      assert.equal(await live.settle(deadlineIn(5_000)), true);
      assert.deepEqual(service.paths(), ['test-runs/start', 'test-runs/7/events', 'test-runs/7/case-files', 'test-runs/7/case-files']);
      assert.equal(service.received.at(-1)!.form.getAll('attach_file').length, 2);
      assert.ok(live.areFilesDone(key));
    });
});

test('files that are too large together go one by one, and one that is too large alone is lost', () => withLive(
  ({ form }) => {
    const names = field<{ name: string }[] | null>(form, 'attach_meta')?.map(({ name }) => name) ?? [];
    return names.includes('huge') ? { status: 413, body: {} } : undefined;
  },
  async (live, service) => {
    const key = complete(live, 'a', {}, [file('one'), file('huge'), file('three')]);
    assert.equal(await live.settle(deadlineIn(5_000)), true);
    const sent = service.received.filter(({ path }) => path.endsWith('/case-files')).slice(1).map(({ form }) => field<{ name: string }[]>(form, 'attach_meta')[0]!.name);
    assert.deepEqual(sent.sort(), ['huge', 'one', 'three']);
    assert.deepEqual({ lost: live.filesLost, done: live.areFilesDone(key), sent: live.progress().filesSent }, { lost: 1, done: true, sent: 2 });
  }));

test('a file that is gone is lost alone and holds nothing back', () => withLive(() => undefined, async (live, service) => {
  const keys = [complete(live, 'a', {}, [file('one'), goneFile('two')]), complete(live, 'b', {}, [file('three')]), complete(live, 'c')];
  assert.equal(await live.settle(deadlineIn(5_000)), true);
  assert.deepEqual({ lost: live.filesLost, sent: live.progress().filesSent, stoppedBy: live.stoppedBy }, { lost: 1, sent: 2, stoppedBy: undefined });
  assert.deepEqual(keys.slice(0, 2).map((key) => live.areFilesDone(key)), [true, true]);
  assert.equal(service.paths().filter((each) => each.endsWith('case-files')).length, 2);
}));

test('a file that cannot be read for the moment is tried again at the end of the run, and is not lost', () => withLive(() => undefined, async (live) => {
  const keys = [1, 9].map((times) => complete(live, `${times}`, {}, [busyTrace(times)]));
  assert.equal(await live.settle(deadlineIn(5_000)), true);
  assert.deepEqual([live.filesLost, live.progress().filesSent, ...keys.map((key) => live.areFilesDone(key))], [0, 1, true, false]);
}));

const isFiles = ({ path }: Received): boolean => path.endsWith('/case-files');
const fileNames = ({ form }: Received): string[] => field<{ name: string }[]>(form, 'attach_meta').map(({ name }) => name);

test('a result is done with its files when the last of a divided request is', () => withLive(
  (request) => {
    if (!isFiles(request)) return undefined;
    if (fileNames(request).length > 1) return { status: 413, body: {} };
    return fileNames(request)[0] === 'three' ? { hangs: true } : undefined;
  },
  async (live) => {
    const key = complete(live, 'a', {}, ['one', 'two', 'three'].map(file));
    await live.settle(deadlineIn(500));
    assert.deepEqual(
      { done: live.areFilesDone(key), sent: live.progress().filesSent, bytesLeft: live.progress().bytesLeft, lost: live.filesLost },
      { done: false, sent: 2, bytesLeft: 'three'.length, lost: 0 });
  }));

test('a run ends as ever when there is no time for its files', () => withLive(
  (request) => (isFiles(request) ? { hangs: true } : undefined),
  async (live, service) => {
    const keys = ['a', 'b', 'c'].map((title) => complete(live, title, {}, [file('one')]));
    assert.equal(await live.settle(deadlineIn(300)), true);
    assert.equal((await live.finish({ setupSteps: [] }, deadlineIn(5_000)))?.['runId'], 7);
    assert.deepEqual(keys.map((key) => live.areFilesDone(key)), [false, false, false]);
    assert.equal(service.paths().at(-1), 'test-runs/7/finish');
  }));

const FAILS: Reply = { status: 500, headers: AT_ONCE, body: {} };
const failsOnBad = (request: Received): Reply | undefined => (isEvents(request) && titles(request).includes('bad') ? FAILS : undefined);
const accepted = (live: Live, keys: object[]): boolean[] => keys.map((key) => live.isAccepted(key));

async function until(isTrue: () => boolean): Promise<void> {
  for (let waited = 0; !isTrue(); waited += 5) {
    assert.ok(waited < 5_000, 'it never came true');
    await delay(5);
  }
}

test('an event the service fails on is set aside while the run goes on, and tried once more at its end', () => {
  let isRepaired = false;
  return withLive((request) => (isRepaired ? undefined : failsOnBad(request)), async (live, service) => {
    const keys = ['a', 'bad', 'c', 'd', 'e', 'f'].map((title) => complete(live, title));
    await until(() => live.isSetAside(keys[1]!));
    await until(() => accepted(live, keys).filter(Boolean).length === 5);
    isRepaired = true;
    assert.equal(await live.settle(deadlineIn(5_000)), true);
    assert.ok(live.isAccepted(keys[1]!) && !live.isSetAside(keys[1]!));
    assert.deepEqual(eventRequests(service).at(-1)!.json['testCases'], [{ type: 'complete', title: 'bad' }]);
  });
});

test('an event that came alone is found out by those behind it', () => withLive(failsOnBad, async (live) => {
  const bad = complete(live, 'bad', { testSource: 'x'.repeat(1.1 * 2 ** 20) });
  const behind = ['a', 'b', 'c'].map((title) => complete(live, title));
  await until(() => live.isSetAside(bad) && accepted(live, behind).every(Boolean));
}));

test('events at fault that came together are found out by those behind them', () => withLive(failsOnBad, async (live, service) => {
  const bad = ['bad', 'bad', 'bad'].map((title) => complete(live, title));
  await until(() => eventRequests(service).length > 4);
  const behind = ['a', 'b', 'c'].map((title) => complete(live, title));
  await until(() => bad.every((key) => live.isSetAside(key)) && accepted(live, behind).every(Boolean));
}));

test('the last events of a run are set aside too, and the run that ends tells whether they were at fault', () => withLive(failsOnBad, async (live) => {
  const first = complete(live, 'a');
  assert.equal(await live.settle(deadlineIn(5_000)), true);
  const bad = ['bad', 'bad', 'bad'].map((title) => complete(live, title));
  assert.equal(await live.settle(deadlineIn(5_000)), true);
  assert.deepEqual([live.isAccepted(first), ...bad.map((key) => live.isSetAside(key))], [true, true, true, true]);
  assert.equal((await live.finish({}, deadlineIn(1_000)))?.['runId'], 7);
}));

test('all attempts of a test at fault are found in one batch', () => withLive(failsOnBad, async (live, service) => {
  const keys = ['bad', 'bad', 'bad', 'a', 'b', 'bad', 'c', 'd'].map((title) => complete(live, title));
  assert.equal(await live.settle(deadlineIn(5_000)), true);
  assert.deepEqual(accepted(live, keys), [false, false, false, true, true, false, true, true]);
  assert.equal(keys.filter((key) => live.isSetAside(key)).length, 4);
  assert.ok(eventRequests(service).length < 30);
}));

test('a service that fails on everything is waited for, and nothing is set aside', () => {
  let failures = 0;
  return withLive((request) => (isEvents(request) && failures++ < 20 ? FAILS : undefined), async (live, service) => {
    const keys = ['a', 'b', 'c', 'd', 'e', 'f'].map((title) => complete(live, title));
    await until(() => accepted(live, keys).every(Boolean));
    assert.ok(!keys.some((key) => live.isSetAside(key)));
    assert.ok(eventRequests(service).length < 30, 'with no more requests than without');
  });
});

test('a file the service fails on holds up no other, and is left to later', () => withLive(
  (request) => (isFiles(request) && fileNames(request).includes('bad') ? FAILS : undefined),
  async (live, service) => {
    const keys = [['bad', 'one'], ['bad'], ['two'], ['three'], ['four']].map((names, index) => complete(live, `${index}`, {}, names.map(file)));
    complete(live, 'last');
    await until(() => live.progress().filesSent === 4);
    assert.equal(await live.settle(deadlineIn(5_000)), true);
    assert.deepEqual(keys.map((key) => live.areFilesDone(key)), [false, false, true, true, true]);
    assert.deepEqual({ lost: live.filesLost, bytesLeft: live.progress().bytesLeft }, { lost: 0, bytesLeft: 6 });
    assert.equal((await live.finish({}, deadlineIn(1_000)))?.['runId'], 7);
    assert.ok(service.received.filter(isFiles).length < 25);
  }));

test('when the run is gone nothing more is sent to it', () => withLive(
  (request) => (isEvents(request) ? { status: 404, body: { code: 'run_not_found' } } : undefined),
  async (live, service) => {
    const key = complete(live, 'a', {}, [file('one')]);
    assert.equal(await live.settle(deadlineIn(5_000)), false);
    assert.equal(live.stoppedBy?.status, 404);
    assert.equal(live.isAccepted(key), false);
    assert.equal(await live.finish({}, deadlineIn(1_000)), undefined);
    assert.deepEqual(service.paths(), ['test-runs/start', 'test-runs/7/events']);
  }));

test('a queue at its bound lets go of what only animates, then leaves results to the end', () => {
  const queue = createEventQueue(100);
  const result = (json: string): { json: string; key: object } => ({ json, key: { json } });
  assert.ok(queue.push({ json: 's'.repeat(60) }));
  assert.ok(queue.push(result('a'.repeat(80))), 'the step makes room');
  assert.equal(queue.push(result('b'.repeat(30))), false);
  assert.equal(queue.push({ json: 's'.repeat(30) }), false);
  assert.equal(queue.length, 1);
  assert.deepEqual(queue.take(10, 1_000).map(({ json }) => json[0]), ['a']);
  assert.equal(queue.bytes, 0);
});

test('at the end of a run a pause is as long as the service asks, and no longer than there is time', async () => {
  const retries = createRetryPolicy();
  retries.hurry(deadlineIn(8_000));
  const triedAfterMs = async (failure: RequestFailed): Promise<number> => {
    const from = Date.now();
    let tries = 0;
    await retries.persist(async () => {
      if (tries++ === 0) throw failure;
    }, { pauseMs: () => 30_000 });
    return Date.now() - from;
  };
  assert.ok(await triedAfterMs(new RequestFailed('busy', 429, undefined, 2_000)) >= 1_950);
  // Of its own it would pause for longer than there is time.
  await triedAfterMs(new RequestFailed('broken', 503));
  await assert.rejects(triedAfterMs(new RequestFailed('busy', 429, undefined, 20_000)), /busy/);
});

test('signing in is tried no more often than the request it is for', async () => {
  const service = await startService(() => ({ status: 503, headers: AT_ONCE, body: {} }));
  const client = createClient(service.url, { kind: 'password', username: 'ada', password: 'secret' }, silent);
  const unlimited: Deadline = { signal: new AbortController().signal, remainingMs: () => Infinity };
  for (const tries of [1, 2]) {
    const before = service.received.length;
    await assert.rejects(client.send('/api/test-runs/start', jsonBody({}), unlimited, { tries }));
    assert.equal(service.received.length - before, tries);
  }
  assert.deepEqual(new Set(service.paths()), new Set(['auth/login']));
  await service.close();
});
