/**
 * One run that could not be sent, on disk: the body of its submission, compressed, and
 * beside it where it was meant to go and which files belong to it. No credential is
 * written, and only the user who ran the tests may read it.
 */
import { randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { copyFile, link, mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { createGzip, gunzip } from 'node:zlib';
import type { OutgoingAttempt } from '../delivery';
import { read, sha256, type AttachmentFile, type Content } from '../files';
import { packReport, sendableEntries } from '../report-archive';
import type { Report } from '../reports';
import type { RunFields } from '../run';
import type { AttemptIdentity, TestCaseEntry } from '../test-case';
import type { OutgoingReport } from '../upload';

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

export interface SpoolNote {
  origin: string;
  projectName: string;
  /** The process that wrote it and is still at work on the run; null once it has given up. */
  owner: { pid: number; hostname: string } | null;
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
}

const SUFFIX = '.json.gz';
const NOTE_SUFFIX = '.files.json';
const FILES_SUFFIX = '.files';

/**
 * `isFinal` says that this process will not send the run any more; only then files are kept.
 * The entry stays in use until it is released: reports of the run may still be written.
 */
export async function writeEntry(
  target: SpoolTarget, run: RunFields, attempts: Iterable<OutgoingAttempt>, isFinal: boolean,
): Promise<string> {
  const base = path.join(target.dir, `${run.clientRunId}-${run.shardIndex ?? 0}`);
  await mkdir(target.dir, { recursive: true, mode: 0o700 });
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
  await pipeline(Readable.from(pieces(), { objectMode: false }), createGzip(), createWriteStream(draft, { mode: 0o600 }));
  const keeper = isFinal ? fileKeeper(`${base}${FILES_SUFFIX}`, target.filesMaxBytes) : undefined;
  const note: SpoolNote = {
    origin: target.origin,
    projectName: run.projectName,
    owner: { pid: process.pid, hostname: os.hostname() },
    files: [],
  };
  for (const { index, file } of files) {
    const kept = await spooledFile(index, file, keeper).catch(() => undefined);
    if (kept) note.files.push(kept);
  }
  await writeNote(`${base}${SUFFIX}`, note);
  await rename(draft, `${base}${SUFFIX}`);
  return `${base}${SUFFIX}`;
}

/** Leaves an entry to later processes, with the reports there are of its run by now. */
export async function releaseEntry(entry: string, reports: readonly Report[], filesMaxBytes: number): Promise<void> {
  const note = await readNote(entry);
  if (!note) return;
  const kept: SpooledReport[] = [];
  let room = filesMaxBytes - await sizeOfEntry(entry);
  for (const report of reports) {
    const spooled = await spooledReport(entry, report, kept.length).catch(() => undefined);
    if (spooled === undefined) continue;
    room -= spooled.size;
    if (room >= 0) kept.push(spooled);
    else await rm(spooled.path, { force: true });
  }
  await writeNote(entry, { ...note, owner: null, reports: kept });
}

/** Forgets the files that have arrived: the next time begins where this one ended. */
export async function keepOnly(entry: string, note: SpoolNote, left: readonly Content[]): Promise<void> {
  const places = new Set(left.flatMap((content) => (content.kind === 'file' ? [content.path] : [])));
  await writeNote(entry, { ...note, files: note.files.filter((file) => places.has(file.path)) });
}

async function writeNote(entry: string, note: SpoolNote): Promise<void> {
  const draft = `${beside(entry, NOTE_SUFFIX)}.${randomUUID()}`;
  await writeFile(draft, JSON.stringify(note), { mode: 0o600 });
  await rename(draft, beside(entry, NOTE_SUFFIX));
}

/** The next run writes its report to the same directory, so it is packed now. */
async function spooledReport(entry: string, { type, label, dir }: Report, number: number): Promise<SpooledReport> {
  const place = path.join(beside(entry, FILES_SUFFIX), `report-${number}.gz`);
  const entries = await sendableEntries(dir);
  await mkdir(path.dirname(place), { recursive: true, mode: 0o700 });
  await pipeline(packReport(entries), createWriteStream(place, { mode: 0o600 }));
  return { type, ...(label === undefined ? {} : { label }), path: place, size: (await stat(place)).size };
}

type Keeper = (file: AttachmentFile) => Promise<string | undefined>;

/** Results folders are emptied by the next run, so files are linked, or copied, to a place of ours. */
function fileKeeper(dir: string, bytesMax: number): Keeper {
  let bytes = 0;
  let count = 0;
  return async ({ content }) => {
    if (bytes + content.size > bytesMax) return undefined;
    await mkdir(dir, { recursive: true, mode: 0o700 });
    const place = path.join(dir, String(count++));
    bytes += content.size;
    await rm(place, { force: true });
    if (content.kind === 'bytes') await writeFile(place, content.bytes, { mode: 0o600 });
    else await link(content.path, place).catch(() => copyFile(content.path, place));
    return place;
  };
}

async function spooledFile(index: number, file: AttachmentFile, keep: Keeper | undefined): Promise<SpooledFile | undefined> {
  const { content, ...described } = file;
  const place = await keep?.(file) ?? (content.kind === 'file' ? content.path : undefined);
  return place === undefined ? undefined : { ...described, index, path: place, size: content.size, sha256: await sha256(content) };
}

export function isEntry(file: string): boolean {
  return file.endsWith(SUFFIX);
}

export async function readNote(entry: string): Promise<SpoolNote | undefined> {
  try {
    return JSON.parse(await readFile(beside(entry, NOTE_SUFFIX), 'utf8')) as SpoolNote;
  } catch {
    return undefined;
  }
}

/** The run with those of its files and reports that are still what they were. */
export async function readEntry(entry: string, note: SpoolNote): Promise<SpooledRun> {
  const body = await promisify(gunzip)(await readFile(entry));
  const { testCases, ...run } = JSON.parse(body.toString('utf8')) as RunFields & { testCases: Partial<TestCaseEntry>[] };
  const attempts: OutgoingAttempt[] = testCases.map((each) => ({ entry: each, identity: each as AttemptIdentity, files: [] }));
  for (const { index, path: place, size, sha256: hash, ...described } of note.files) {
    const content = { kind: 'file', path: place, size } as const;
    const isUnchanged = await sha256(content).then((now) => now === hash, () => false);
    if (isUnchanged) attempts[index]?.files.push({ ...described, content });
  }
  const reports: OutgoingReport[] = [];
  for (const { type, label, path: place, size } of note.reports ?? []) {
    const isUnchanged = await stat(place).then((now) => now.size === size, () => false);
    if (isUnchanged) reports.push({ type, label, size, open: () => read({ kind: 'file', path: place, size }) });
  }
  return { run: run as RunFields, attempts, reports };
}

export async function removeEntry(entry: string): Promise<void> {
  for (const file of [entry, beside(entry, NOTE_SUFFIX), beside(entry, FILES_SUFFIX)]) {
    await rm(file, { force: true, recursive: true });
  }
}

/** Bytes of the entry together with the files kept for it. */
export async function sizeOfEntry(entry: string): Promise<number> {
  const note = await readNote(entry);
  const own = [...note?.files ?? [], ...note?.reports ?? []].filter((file) => file.path.startsWith(beside(entry, FILES_SUFFIX)));
  return (await stat(entry)).size + own.reduce((total, { size }) => total + size, 0);
}

/** A process at work on its run refreshes the entry; without that the number may be another's by now. */
const REFRESHED_WITHIN_MS = 5 * 60 * 1_000;

export function isInUse({ owner }: SpoolNote, modifiedAtMs: number): boolean {
  if (!owner || Date.now() - modifiedAtMs > REFRESHED_WITHIN_MS) return false;
  // Nothing tells whether a process of another host that shares the folder still lives.
  if (owner.hostname !== os.hostname()) return true;
  try {
    process.kill(owner.pid, 0);
    return true;
  } catch {
    return false;
  }
}

function beside(entry: string, suffix: string): string {
  return entry.slice(0, -SUFFIX.length) + suffix;
}
