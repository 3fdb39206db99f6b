/** Runs kept on disk: when they are sent, when they stay, and whose they are. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { rename, utimes } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { createClient, deadlineIn, RequestFailed } from '../src/client';
import { flushCommand } from '../src/commands/flush';
import type { OutgoingAttempt } from '../src/outgoing';
import type { LeftReport } from '../src/report-delivery';
import { chooseSpoolFolder, replaceFile } from '../src/spool/disk';
import { readEntry, readNote, releaseEntry, type SpoolNote } from '../src/spool/entry';
import { createHashes } from '../src/spool/hashes';
import { createKeeper } from '../src/spool/keeper';
import { createRunSpool, type RunSpool } from '../src/spool/run-spool';
import { entriesIn, flushSpool, prune, runsFolder, type StoredEntry } from '../src/spool/spool';
import { field, startService, type Received, type Reply, type Service } from './service';
import { folder, keep, noteOf, results, RUN, silent } from './spool-entries';

const onPosix = { skip: process.geteuid === undefined };
const asRoot = { skip: process.geteuid?.() !== 0 };

async function withSpool(
  reply: (request: Received, count: number) => Reply,
  check: (spool: { service: Service; entry: string; flush(entries?: readonly StoredEntry[]): Promise<string[]> }) => Promise<void>,
  attempts = results(),
): Promise<void> {
  const service = await startService(reply);
  const dir = folder();
  const entry = await keep(dir, service.url, attempts);
  const flush = async (entries?: readonly StoredEntry[]): Promise<string[]> => {
    const sent: string[] = [];
    await flushSpool({
      entries: entries ?? await entriesIn(dir), deadline: deadlineIn(10_000), log: silent, tries: 1,
      clientFor: () => createClient(service.url, { kind: 'none' }, silent),
      onSent: () => sent.push('sent'),
      onFailed: () => sent.push('stays'),
    });
    return sent;
  };
  try {
    await check({ service, entry, flush });
  } finally {
    await service.close();
  }
}

const attached = ({ received }: Service): string[] => received.filter(({ path: where }) => where.endsWith('upload'))
  .flatMap(({ form }) => field<{ name: string }[]>(form, 'attach_meta_0').map(({ name }) => name));

test('a run stays in the spool until its last file has arrived', () => {
  let isBroken = true;
  return withSpool(
    ({ path: where, form }) => {
      const isLast = where.endsWith('upload') && field<{ name: string }[]>(form, 'attach_meta_0').some(({ name }) => name === 'b');
      return isLast && isBroken ? { status: 503, body: {} } : {};
    },
    async ({ service, entry, flush }) => {
      await releaseEntry(entry);
      assert.deepEqual(await flush(), ['stays']);
      isBroken = false;
      assert.deepEqual(await flush(), ['sent']);
      assert.deepEqual(await flush(), [], 'it is gone');
      assert.deepEqual(attached(service), ['a', 'b', 'b'], 'what has arrived is not sent again');
    });
});

test('a run stays in the spool for the one result the service fails on, and goes when that has arrived', () => {
  let isBroken = true;
  return withSpool(
    ({ json, form }) => (isBroken && `${JSON.stringify(json)}${String(form.get('testCases'))}`.includes('"one"') ? { status: 500, body: {} } : {}),
    async ({ service, entry, flush }) => {
      await releaseEntry(entry);
      assert.deepEqual(await flush(), ['stays']);
      const submitted = service.received.flatMap(({ json }) => [json['testCases'] as { title: string }[] | undefined ?? []].flat());
      assert.ok(submitted.some(({ title }) => title === 'two'));
      isBroken = false;
      assert.deepEqual(await flush(), ['sent']);
      assert.deepEqual(await flush(), [], 'it is gone');
    },
    [...results(), { identity: { title: 'two' } as OutgoingAttempt['identity'], entry: { title: 'two' }, files: [] }]);
});

test('what a process is still at work on is left to it, on whatever host it is', () => withSpool(() => ({}), async ({ service, entry, flush }) => {
  assert.deepEqual(await flush(), [], 'this process wrote it');
  const noteFile = noteOf(entry);
  const note = JSON.parse(readFileSync(noteFile, 'utf8')) as SpoolNote;
  writeFileSync(noteFile, JSON.stringify({ ...note, owner: { pid: 1, hostname: 'another' } } satisfies SpoolNote));
  assert.deepEqual(await flush(), [], 'it was written a moment ago');
  const longAgo = new Date(Date.now() - 6 * 60_000);
  await utimes(entry, longAgo, longAgo);
  assert.deepEqual(await flush(), ['sent']);
  assert.equal(service.paths()[0], 'test-runs/submit');
}));

test('a run is in use also when it was not when the spool was listed', () => withSpool(() => ({}), async ({ service, entry, flush }) => {
  const longAgo = new Date(Date.now() - 6 * 60_000);
  await utimes(entry, longAgo, longAgo);
  const listed = await entriesIn(path.dirname(entry));
  await utimes(entry, new Date(), new Date());
  assert.deepEqual(await flush(listed), []);
  assert.deepEqual(service.paths(), []);
}));

test('a file that cannot be read at present stays in the spool when its run is sent', () => withSpool(() => ({}), async ({ service, entry, flush }) => {
  await releaseEntry(entry);
  const file = path.join(entry.replace(/\.json\.gz$/, '.files'), '0');
  const content = readFileSync(file);
  rmSync(file);
  // Unlike a file that is gone this one may come back, as those of a file system over the network do.
  symlinkSync(file, file);
  assert.deepEqual(await flush(), ['stays']);
  assert.deepEqual([service.paths(), attached(service)], [['test-runs/submit'], []]);
  rmSync(file);
  writeFileSync(file, content);
  assert.deepEqual(await flush(), ['sent']);
  assert.deepEqual(attached(service), ['a', 'b']);
}, results(1_000)));

test('the files of a run are read only for as long as somebody waits for it', () => withSpool(() => ({}), async ({ entry }) => {
  const note = await readNote(entry);
  await assert.rejects(readEntry(entry, note!, AbortSignal.abort()), { name: 'AbortError' });
  assert.equal((await readEntry(entry, note!)).attempts[0]!.files.length, 2);
}, results(1_000)));

test('a folder others may write to is neither sent from nor written to', onPosix, () => withSpool(() => ({}), async ({ service, entry, flush }) => {
  await releaseEntry(entry);
  const dir = path.dirname(entry);
  chmodSync(dir, 0o777);
  assert.deepEqual(await flush(), []);
  await assert.rejects(keep(dir, service.url), /can be changed by others: set spoolDir/);
  chmodSync(dir, 0o700);
  assert.deepEqual(await flush(), ['sent']);
}));

test('where no folder can be made the run is told, and ends', { skip: !existsSync('/proc/self') }, async () => {
  await assert.rejects(keep('/proc/callboard/runs', 'http://a.example'), /ENOENT/);
});

test('a note or a run that another user wrote is left alone', asRoot, () => withSpool(() => ({}), async ({ service, entry, flush }) => {
  await releaseEntry(entry);
  for (const file of [entry, noteOf(entry)]) {
    chownSync(file, 4_321, 4_321);
    assert.deepEqual(await flush(), [], file);
    chownSync(file, 0, 0);
  }
  assert.deepEqual(service.paths(), []);
  assert.deepEqual(await flush(), ['sent']);
}));

test('a report is sent from beside its run and from nowhere else, whatever the note says', () => withSpool(() => ({}), async ({ service, entry, flush }) => {
  await releaseEntry(entry);
  const secret = path.join(folder(), 'secret');
  writeFileSync(secret, 'secret');
  const beside = path.join(entry.replace(/\.json\.gz$/, '.files'), 'link.gz');
  symlinkSync(secret, beside);
  const note = JSON.parse(readFileSync(noteOf(entry), 'utf8')) as SpoolNote;
  const reports = [secret, path.join(path.dirname(beside), '../..', path.relative(path.resolve(beside, '../../..'), secret)), beside]
    .map((place) => ({ type: 'html', path: place, size: 6 }));
  writeFileSync(noteOf(entry), JSON.stringify({ ...note, reports }));
  assert.deepEqual(await flush(), ['sent']);
  assert.ok(!service.received.some(({ form }) => form.has('report_html')));
}));

test('of the reports of a run only those are kept that find room, and the others are named', async () => {
  const spoolDir = folder();
  const lines: string[] = [];
  const log = { ...silent, warn: (line: string) => void lines.push(line) };
  const spool = createRunSpool({
    settings: { spoolDir, spoolMaxBytes: 4_000 }, origin: 'http://a.example', projectName: 'shop', log,
    client: createClient('http://a.example', { kind: 'none' }, log),
  });
  const left = (type: string, sizeBytes: number): LeftReport => {
    const dir = folder();
    writeFileSync(path.join(dir, 'index.html'), randomBytes(sizeBytes));
    return { report: { type, dir, label: undefined }, error: new RequestFailed('HTTP 503', 503) };
  };
  await spool.keepReports(RUN, [left('large', 5_000)]);
  assert.match(lines.pop()!, /^the large report could not be sent: HTTP 503, and is not kept: it does not fit into spoolMaxBytes$/);
  assert.deepEqual(kept(spoolDir), [], 'there is nothing to send');
  await spool.keepReports(RUN, [left('large', 5_000), left('html', 1_000)]);
  await spool.keepReports(RUN, [left('later', 1_000)]);
  await spool.release([]);
  assert.match(lines.join(), /the large report .* does not fit .*,the html report .*, spooled to .*,the later report .*, spooled to/);
  const [entry] = await entriesIn(path.join(spoolDir, runsFolder('shop', 'http://a.example')));
  const note = JSON.parse(readFileSync(noteOf(entry!.file), 'utf8')) as SpoolNote;
  assert.deepEqual(note.reports!.map(({ type, path: place, size }) => [type, statSync(place).size === size]), [['html', true], ['later', true]]);
  assert.equal(note.owner, null);
});

test('where the folder cannot be trusted, one of this user is taken', onPosix, async () => {
  const wished = path.join(folder(), 'spool');
  assert.equal(await chooseSpoolFolder(wished), wished);
  chmodSync(wished, 0o777);
  assert.equal(await chooseSpoolFolder(wished), `${wished}-${process.geteuid!()}`);
  const laid = path.join(folder(), 'spool');
  symlinkSync(wished, laid);
  assert.equal(await chooseSpoolFolder(laid), `${laid}-${process.geteuid!()}`);
});

test('flush gives credentials only to the service it was told', async () => {
  const service = await startService(({ headers }) => (headers.authorization ? {} : { status: 401, body: { message: 'Who are you?' } }));
  try {
    const spoolDir = folder();
    const entry = await keep(path.join(spoolDir, runsFolder('shop', service.url)), service.url, []);
    await releaseEntry(entry);
    const lines: string[] = [];
    const env = { SERVICE_SPOOL_DIR: spoolDir, SERVICE_API_KEY: 'pd_1' };
    const flush = (url?: string): Promise<number> => flushCommand({ env, url, print: (line) => void lines.push(line) });
    assert.equal(await flush(), 1);
    assert.match(lines.at(-1)!, new RegExp(`named, with --url ${service.url}`));
    assert.equal(await flush('http://127.0.0.1:9'), 0);
    assert.ok(service.received.every(({ headers }) => headers.authorization === undefined));
    assert.equal(await flush(service.url), 0);
    assert.equal(service.received.at(-1)!.headers.authorization, 'Bearer pd_1');
  } finally {
    await service.close();
  }
});

test('what killed processes left is removed after a day, and counts until then', async () => {
  const spoolDir = folder();
  const dir = path.join(spoolDir, runsFolder('shop', 'http://a.example'));
  const entry = await keep(dir, 'http://a.example', []);
  const name = path.basename(entry, '.json.gz');
  const files = path.join(dir, 'gone-0.files');
  mkdirSync(files);
  const leftovers = [`${name}.5e0b1f6e-draft`, `${name}.files.json.5e0b1f6e-draft`, 'gone-0.files.json'].map((each) => path.join(dir, each));
  for (const file of [...leftovers, path.join(files, '0')]) writeFileSync(file, 'x');
  writeFileSync(path.join(spoolDir, 'not-of-the-spool'), 'x');
  await prune(spoolDir, 2 ** 30);
  assert.equal(readdirSync(dir).length, 6, 'somebody may be writing them');
  const longAgo = new Date(Date.now() - 25 * 60 * 60_000);
  for (const file of [...leftovers, files, entry, noteOf(entry), path.join(spoolDir, 'not-of-the-spool')]) utimesSync(file, longAgo, longAgo);
  await prune(spoolDir, 2 ** 30);
  assert.deepEqual(readdirSync(dir).sort(), [path.basename(noteOf(entry)), path.basename(entry)].sort());
  assert.ok(existsSync(path.join(spoolDir, 'not-of-the-spool')));
});

test('a file that somebody has open is replaced a little later, or written where it lies', async () => {
  const dir = folder();
  const [draft, file] = [path.join(dir, 'draft'), path.join(dir, 'file')];
  const busy = (times: number): typeof rename => async (from, to) => {
    if (times-- > 0) throw Object.assign(new Error('EPERM: operation not permitted'), { code: 'EPERM' });
    await rename(from, to);
  };
  for (const [text, times] of [['soon', 2], ['never', Infinity]] as const) {
    writeFileSync(draft, text);
    await replaceFile(draft, file, busy(times));
    assert.equal(readFileSync(file, 'utf8'), text);
    assert.deepEqual(readdirSync(dir), ['file']);
  }
});

test('a file that is gone takes no room from the others', async () => {
  const dir = folder();
  const keeper = createKeeper();
  await assert.rejects(keeper({ kind: 'file', path: path.join(dir, 'gone'), size: 8 }, dir, 10), /ENOENT/);
  const place = await keeper({ kind: 'bytes', bytes: Buffer.from('a note'), size: 6 }, dir, 10);
  assert.equal(readFileSync(place!, 'utf8'), 'a note');
  assert.equal(await keeper({ kind: 'bytes', bytes: Buffer.from('there'), size: 5 }, dir, 10), undefined);
});

test('a file is read for its hash only when it is another than before', async () => {
  const place = path.join(folder(), 'video');
  const hashes = createHashes();
  const write = (text: string, at: number): Promise<string> => {
    writeFileSync(place, text);
    utimesSync(place, at, at);
    return hashes({ kind: 'file', path: place, size: text.length });
  };
  const first = await write('one', 1_000);
  assert.equal(await write('two', 1_000), first, 'neither time nor size says that it is another');
  assert.notEqual(await write('two', 2_000), first);
});

/** A run that is never done with a snapshot, or done with it at once. */
async function watched(check: (parts: {
  spool: RunSpool; spoolDir: string; run: { changes: number; isOffline: boolean; snapshots: number; attempts(): Iterable<OutgoingAttempt> };
}) => Promise<void>): Promise<void> {
  const spoolDir = folder();
  const spool = createRunSpool({
    settings: { spoolDir, spoolMaxBytes: 2 ** 30 }, origin: 'http://a.example', projectName: 'shop',
    client: createClient('http://a.example', { kind: 'none' }, silent), log: silent, snapshotIntervalMs: 5,
  });
  const run = { changes: 0, isOffline: true, snapshots: 0, attempts: (): Iterable<OutgoingAttempt> => [] };
  spool.watch({
    isOffline: () => run.isOffline,
    changes: () => run.changes,
    async snapshot() {
      run.snapshots++;
      return { run: RUN, attempts: run.attempts() };
    },
  });
  const alive = setInterval(() => undefined, 1_000);
  try {
    await check({ spool, spoolDir, run });
  } finally {
    await spool.forget();
    clearInterval(alive);
  }
}

