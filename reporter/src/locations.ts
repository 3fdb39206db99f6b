/**
 * How places in files are written on the wire: `file:line:column` with forward slashes,
 * relative to the root of the sources.
 */
import type { Location } from '@playwright/test/reporter';
import { relativePath, type SourceRoot } from './source-root';

export function relativeLocation({ file, line, column }: Location, root: SourceRoot): string {
  return `${relativePath(file, root)}:${line}:${column}`;
}
