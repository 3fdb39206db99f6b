/**
 * One run that could not be sent, on disk: the body of its submission, compressed, and
 * beside it where it was meant to go and which files belong to it. No credential is
 * written, and only the user who ran the tests may read it.
 */
import { randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { lstat, readdir, rm, stat, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { createGzip, gunzip } from 'node:zlib';
import { reasonOf } from '../failure';
import { read, sha256, Unreadable, type AttachmentFile } from '../files';
import { makeFolders } from '../folders';
import type { OutgoingAttempt } from '../outgoing';
import { packReport, sendableEntries } from '../report-archive';
import type { Report } from '../reports';
import type { RunFields } from '../run';
import type { AttemptIdentity, TestCaseEntry } from '../test-case';
import type { OutgoingReport } from '../upload';
import { isOwn, isOwnFolder, makeOwnFolder, PRIVATE, readOwn, replaceFile } from './disk';
import type { Hashes } from './hashes';
import type { Keeper } from './keeper';

/** A file, and the result it belongs to by its position in the body. */
interface SpooledFile extends Omit<AttachmentFile, 'content'> {
  index: number;
  path: string;
  size: number;
  sha256: string;
}

/** A report of the whole run, packed as it is sent. */
interface SpooledReport {
  type: string;
  label?: string;
  path: string;
  size: number;
}

export interface Owner {
  pid: number;
  hostname: string;
}

export interface SpoolNote {
  origin: string;
  projectName: string;
  /** The process that wrote it and is still at work on the run; null once it has given up. */
  owner: Owner | null;
  files: SpooledFile[];
  /** Absent as long as the process that wrote it is at work. */
  reports?: SpooledReport[];
}

export interface SpoolTarget {
  /** Folder of the runs of one project on one service. */
  dir: string;
  origin: string;
  /** Bytes of files that may be kept beside the results. */
  filesMaxBytes: number;
}

export interface SpooledRun {
  run: RunFields;
  attempts: OutgoingAttempt[];
  reports: OutgoingReport[];
  /** Not to be read at present: worth another try. */
  unread: AttachmentFile[];
}

const SUFFIX = '.json.gz';
const NOTE_SUFFIX = '.files.json';
const FILES_SUFFIX = '.files';
const CLAIM_SUFFIX = '.claim';

export interface EntryWriting {
  /** The run is over, and whoever ran the tests waits for its files to be kept. */
  isFinal: boolean;
  keeper: Keeper;
  hashes: Hashes;
  /** Gives up writing; an earlier version of the entry stays. */
  signal?: AbortSignal;
}

/** Whoever ran the tests waits for this: files a slow disk did not take by then are not kept. */
const KEEP_FILES_MS = 30_000;

/** The entry stays in use until it is released: reports of the run may still be written. */
export async function writeEntry(
  target: SpoolTarget, run: RunFields, attempts: Iterable<OutgoingAttempt>, { isFinal, keeper, hashes, signal }: EntryWriting,
): Promise<string> {
  const base = path.join(target.dir, `${run.clientRunId}-${run.shardIndex ?? 0}`);
  await makeOwnFolder(target.dir);
  const files: { index: number; file: AttachmentFile }[] = [];
  function* pieces(): Generator<string> {
    yield `${JSON.stringify(run).slice(0, -1)},"testCases":[`;
    let index = 0;
    for (const attempt of attempts) {
      files.push(...attempt.files.map((file) => ({ index, file })));
      yield index === 0 ? JSON.stringify(attempt.entry) : `,${JSON.stringify(attempt.entry)}`;
      index++;
    }
    yield ']}';
  }
  const draft = `${base}.${randomUUID()}`;
  try {
    await pipeline(
      Readable.from(pieces(), { objectMode: false }), createGzip(), createWriteStream(draft, { mode: 0o600, flags: 'wx' }), { signal });
    const keep = ({ content }: AttachmentFile): Promise<string | undefined> => keeper(content, `${base}${FILES_SUFFIX}`, target.filesMaxBytes);
    const note: SpoolNote = {
      origin: target.origin,
      projectName: run.projectName,
      owner: thisProcess(),
      files: await spooledFiles(files, keep, hashes, isFinal ? AbortSignal.timeout(KEEP_FILES_MS) : signal),
    };
    signal?.throwIfAborted();
    await writeNote(`${base}${SUFFIX}`, note);
    await replaceFile(draft, `${base}${SUFFIX}`);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
  return `${base}${SUFFIX}`;
}

export interface UnkeptReport {
  report: Report;
  reason: string;
}

/** Puts reports of its run beside an entry; returns those that are not kept. */
export async function addReports(
  entry: string, reports: readonly Report[], filesMaxBytes: number,
): Promise<UnkeptReport[]> {
  const note = await readNote(entry);
  if (!note) return reports.map((report) => ({ report, reason: 'its run is not in the spool any more' }));
  const kept = [...note.reports ?? []];
  const unkept: UnkeptReport[] = [];
  let room = filesMaxBytes - await sizeOfEntry(entry);
  const signal = AbortSignal.timeout(KEEP_FILES_MS);
  for (const report of reports) {
    const place = path.join(beside(entry, FILES_SUFFIX), `report-${kept.length}.gz`);
    try {
      const spooled = await spooledReport(place, report, room, signal);
      room -= spooled.size;
      kept.push(spooled);
    } catch (error) {
      await rm(place, { force: true });
      unkept.push({ report, reason: signal.aborted ? 'there was no time left to pack it' : reasonOf(error) });
    }
  }
  if (kept.length > (note.reports ?? []).length) await writeNote(entry, { ...note, reports: kept });
  return unkept;
}

/** Leaves an entry to later processes. */
export async function releaseEntry(entry: string): Promise<void> {
  const note = await readNote(entry);
  if (note) await writeNote(entry, { ...note, owner: null });
}

/** Forgets the files that have arrived: the next time begins where this one ended. */
export async function keepOnly(entry: string, note: SpoolNote, left: readonly AttachmentFile[]): Promise<void> {
  // One place may be attached under several names.
  const key = (place: string, name: string): string => `${place}\n${name}`;
  const keys = new Set(left.flatMap(({ content, name }) => (content.kind === 'file' ? [key(content.path, name)] : [])));
  await writeNote(entry, { ...note, files: note.files.filter(({ path: place, name }) => keys.has(key(place, name))) });
}

async function writeNote(entry: string, note: SpoolNote): Promise<void> {
  const draft = `${beside(entry, NOTE_SUFFIX)}.${randomUUID()}`;
  await writeFile(draft, JSON.stringify(note), { mode: 0o600, flag: 'wx' });
  await replaceFile(draft, beside(entry, NOTE_SUFFIX));
}

/** The next run writes its report to the same directory, so it is packed now. */
async function spooledReport(
  place: string, { type, label, dir }: Report, room: number, signal: AbortSignal,
): Promise<SpooledReport> {
  const entries = await sendableEntries(dir);
  makeFolders(path.dirname(place), PRIVATE);
  await rm(place, { force: true });
  const file = createWriteStream(place, { mode: 0o600, flags: 'wx' });
  await pipeline(packReport(entries), atMost(room), file, { signal });
  return { type, ...(label === undefined ? {} : { label }), path: place, size: (await stat(place)).size };
}

/** A report may be many times larger than the room there is: what does not fit is not written first. */
function atMost(bytesMax: number) {
  return async function* (pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    let bytes = 0;
    for await (const piece of pieces) {
      bytes += piece.length;
      if (bytes > bytesMax) throw new Error('it does not fit into spoolMaxBytes');
      yield piece;
    }
  };
}

async function spooledFiles(
  files: readonly { index: number; file: AttachmentFile }[], keep: (file: AttachmentFile) => Promise<string | undefined>,
  hashes: Hashes, signal: AbortSignal | undefined,
): Promise<SpooledFile[]> {
  const spooled: SpooledFile[] = [];
  for (const { index, file } of files) {
    if (signal?.aborted) break;
    const { content, ...described } = file;
    try {
      const place = await keep(file) ?? (content.kind === 'file' ? content.path : undefined);
      if (place === undefined) continue;
      const { size } = content;
      spooled.push({ ...described, index, path: place, size, sha256: await hashes({ kind: 'file', path: place, size }, signal) });
    } catch {
      // It is gone, or was not read in time: the others are worth keeping all the same.
    }
  }
  return spooled;
}

export function isEntry(file: string): boolean {
  return file.endsWith(SUFFIX);
}

/** The entry that something lies beside; undefined for a draft. */
export function entryBeside(file: string): string | undefined {
  const suffix = [NOTE_SUFFIX, FILES_SUFFIX, CLAIM_SUFFIX].find((each) => file.endsWith(each));
  return suffix === undefined ? undefined : file.slice(0, -suffix.length) + SUFFIX;
}

export async function readNote(entry: string): Promise<SpoolNote | undefined> {
  try {
    return JSON.parse((await readOwn(beside(entry, NOTE_SUFFIX))).toString('utf8')) as SpoolNote;
  } catch {
    return undefined;
  }
}

/** The run with those of its files and reports that are still what they were. */
export async function readEntry(entry: string, note: SpoolNote, signal?: AbortSignal): Promise<SpooledRun> {
  const body = await promisify(gunzip)(await readOwn(entry));
  const { testCases, ...run } = JSON.parse(body.toString('utf8')) as RunFields & { testCases: Partial<TestCaseEntry>[] };
  const attempts: OutgoingAttempt[] = testCases.map((each) => ({ entry: each, identity: each as AttemptIdentity, files: [] }));
  const unread: AttachmentFile[] = [];
  for (const { index, path: place, size, sha256: hash, ...described } of note.files) {
    const file: AttachmentFile = { ...described, content: { kind: 'file', path: place, size } };
    try {
      if (await sha256(file.content, signal) === hash) attempts[index]?.files.push(file);
    } catch (error) {
      signal?.throwIfAborted();
      if (!(error instanceof Unreadable)) unread.push(file);
    }
  }
  const reports: OutgoingReport[] = [];
  for (const { type, label, path: place, size } of note.reports ?? []) {
    if (await isOwnReport(entry, place, size)) reports.push({ type, label, size, open: () => read({ kind: 'file', path: place, size }) });
  }
  return { run: run as RunFields, attempts, reports, unread };
}

/** No hash says what a report was, so it has to be what lies beside the entry and nothing a path or a link leads to. */
async function isOwnReport(entry: string, place: string, sizeBytes: number): Promise<boolean> {
  const folder = beside(entry, FILES_SUFFIX);
  if (path.resolve(place) !== path.join(path.resolve(folder), path.basename(place)) || !await isOwnFolder(folder)) return false;
  return lstat(place).then((now) => now.isFile() && isOwn(now) && now.size === sizeBytes, () => false);
}

export async function removeEntry(entry: string): Promise<void> {
  for (const file of [entry, beside(entry, NOTE_SUFFIX), beside(entry, FILES_SUFFIX)]) {
    await rm(file, { force: true, recursive: true });
  }
}

/** Bytes of the entry together with whatever lies beside it, whether its note names it or not. */
export async function sizeOfEntry(entry: string): Promise<number> {
  const folder = beside(entry, FILES_SUFFIX);
  const names = await readdir(folder).catch(() => [] as string[]);
  const sizes = await Promise.all([entry, beside(entry, NOTE_SUFFIX), ...names.map((name) => path.join(folder, name))]
    .map((file) => lstat(file).then(({ size }) => size, () => 0)));
  return sizes.reduce((total, size) => total + size, 0);
}

export function thisProcess(): Owner {
  return { pid: process.pid, hostname: os.hostname() };
}

/** A process at work refreshes what it has in hand; without that its number may be another's by now. */
const REFRESHED_WITHIN_MS = 5 * 60 * 1_000;

export function isAtWork(owner: Owner, refreshedAtMs: number): boolean {
  if (Date.now() - refreshedAtMs > REFRESHED_WITHIN_MS) return false;
  // Nothing tells whether a process of another host that shares the folder still lives.
  if (owner.hostname !== os.hostname()) return true;
  try {
    process.kill(owner.pid, 0);
    return true;
  } catch (error) {
    // It lives, and belongs to somebody else.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** The note of an entry that nobody is at work on; undefined also when there is no entry any more. */
export async function noteOfFree(entry: string): Promise<SpoolNote | undefined> {
  const note = await readNote(entry);
  // Asked now: what was seen when the entries were listed may be long ago.
  const stats = await lstat(entry).catch(() => undefined);
  return note && stats && !(note.owner && isAtWork(note.owner, stats.mtimeMs)) ? note : undefined;
}

export function claimBeside(entry: string): string {
  return beside(entry, CLAIM_SUFFIX);
}

function beside(entry: string, suffix: string): string {
  return entry.slice(0, -SUFFIX.length) + suffix;
}