const kept = (spoolDir: string): string[] => readdirSync(spoolDir, { recursive: true }).map(String).filter((name) => name.includes('run-0001'));

async function until(isTrue: () => boolean): Promise<void> {
  for (let waited = 0; !isTrue(); waited += 5) {
    assert.ok(waited < 5_000, 'it never came true');
    await delay(5);
  }
}

test('a run out of reach is written again only when there is something new, and goes when the service is back', () => watched(
  async ({ spoolDir, run }) => {
    await until(() => kept(spoolDir).some((name) => name.endsWith('.json.gz')));
    await delay(100);
    assert.equal(run.snapshots, 1);
    run.changes++;
    await until(() => run.snapshots === 2);
    run.isOffline = false;
    await until(() => kept(spoolDir).length === 0);
  }));

test('what is kept of a run that goes on has its files, once, also when their folder is emptied', () => watched(async ({ spoolDir, run }) => {
  const place = path.join(folder(), 'trace.zip');
  writeFileSync(place, 'a trace');
  const note = Buffer.from('a note');
  const described = { contentType: 'text/plain', originalName: 'any' };
  const [result] = results();
  result!.files = [
    { ...described, kind: 'trace', name: 'trace', content: { kind: 'file', path: place, size: 7 } },
    { ...described, kind: 'attachment', name: 'note', content: { kind: 'bytes', bytes: note, size: note.length } },
  ];
  run.attempts = () => [result!];
  const waits = async (): Promise<string[]> => {
    const [entry] = await entriesIn(path.join(spoolDir, runsFolder('shop', 'http://a.example')));
    const written = entry && await readNote(entry.file);
    const files = written ? (await readEntry(entry.file, written)).attempts[0]?.files ?? [] : [];
    return files.map(({ name, content }) => `${name}: ${content.kind === 'file' ? readFileSync(content.path, 'utf8') : ''}`);
  };
  for (const emptied of [false, true]) {
    if (emptied) rmSync(place);
    const before = run.snapshots;
    run.changes++;
    // The one after it begins when it is written.
    await until(() => run.snapshots > before);
    run.changes++;
    await until(() => run.snapshots > before + 1);
    assert.deepEqual(await waits(), ['trace: a trace', 'note: a note']);
  }
  assert.equal(kept(spoolDir).filter((name) => /\.files.\d+$/.test(name)).length, 2);
}));

test('a snapshot that takes long is neither joined by another nor waited for at the end', { timeout: 120_000 }, () => watched(async ({ spool, spoolDir, run }) => {
  run.attempts = function* () {
    for (;;) yield results()[0]!;
  };
  await until(() => run.snapshots === 1);
  run.changes++;
  await delay(100);
  assert.equal(run.snapshots, 1);
  run.attempts = () => [];
  const entry = await spool.keep(RUN, []);
  assert.deepEqual(kept(spoolDir).map((name) => path.basename(name)).sort(), [path.basename(noteOf(entry)), path.basename(entry)].sort());
}));
