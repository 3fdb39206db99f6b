/**
 * How the spool touches the disk. The folder for temporary files may be shared by all
 * users of a machine, so a folder is used only when nobody else can put something there,
 * a file is believed only when this user wrote it, and nothing is written through a link
 * that somebody laid. Windows gives every user a folder of their own.
 */
import { constants, type Stats } from 'node:fs';
import { copyFile, lstat, open, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { makeFolders } from '../folders';

const WRITABLE_FOR_OTHERS = 0o022;
/** The mode of a folder that only its user opens. */
export const PRIVATE = 0o700;

export function isOwn(stats: Stats): boolean {
  const uid = userId();
  return uid === undefined || stats.uid === uid;
}

export async function isOwnFolder(dir: string): Promise<boolean> {
  const stats = await lstat(dir).catch(() => undefined);
  if (!stats?.isDirectory()) return false;
  return userId() === undefined || (isOwn(stats) && (stats.mode & WRITABLE_FOR_OTHERS) === 0);
}

/** Fails when there is a folder in this place that cannot be trusted. */
export async function makeOwnFolder(dir: string): Promise<void> {
  makeFolders(path.resolve(dir), PRIVATE);
  if (!await isOwnFolder(dir)) throw new Error(`${dir} belongs to another user or can be changed by others: set spoolDir`);
}

/** Folders in which runs may be kept: the one that is wished for, else one of this user beside it or in it. */
function candidates(spoolDir: string): string[] {
  const uid = userId();
  return uid === undefined ? [spoolDir] : [spoolDir, `${path.resolve(spoolDir)}-${uid}`, path.join(spoolDir, String(uid))];
}

export async function chooseSpoolFolder(spoolDir: string): Promise<string> {
  let failure: unknown;
  for (const dir of candidates(spoolDir)) {
    try {
      await makeOwnFolder(dir);
      return dir;
    } catch (error) {
      failure ??= error;
    }
  }
  throw failure;
}

/** All of them, because another was chosen while the first could not be trusted. */
export async function ownSpoolFolders(spoolDir: string): Promise<string[]> {
  const own = await Promise.all(candidates(spoolDir).map(isOwnFolder));
  return candidates(spoolDir).filter((_, index) => own[index]);
}

/** The content of a file this user wrote; links are not followed. */
export async function readOwn(file: string): Promise<Buffer> {
  const handle = await open(file, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0));
  try {
    const stats = await handle.stat();
    if (!stats.isFile() || !isOwn(stats)) throw new Error(`${file} belongs to another user`);
    return await handle.readFile();
  } finally {
    await handle.close();
  }
}

const BUSY = new Set<unknown>(['EPERM', 'EACCES', 'EBUSY']);
const BUSY_PAUSES_MS = [20, 50, 100, 200, 400, 800];

/** Windows does not rename over a file that somebody has open, and whoever reads it is soon done. */
export async function replaceFile(draft: string, file: string, move: typeof rename = rename): Promise<void> {
  for (const pauseMs of BUSY_PAUSES_MS) {
    try {
      await move(draft, file);
      return;
    } catch (error) {
      if (!BUSY.has((error as NodeJS.ErrnoException).code)) throw error;
    }
    await delay(pauseMs);
  }
  // Not at one stroke, but a file that stays open can still be written.
  await copyFile(draft, file);
  await rm(draft, { force: true });
}

/** Files are made with the effective user. */
function userId(): number | undefined {
  return process.geteuid?.();
}
