/**
 * The folder of runs that could not be sent: bounded in number, age and size, the oldest
 * going first, and emptied by sending them as soon as their service answers.
 */
import { createHash } from 'node:crypto';
import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import type { Client, Deadline } from '../client';
import { deliverRun, type DeliveredRun } from '../delivery';
import { reasonOf } from '../failure';
import type { Log } from '../log';
import { deliverKeptReports } from '../report-delivery';
import { isEntry, isInUse, keepOnly, readEntry, readNote, removeEntry, sizeOfEntry, type SpoolNote } from './entry';

const ENTRIES_MAX = 20;
const AGE_MAX_MS = 14 * 24 * 60 * 60 * 1_000;

export function spoolFolder(spoolDir: string, projectName: string, origin: string): string {
  return path.join(spoolDir, createHash('sha256').update(`${projectName}|${origin}`).digest('hex').slice(0, 16));
}

export interface StoredEntry {
  file: string;
  modifiedAtMs: number;
}

/** Entries of one folder, the oldest first. Only our own: the folder may lie where everybody can write. */
export async function entriesIn(dir: string): Promise<StoredEntry[]> {
  const names = await readdir(dir).catch(() => [] as string[]);
  const found = await Promise.all(names.filter(isEntry).map(async (name) => {
    const file = path.join(dir, name);
    const stats = await stat(file).catch(() => undefined);
    const isOwn = stats !== undefined && (process.getuid === undefined || stats.uid === process.getuid());
    return isOwn ? [{ file, modifiedAtMs: stats.mtimeMs }] : [];
  }));
  return found.flat().sort((one, other) => one.modifiedAtMs - other.modifiedAtMs);
}

export async function allEntries(spoolDir: string): Promise<StoredEntry[]> {
  const folders = await readdir(spoolDir).catch(() => [] as string[]);
  const entries = await Promise.all(folders.map((folder) => entriesIn(path.join(spoolDir, folder))));
  return entries.flat().sort((one, other) => one.modifiedAtMs - other.modifiedAtMs);
}

export async function prune(spoolDir: string, bytesMax: number): Promise<void> {
  let bytes = 0;
  const newestFirst = (await allEntries(spoolDir)).reverse();
  for (const [index, { file, modifiedAtMs }] of newestFirst.entries()) {
    bytes += await sizeOfEntry(file).catch(() => 0);
    const isKept = index < ENTRIES_MAX && bytes <= bytesMax && Date.now() - modifiedAtMs <= AGE_MAX_MS;
    // The newest stays whatever its size: losing it would make the spool pointless.
    if (!isKept && index > 0) await removeEntry(file);
  }
}

export interface FlushParts {
  entries: readonly StoredEntry[];
  clientFor(note: SpoolNote): Client | undefined;
  deadline: Deadline;
  log: Log;
  tries: number;
  onSent(run: DeliveredRun, note: SpoolNote): void;
  onFailed(error: unknown, note: SpoolNote): void;
}

/** Sends entries as the runs they are; an entry is removed only when the service has it. */
export async function flushSpool(parts: FlushParts): Promise<void> {
  for (const { file, modifiedAtMs } of parts.entries) {
    const note = await readNote(file);
    if (!note || isInUse(note, modifiedAtMs)) continue;
    const client = parts.clientFor(note);
    if (!client || parts.deadline.signal.aborted) continue;
    try {
      const { deadline, log, tries } = parts;
      const { run, attempts, reports } = await readEntry(file, note);
      const sent = await deliverRun({ client, deadline, log, run, attempts, tries });
      if (sent.filesLeft.length > 0) {
        await keepOnly(file, note, sent.filesLeft.map((left) => left.file.content));
        throw new Error(`${sent.filesLeft.length} of its files did not arrive yet`);
      }
      const attached = { runId: sent.runId, projectName: run.projectName, startedAtMs: Date.parse(run.startTime) };
      await deliverKeptReports({ client, deadline, log, run: attached, reports, tries });
      await removeEntry(file);
      parts.onSent(sent, note);
    } catch (error) {
      parts.log.detail(`${path.basename(file)} stays spooled: ${reasonOf(error)}`);
      parts.onFailed(error, note);
    }
  }
}
