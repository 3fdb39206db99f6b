/**
 * What went wrong, as one text: every failure in order, each with its place, also where several
 * say the same; only what is reported twice for one place is said once.
 */
import type { Location, TestError, TestResult } from '@playwright/test/reporter';
import { relativeLocation } from './locations';
import type { SourceRoot } from './source-root';

const SEPARATOR = '\n---\n';

/** `fallback` is the place to name when no error has one, as with timeouts. */
export function errorText(result: TestResult, fallback: Location, root: SourceRoot): string | null {
  const located = errorsOf(result).map((error) => ({ message: messageOf(error), location: error.location }))
    .filter(({ message }) => message !== '');
  if (located.length === 0) return null;
  const texts = located.map(({ message, location }) => {
    if (hasStackFrame(message)) return message;
    // Beside others an error without a place is not given one of theirs.
    const place = location ?? (located.length === 1 ? fallback : undefined);
    return place ? `${message}\n    at ${relativeLocation(place, root)}` : message;
  });
  const text = [...new Set(texts)].join(SEPARATOR);
  return hasStackFrame(text) ? text : `${text}\n    at ${relativeLocation(fallback, root)}`;
}

export function errorsOf(result: TestResult): TestError[] {
  if (result.errors?.length) return result.errors;
  return result.error ? [result.error] : [];
}

export function messageOf(error: TestError): string {
  const own = error.message ?? error.value ?? '';
  const cause = error.cause ? messageOf(error.cause) : '';
  return cause === '' ? own : `${own}\n[cause]: ${cause}`;
}

function hasStackFrame(text: string): boolean {
  return /^\s+at .+:\d+:\d+\)?$/m.test(stripAnsi(text));
}

export function stripAnsi(text: string): string {
  return text.replace(/\u001b\[[0-9;]*[A-Za-z]/g, '');
}
