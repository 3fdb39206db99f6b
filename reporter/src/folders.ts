import { mkdirSync, statSync } from 'node:fs';
import path from 'node:path';

/**
 * Makes a folder and those above it. A recursive `mkdir` of Node does not do: it tries for
 * ever where a file system answers that nothing can be made in a folder because there is no
 * such thing, as `/proc` does, and the run would never end.
 */
export function makeFolders(dir: string, mode?: number): void {
  if (isFolder(dir)) return;
  const above = path.dirname(dir);
  if (above !== dir) makeFolders(above, mode);
  try {
    mkdirSync(dir, mode);
  } catch (error) {
    // Another process came first.
    if (!isFolder(dir)) throw error;
  }
}

function isFolder(dir: string): boolean {
  return statSync(dir, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
