/** What pages complained about: warnings, errors, failed assertions and uncaught exceptions. */
import type { BrowserContext, ConsoleMessage, WebError } from '@playwright/test';

export interface ConsoleEntry {
  type: 'warning' | 'error' | 'assert' | 'pageerror';
  text: string;
  timestamp: number;
  location: string | null;
}

const KEPT_TYPES: ReadonlySet<string> = new Set(['warning', 'error', 'assert']);
const ENTRIES_MAX = 500;
const TEXT_MAX_CHARS = 4_000;

/** Returns how to stop. */
export function watchConsole(context: BrowserContext, entries: ConsoleEntry[]): () => void {
  const add = (type: ConsoleEntry['type'], text: string, location: string | null): void => {
    if (entries.length < ENTRIES_MAX) entries.push({ type, text: text.slice(0, TEXT_MAX_CHARS), timestamp: Date.now(), location });
  };
  const onConsole = (message: ConsoleMessage): void => {
    const type = message.type();
    if (!KEPT_TYPES.has(type)) return;
    const { url, lineNumber, columnNumber } = message.location();
    add(type as ConsoleEntry['type'], message.text(), url ? `${url}:${lineNumber + 1}:${columnNumber + 1}` : null);
  };
  const onError = (webError: WebError): void => {
    const error = webError.error();
    const frame = /at (?:.*\()?(\S+:\d+:\d+)\)?/.exec(error.stack ?? '')?.[1] ?? null;
    add('pageerror', error.stack ?? error.message, frame);
  };
  context.on('console', onConsole);
  context.on('weberror', onError);
  return () => {
    context.off('console', onConsole);
    context.off('weberror', onError);
  };
}
