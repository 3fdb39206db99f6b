/**
 * The files of a run that waits: results folders are emptied by the next run, so files are
 * linked, or copied, to a place of ours, and what is held in memory is written there.
 */
import { constants } from 'node:fs';
import { copyFile, link, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Content } from '../files';
import { makeFolders } from '../folders';
import { PRIVATE } from './disk';

/** Where a file is kept; undefined when there is no more room. */
export type Keeper = (content: Content, dir: string, bytesMax: number) => Promise<string | undefined>;

interface Kept {
  place: string;
  sizeBytes: number;
  /** Of the file it was made of; undefined for what was held in memory. */
  modifiedAtMs: number | undefined;
}

/** The files of one run, which is written again and again while it goes on: each is put there once. */
export function createKeeper(): Keeper {
  const known = new Map<string | Uint8Array, Kept>();
  let bytes = 0;
  let count = 0;
  return async (content, dir, bytesMax) => {
    const source = content.kind === 'bytes' ? content.bytes : content.path;
    // It may be gone by now, which does no harm to what is kept of it.
    const modifiedAtMs = content.kind === 'bytes' ? undefined : await stat(content.path).then(({ mtimeMs }) => mtimeMs, () => undefined);
    const before = known.get(source);
    if (before) {
      const isSame = before.sizeBytes === content.size && (modifiedAtMs === undefined || modifiedAtMs === before.modifiedAtMs);
      const isThere = await stat(before.place).then(({ size }) => size === content.size, () => false);
      if (isSame && isThere) return before.place;
      known.delete(source);
      if (!isThere) bytes -= before.sizeBytes;
    }
    if (bytes + content.size > bytesMax) return undefined;
    makeFolders(dir, PRIVATE);
    const place = path.join(dir, String(count++));
    await rm(place, { force: true });
    if (content.kind === 'bytes') await writeFile(place, content.bytes, { mode: 0o600, flag: 'wx' });
    else await link(content.path, place).catch(() => copyFile(content.path, place, constants.COPYFILE_EXCL));
    // Only now: a file that is gone by then takes no room from the others.
    bytes += content.size;
    known.set(source, { place, sizeBytes: content.size, modifiedAtMs });
    return place;
  };
}
