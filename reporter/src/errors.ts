/**
 * What went wrong, as one text: every message once, in order, and the place when no
 * message names it.
 */
import type { Location, TestError, TestResult } from '@playwright/test/reporter';
import { relativeLocation } from './locations';

const SEPARATOR = '\n---\n';

/** `fallback` is the place to name when no error has one, as with timeouts. */
export function errorText(result: TestResult, fallback: Location, workingDirectory: string): string | null {
  const errors = errorsOf(result);
  const messages = [...new Set(errors.map(messageOf).filter((message) => message !== ''))];
  if (messages.length === 0) return null;
  const text = messages.join(SEPARATOR);
  if (hasStackFrame(text)) return text;
  const location = errors.find((error) => error.location)?.location ?? fallback;
  return `${text}\n    at ${relativeLocation(location, workingDirectory)}`;
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
