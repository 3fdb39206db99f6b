/**
 * Hashes of files that are asked for again and again: while the service is out of reach,
 * every snapshot of a run names all of its traces and videos.
 */
import { stat } from 'node:fs/promises';
import { sha256, type Content } from '../files';

export type Hashes = (content: Content, signal?: AbortSignal) => Promise<string>;

/** A file is read again only when its size or the time of its last change is another. */
export function createHashes(): Hashes {
  const known = new Map<string, { sizeBytes: number; modifiedAtMs: number; hash: string }>();
  return async (content, signal) => {
    if (content.kind === 'bytes') return sha256(content, signal);
    const { size: sizeBytes, mtimeMs: modifiedAtMs } = await stat(content.path);
    const before = known.get(content.path);
    // What was announced is hashed: a file that has grown since may not be taken for it.
    if (before && content.size === sizeBytes && before.sizeBytes === sizeBytes && before.modifiedAtMs === modifiedAtMs) return before.hash;
    const hash = await sha256(content, signal);
    if (content.size === sizeBytes) known.set(content.path, { sizeBytes, modifiedAtMs, hash });
    return hash;
  };
}
