/** What pages complained about: warnings, errors, failed assertions and uncaught exceptions. */
import type { BrowserContext, ConsoleMessage, WebError } from '@playwright/test';
import { withoutQueries, withoutQuery } from './addresses';

export interface ConsoleEntry {
  type: 'warning' | 'error' | 'assert' | 'pageerror';
  text: string;
  timestamp: number;
  /** Values of the query are left out: they may be secrets. */
  location: string | null;
}

/** Stands where entries are missing and says how many, in the words of the service. */
export interface ConsoleGap {
  type: 'info';
  text: string;
}

/** What the pages of one test said, as far as it is kept. */
export interface ConsoleLog {
  add(entry: ConsoleEntry): void;
  entries(): (ConsoleEntry | ConsoleGap)[];
}

const KEPT_TYPES: ReadonlySet<string> = new Set(['warning', 'error', 'assert']);
const ENTRIES_MAX = 500;
/**
 * Of a page that says too much these and the newest are kept: how it began, and what came before
 * the failure. With the gap behind them they are the 20 the service spares when it drops more.
 */
const FIRST_ENTRIES = 19;
const TEXT_MAX_CHARS = 4_000;

export function createConsoleLog(): ConsoleLog {
  const kept: ConsoleEntry[] = [];
  let dropped = 0;
  return {
    add(entry) {
      if (kept.length >= ENTRIES_MAX) {
        kept.splice(FIRST_ENTRIES, 1);
        dropped++;
      }
      kept.push(entry);
    },
    entries() {
      if (dropped === 0) return kept;
      // It takes the place of one more.
      const gap: ConsoleGap = { type: 'info', text: `[${dropped + 1} console entries dropped]` };
      return [...kept.slice(0, FIRST_ENTRIES), gap, ...kept.slice(FIRST_ENTRIES + 1)];
    },
  };
}

/** Returns how to stop. */
export function watchConsole(context: BrowserContext, log: ConsoleLog): () => void {
  const add = (type: ConsoleEntry['type'], text: string, location: string | null): void => {
    // The service keeps none without a text, and would count fewer than were dropped here.
    if (text !== '') log.add({ type, text, timestamp: Date.now(), location });
  };
  const onConsole = (message: ConsoleMessage): void => {
    const type = message.type();
    if (!KEPT_TYPES.has(type)) return;
    const { url, lineNumber, columnNumber } = message.location();
    add(type as ConsoleEntry['type'], cut(message.text()), url ? `${withoutQuery(url)}:${lineNumber + 1}:${columnNumber + 1}` : null);
  };
  const onError = (webError: WebError): void => {
    const { name, message, stack } = webError.error();
    // Scripts that cannot be read, and what is thrown without being an error, have no stack.
    const text = stack || (name ? `${name}: ${message}` : message);
    add('pageerror', withoutQueries(cut(text)), placeOfError(stack ?? '') ?? placeOf(webError));
  };
  context.on('console', onConsole);
  context.on('weberror', onError);
  return () => {
    context.off('console', onConsole);
    context.off('weberror', onError);
  };
}

function cut(text: string): string {
  return text.length > TEXT_MAX_CHARS ? `${text.slice(0, TEXT_MAX_CHARS)} [truncated]` : text;
}

/**
 * Frames of Chromium (of evaluated code, with a name, without one), then those of Firefox and
 * WebKit. Addresses may hold parentheses.
 */
const FRAMES = [
  /^\s*at .* \(([a-z][\w+.-]*:\S+?:\d+:\d+)\), <anonymous>:\d+:\d+\)$/,
  /^\s*at .+? \(([a-z][\w+.-]*:.+:\d+:\d+)\)$/,
  /^\s*at (?:async )?([a-z][\w+.-]*:\S+:\d+:\d+)$/,
  /^(?:[^@]*@)?([a-z][\w+.-]*:\S+:\d+:\d+)$/,
];

/** Where an uncaught exception was thrown: the first frame of its stack that names a place. */
export function placeOfError(stack: string): string | null {
  for (const line of stack.split('\n')) {
    for (const frame of FRAMES) {
      const place = frame.exec(line.trimEnd())?.[1];
      if (place !== undefined) return withoutQueries(place);
    }
  }
  return null;
}

/** Only newer Playwright knows. */
function placeOf(webError: WebError): string | null {
  const { location } = webError as { location?(): { url?: string; line?: number; column?: number } };
  const { url, line = 0, column = 0 } = location?.call(webError) ?? {};
  return url ? `${withoutQuery(url)}:${line + 1}:${column + 1}` : null;
}
