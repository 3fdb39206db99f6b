/**
 * The last run that was sent from a folder, remembered for the command `summary` where only this user can read it.
 */
import { createHash, randomUUID } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { isRecord } from './options';
import { chooseSpoolFolder, makeOwnFolder, ownSpoolFolders, readOwn, replaceFile } from './spool/disk';

export interface LastRun {
  runId: number;
  /** Origin of the service. */
  origin: string;
}

const FOLDER = 'last-runs';

export async function rememberRun(spoolDir: string, workingDirectory: string, run: LastRun): Promise<void> {
  const dir = path.join(await chooseSpoolFolder(spoolDir), FOLDER);
  await makeOwnFolder(dir);
  const file = path.join(dir, nameFor(workingDirectory));
  const draft = `${file}.${randomUUID()}`;
  try {
    await writeFile(draft, JSON.stringify(run), { mode: 0o600, flag: 'wx' });
    await replaceFile(draft, file);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

/** Undefined where no run was sent from this folder. */
export async function lastRunOf(spoolDir: string, workingDirectory: string): Promise<LastRun | undefined> {
  for (const folder of await ownSpoolFolders(spoolDir)) {
    try {
      const run: unknown = JSON.parse((await readOwn(path.join(folder, FOLDER, nameFor(workingDirectory)))).toString('utf8'));
      if (isRecord(run) && typeof run['runId'] === 'number' && typeof run['origin'] === 'string') {
        return { runId: run['runId'], origin: run['origin'] };
      }
    } catch {
      // Not here.
    }
  }
  return undefined;
}

function nameFor(workingDirectory: string): string {
  return `${createHash('sha256').update(path.resolve(workingDirectory)).digest('hex').slice(0, 16)}.json`;
}
