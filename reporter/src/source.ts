/**
 * Source text around a failure: the test itself, and the frames of the stack that lie
 * in the project. Read from disk once per file; a missing file is simply not quoted.
 */
import { readFileSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Location, TestCase, TestResult } from '@playwright/test/reporter';
import { errorsOf, stripAnsi } from './errors';
import { isInSources, relativePath, type SourceRoot } from './source-root';
import { unfinishedStep } from './steps';

export interface SourceFrame {
  file: string;
  line: number;
  snippet: string;
}

export interface SourceReader {
  linesOf(file: string): readonly string[] | undefined;
}

const LINES_BEFORE_DECLARATION = 2;
const LINES_AFTER_FAILURE = 5;
const LINES_WITHOUT_FAILURE = 30;
/** A longer test is shown from here before the failing line, not from its declaration. */
const WINDOW_MAX_LINES = 120;
const FRAMES_MAX = 8;
const FRAME_CONTEXT_LINES = 3;
const FILE_MAX_BYTES = 2 * 1024 * 1024;
const FILES_CACHED = 100;

export function createSourceReader(): SourceReader {
  const cache = new Map<string, readonly string[] | undefined>();
  return {
    linesOf(file) {
      if (!cache.has(file)) {
        if (cache.size >= FILES_CACHED) cache.clear();
        cache.set(file, readLines(file));
      }
      return cache.get(file);
    },
  };
}

export function testSource(test: TestCase, result: TestResult, reader: SourceReader): string | null {
  const lines = reader.linesOf(test.location.file);
  if (!lines) return null;
  const declaration = test.location.line;
  const failing = failingLine(test, result);
  const first = failing !== undefined && failing - declaration > WINDOW_MAX_LINES
    ? failing - WINDOW_MAX_LINES
    : Math.min(declaration, failing ?? declaration) - LINES_BEFORE_DECLARATION;
  const last = failing === undefined ? declaration + LINES_WITHOUT_FAILURE : failing + LINES_AFTER_FAILURE;
  return window(lines, first, Math.max(last, declaration), failing, declaration);
}

/** In-project frames of the first error that has a stack, innermost first. */
export function testSourceFrames(result: TestResult, root: SourceRoot, reader: SourceReader): SourceFrame[] {
  const stack = errorsOf(result).find((error) => error.stack)?.stack;
  if (!stack) return [];
  return stackLocations(stack)
    .filter((frame) => isInSources(frame.file, root))
    .slice(0, FRAMES_MAX)
    .flatMap((frame) => {
      const lines = reader.linesOf(frame.file);
      if (!lines) return [];
      const snippet = window(
        lines, frame.line - FRAME_CONTEXT_LINES, frame.line + FRAME_CONTEXT_LINES, frame.line, undefined);
      return [{ file: relativePath(frame.file, root), line: frame.line, snippet }];
    });
}

function failingLine(test: TestCase, result: TestResult): number | undefined {
  const places = errorsOf(result).flatMap((error) => [
    ...(error.location ? [error.location] : []),
    ...stackLocations(error.stack ?? ''),
  ]);
  const stuck = unfinishedStep(result)?.location;
  return [...places, ...(stuck ? [stuck] : [])].find((place) => place.file === test.location.file)?.line;
}

/** Only a frame that ends with a parenthesis has its place in parentheses; folders may have some in their names. */
const NAMED_FRAME = /^\s*at .+? \((.+):(\d+):(\d+)\)$/;
const BARE_FRAME = /^\s*at (?:async )?(.+):(\d+):(\d+)$/;

export function stackLocations(stack: string): Location[] {
  return stripAnsi(stack).split(/\r?\n/).flatMap((line) => {
    const match = NAMED_FRAME.exec(line) ?? BARE_FRAME.exec(line);
    if (!match?.[1]) return [];
    return [{ file: pathOf(match[1]), line: Number(match[2]), column: Number(match[3]) }];
  });
}

/** A stack may come from a page, and its addresses from another kind of system: those stay as they are. */
function pathOf(place: string): string {
  if (!place.startsWith('file://')) return place;
  try {
    return fileURLToPath(place);
  } catch {
    return place;
  }
}

function window(
  lines: readonly string[], first: number, last: number, failing: number | undefined, declaration: number | undefined,
): string {
  const from = Math.max(1, first);
  const to = Math.min(lines.length, last);
  return lines.slice(from - 1, to).map((text, index) => {
    const number = from + index;
    const marker = number === failing ? '> ' : number === declaration ? '* ' : '  ';
    return `${marker}${String(number).padStart(4)} | ${text}`;
  }).join('\n');
}

function readLines(file: string): readonly string[] | undefined {
  try {
    if (statSync(file).size > FILE_MAX_BYTES) return undefined;
    // A carriage return stays with its line: an edit of the file has to know of it.
    return readFileSync(file, 'utf8').split('\n');
  } catch {
    return undefined;
  }
}
