/**
 * How places in files are written on the wire: `file:line:column` with forward slashes,
 * relative to the working directory unless said otherwise.
 */
import path from 'node:path';
import type { Location } from '@playwright/test/reporter';

export function relativePath(file: string, workingDirectory: string): string {
  return forwardSlashes(path.relative(workingDirectory, file) || file);
}

export function relativeLocation(location: Location, workingDirectory: string): string {
  return `${relativePath(location.file, workingDirectory)}:${location.line}:${location.column}`;
}

export function absoluteLocation(location: Location): string {
  return `${forwardSlashes(location.file)}:${location.line}:${location.column}`;
}

export function forwardSlashes(file: string): string {
  return file.replaceAll('\\', '/');
}
