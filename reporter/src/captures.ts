/**
 * What the capture fixtures saw in a worker, as it arrives here: inline attachments of
 * the attempt. They are emptied and hidden there, so that they fill neither the HTML
 * report nor the memory of a long run. Their places stay, steps refer to attachments by
 * position.
 */
import type { TestResult } from '@playwright/test/reporter';
import { isRecord } from './options';

export interface Captures {
  fields: {
    networkRequests?: unknown[];
    consoleLogs?: unknown[];
    webVitals?: Record<string, unknown>;
    pageState?: Record<string, unknown>;
    locatorSnapshots?: unknown[];
  };
  ariaSnapshot?: string;
  /** Descriptions of annotations of the type `SUGGESTION`. */
  suggestions: string[];
}

/** Kept until the service has them. */
export type CaptureStore = WeakMap<TestResult, Captures>;

export const SUGGESTION = 'callboard-locator-suggestion';

const LISTS = {
  'callboard-network': 'networkRequests',
  'callboard-console': 'consoleLogs',
  'callboard-locators': 'locatorSnapshots',
} as const;
const OBJECTS = { 'callboard-web-vitals': 'webVitals', 'callboard-page-state': 'pageState' } as const;
const ARIA = 'callboard-aria-snapshot';

/** Undefined when the attempt brought none. */
export function takeCaptures(result: TestResult): Captures | undefined {
  const own = result.attachments.filter(({ name, body }) => body && isCapture(name));
  if (own.length === 0) return undefined;
  const captures: Captures = { fields: {}, suggestions: [] };
  for (const attachment of own) {
    const { name, body } = attachment;
    const text = body!.toString('utf8');
    if (name === ARIA) captures.ariaSnapshot = text;
    else if (name === SUGGESTION) captures.suggestions.push(text);
    else addField(captures.fields, name, parsed(text));
    // Reporters of Playwright do not show names that begin with an underscore.
    attachment.name = `_${name}`;
    delete attachment.body;
  }
  return captures;
}

function isCapture(name: string): boolean {
  return name in LISTS || name in OBJECTS || name === ARIA || name === SUGGESTION;
}

function addField(fields: Captures['fields'], name: string, value: unknown): void {
  if (name in LISTS && Array.isArray(value)) {
    const field = LISTS[name as keyof typeof LISTS];
    fields[field] = [...(fields[field] ?? []), ...value];
  } else if (name in OBJECTS && isRecord(value)) {
    fields[OBJECTS[name as keyof typeof OBJECTS]] = value;
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
