/**
 * Who is sending an entry. Several processes may flush one spool at once: the one that
 * lays its claim beside an entry sends it, the others leave it alone. A claim holds for
 * as long as its process is at work; what a killed one was sending is free for the next.
 */
import { randomUUID } from 'node:crypto';
import { lstat, rm, utimes, writeFile } from 'node:fs/promises';
import { readOwn } from './disk';
import { claimBeside, isAtWork, thisProcess, type Owner } from './entry';

/** Well within the time after which a process that gives no sign of life is given up. */
const REFRESH_MS = 60_000;
/** Only sending makes room on a full disk, and where nothing can be written no other process lays a claim either. */
const NOWHERE = new Set<unknown>(['ENOSPC', 'EDQUOT', 'EROFS', 'EACCES']);

/** Returns how to give the entry back; undefined when another process is sending it. */
export async function claimEntry(entry: string): Promise<(() => Promise<void>) | undefined> {
  const file = claimBeside(entry);
  const claim = JSON.stringify({ ...thisProcess(), claim: randomUUID() });
  if (!await lay(file, claim) && !(await removeAbandoned(file) && await lay(file, claim))) return undefined;
  const timer = setInterval(() => {
    const now = new Date();
    utimes(file, now, now).catch(() => undefined);
  }, REFRESH_MS);
  timer.unref();
  return async () => {
    clearInterval(timer);
    // One that stood still for long has lost it to another. What stays is free as soon as this process has ended.
    const now = await readOwn(file).catch(() => undefined);
    if (now?.toString('utf8') === claim) await rm(file, { force: true }).catch(() => undefined);
  };
}

/** False when there is a claim already. */
async function lay(file: string, claim: string): Promise<boolean> {
  try {
    await writeFile(file, claim, { mode: 0o600, flag: 'wx' });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') return false;
    if (!NOWHERE.has(code)) throw error;
  }
  return true;
}

/** Of several processes that find a claim of a killed one, one at a time looks again and takes it away. */
async function removeAbandoned(file: string): Promise<boolean> {
  if (!await isAbandoned(file)) return false;
  // Without it a slow process might take away what a quick one has laid in the meantime.
  const turn = `${file}.turn`;
  if (!await lay(turn, JSON.stringify(thisProcess()))) {
    // Killed in its turn: the next flush has it.
    if (await isAbandoned(turn)) await rm(turn, { force: true }).catch(() => undefined);
    return false;
  }
  try {
    if (!await isAbandoned(file)) return false;
    await rm(file);
    return true;
  } finally {
    await rm(turn, { force: true }).catch(() => undefined);
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
