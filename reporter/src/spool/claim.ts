/**
 * Who is sending an entry. Several processes may flush one spool at once: the one that
 * lays its claim beside an entry sends it, the others leave it alone. A claim holds for
 * as long as its process is at work; what a killed one was sending is free for the next.
 */
import { lstat, rm, utimes, writeFile } from 'node:fs/promises';
import { readOwn } from './disk';
import { claimBeside, isAtWork, thisProcess, type Owner } from './entry';

/** Well within the time after which a process that gives no sign of life is given up. */
const REFRESH_MS = 60_000;
/** Only sending makes room on a full disk. */
const FULL = new Set<unknown>(['ENOSPC', 'EDQUOT']);

/** Returns how to give the entry back; undefined when another process is sending it. */
export async function claimEntry(entry: string): Promise<(() => Promise<void>) | undefined> {
  const file = claimBeside(entry);
  if (!await lay(file) && !(await removeAbandoned(file) && await lay(file))) return undefined;
  const timer = setInterval(() => {
    const now = new Date();
    utimes(file, now, now).catch(() => undefined);
  }, REFRESH_MS);
  timer.unref();
  return async () => {
    clearInterval(timer);
    // What stays is free as soon as this process has ended.
    await rm(file, { force: true }).catch(() => undefined);
  };
}

/** False when there is a claim already. */
async function lay(file: string): Promise<boolean> {
  try {
    await writeFile(file, JSON.stringify(thisProcess()), { mode: 0o600, flag: 'wx' });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') return false;
    if (!FULL.has(code)) throw error;
  }
  return true;
}

/** Of several processes that find a claim of a killed one, one at a time looks again and takes it away. */
async function removeAbandoned(file: string): Promise<boolean> {
  if (!await isAbandoned(file)) return false;
  // Without it a slow process might take away what a quick one has laid in the meantime.
  const turn = `${file}.turn`;
  try {
    await writeFile(turn, '', { mode: 0o600, flag: 'wx' });
  } catch {
    return false;
  }
  try {
    if (!await isAbandoned(file)) return false;
    await rm(file);
    return true;
  } finally {
    await rm(turn, { force: true });
  }
}

async function isAbandoned(file: string): Promise<boolean> {
  try {
    const { mtimeMs } = await lstat(file);
    return !isAtWork(ownerIn((await readOwn(file)).toString('utf8')), mtimeMs);
  } catch {
    // It was given back.
    return false;
  }
}

/** A claim that is being written names nobody yet: it is believed like one of another host. */
function ownerIn(claim: string): Owner {
  try {
    return JSON.parse(claim) as Owner;
  } catch {
    return { pid: 0, hostname: '' };
  }
}
