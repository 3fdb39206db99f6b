/**
 * Paths of files of this machine, and of others that may write theirs in another way: a report
 * merged here may come from Windows.
 */
import path from 'node:path';

const OF_WINDOWS = /^[a-z]:[\\/]|^\\\\/i;

export function forwardSlashes(file: string): string {
  return file.replaceAll('\\', '/');
}

/** The way from a folder to a file, with forward slashes; empty for the folder itself. */
export function pathFrom(folder: string, file: string): string {
  const { relative } = OF_WINDOWS.test(folder) ? path.win32 : path;
  return forwardSlashes(relative(folder, file));
}

export function isWithin(file: string, folder: string): boolean {
  const way = pathFrom(folder, file);
  return way !== '..' && !way.startsWith('../') && !path.isAbsolute(way) && !OF_WINDOWS.test(way);
}

/** Paths with forward slashes; empty for no path. */
export function joinPaths(...parts: string[]): string {
  const joined = path.posix.join(...parts);
  return joined === '.' ? '' : joined;
}
