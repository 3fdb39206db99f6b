/**
 * The folder of runs that could not be sent: bounded in number, age and size, the oldest
 * going first, and emptied by sending them as soon as their service answers.
 */
import { createHash } from 'node:crypto';
import { lstat, readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import type { Client, Deadline } from '../client';
import { UNKNOWN_CAPABILITIES, type ServiceCapabilities } from '../capabilities';
import { deliverRun } from '../delivery';
import { reasonOf } from '../failure';
import type { Log } from '../log';
import type { DeliveredRun } from '../outgoing';
import { deliverKeptReports } from '../report-delivery';
import { claimEntry } from './claim';
import { isOwn, isOwnFolder, ownSpoolFolders } from './disk';
import { entryBeside, isEntry, keepOnly, noteOfFree, readEntry, removeEntry, sizeOfEntry, type SpoolNote } from './entry';

const ENTRIES_MAX = 20;
const AGE_MAX_MS = 14 * 24 * 60 * 60 * 1_000;

/** A writer renames its draft within moments; what is older was left by a process that was killed. */
const LEFTOVER_AGE_MS = 24 * 60 * 60 * 1_000;
const RUNS_FOLDER = /^[0-9a-f]{16}$/;

/** Name of the folder for the runs of one project on one service. */
export function runsFolder(projectName: string, origin: string): string {
  return createHash('sha256').update(`${projectName}|${origin}`).digest('hex').slice(0, 16);
}

export interface StoredEntry {
  file: string;
  modifiedAtMs: number;
}

/** Entries of some folders, the oldest first. Only what this user wrote: a folder may lie where everybody can write. */
export async function entriesIn(...dirs: readonly string[]): Promise<StoredEntry[]> {
  const found: StoredEntry[] = [];
  for (const dir of dirs) {
    if (!await isOwnFolder(dir)) continue;
    for (const name of (await namesIn(dir)).filter(isEntry)) {
      const file = path.join(dir, name);
      const stats = await lstat(file).catch(() => undefined);
      if (stats?.isFile() && isOwn(stats)) found.push({ file, modifiedAtMs: stats.mtimeMs });
    }
  }
  return found.sort((one, other) => one.modifiedAtMs - other.modifiedAtMs);
}

export async function entriesOf(spoolDir: string, projectName: string, origin: string): Promise<StoredEntry[]> {
  const folders = await ownSpoolFolders(spoolDir);
  return entriesIn(...folders.map((folder) => path.join(folder, runsFolder(projectName, origin))));
}

export async function allEntries(spoolDir: string): Promise<StoredEntry[]> {
  return entriesIn(...await runsFolders(spoolDir));
}

export async function prune(spoolDir: string, bytesMax: number): Promise<void> {
  let bytes = 0;
  const newestFirst = (await allEntries(spoolDir)).reverse();
  for (const [index, { file, modifiedAtMs }] of newestFirst.entries()) {
    bytes += await sizeOfEntry(file);
    const isKept = index < ENTRIES_MAX && bytes <= bytesMax && Date.now() - modifiedAtMs <= AGE_MAX_MS;
    // The newest stays whatever its size: losing it would make the spool pointless.
    if (!isKept && index > 0) await removeEntry(file);
  }
  for (const dir of await runsFolders(spoolDir)) await removeLeftovers(dir);
}

/** Drafts, and notes and files of entries that are gone: no limit counts them. */
async function removeLeftovers(dir: string): Promise<void> {
  if (!await isOwnFolder(dir)) return;
  const names = await namesIn(dir);
  const entries = new Set(names.filter(isEntry));
  for (const name of names) {
    if (entries.has(name) || entries.has(entryBeside(name) ?? '')) continue;
    const file = path.join(dir, name);
    const stats = await lstat(file).catch(() => undefined);
    if (stats && isOwn(stats) && Date.now() - stats.mtimeMs > LEFTOVER_AGE_MS) await rm(file, { force: true, recursive: true });
  }
}

async function runsFolders(spoolDir: string): Promise<string[]> {
  const found: string[] = [];
  for (const folder of await ownSpoolFolders(spoolDir)) {
    found.push(...(await namesIn(folder)).filter((name) => RUNS_FOLDER.test(name)).map((name) => path.join(folder, name)));
  }
  return found;
}

function namesIn(dir: string): Promise<string[]> {
  return readdir(dir).catch(() => []);
}

export interface FlushParts {
  entries: readonly StoredEntry[];
  clientFor(note: SpoolNote): Client | undefined;
  deadline: Deadline;
  log: Log;
  tries: number;
  /** What the service offers; unknown when absent. */
  capabilities?: ServiceCapabilities;
  /** Somebody waits for the end: long work prints a line now and then. */
  isWaitedFor?: boolean;
  onSent(run: DeliveredRun, note: SpoolNote): void;
  onFailed(error: unknown, note: SpoolNote): void;
}

/** Sends entries as the runs they are; an entry is removed only when the service has it. */
export async function flushSpool(parts: FlushParts): Promise<void> {
  for (const { file } of parts.entries) {
    const note = await noteOfFree(file);
    const client = note && parts.clientFor(note);
    if (!client || parts.deadline.signal.aborted) continue;
    let release: (() => Promise<void>) | undefined;
    try {
      release = await claimEntry(file);
      // Whoever had it until now may have sent it, or a part of it.
      const left = release && await noteOfFree(file);
      if (left) await sendEntry(file, left, client, parts);
    } catch (error) {
      parts.log.detail(`${path.basename(file)} was not sent: ${reasonOf(error)}`);
      // Otherwise another process has it, or has sent it.
      if (await noteOfFree(file)) parts.onFailed(error, note);
    } finally {
      await release?.();
    }
  }
}

async function sendEntry(file: string, note: SpoolNote, client: Client, parts: FlushParts): Promise<void> {
  const { deadline, log, tries, onSent, isWaitedFor = false } = parts;
  const capabilities = parts.capabilities ?? { ...UNKNOWN_CAPABILITIES };
  const { run, attempts, reports, unread } = await readEntry(file, note, deadline.signal);
  const sent = await deliverRun({ client, deadline, log, run, attempts, tries, capabilities, isWaitedFor });
  const filesLeft = [...sent.filesLeft.map((left) => left.file), ...unread];
  const isLeft = filesLeft.length + sent.resultsLeft.length > 0;
  if (isLeft) await keepOnly(file, note, filesLeft);
  // Its reports do not wait for files that may never be read.
  if (sent.filesLeft.length + sent.resultsLeft.length === 0) {
    const { projectName, clientRunId } = run;
    const attached = { runId: sent.runId, projectName, clientRunId, startedAtMs: Date.parse(run.startTime) };
    await deliverKeptReports({ client, deadline, log, run: attached, reports, tries, capabilities, isWaitedFor });
  }
  if (isLeft) throw new Error(`${sent.resultsLeft.length} of its results and ${filesLeft.length} of its files did not arrive yet`);
  await removeEntry(file);
  onSent(sent, note);
}
