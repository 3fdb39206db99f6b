/**
 * Which elements the locators of a test found, once per line of the test. The question is
 * put to the page beside the test's own calls; the test does not wait for the answer. What
 * a line found on a page is asked once per worker: the lines of page objects and fixtures
 * are run by every test, and find the same elements each time.
 */
import type { Frame } from '@playwright/test';
import { relativeLocation } from '../locations';
import type { SourceRoot } from '../source-root';
import { inspectInPage, type Alternative, type ElementDescription, type Inspection, type Question, type Suggestion } from './inspect-in-page';
import { evaluateOnAll, type FrameCall } from './playwright-internals';
import { parseLocator, type WrittenLocator } from './written-locator';

export interface LocatorSnapshot {
  location: string | null;
  used: WrittenLocator;
  element: ElementDescription | null;
  alternatives: Alternative[];
}

export interface LocatorSuggestion {
  failing: WrittenLocator & { location: string | null };
  suggestions: Suggestion[];
}

export interface LocatorRecorder {
  onCall(call: FrameCall): ((succeeded: boolean) => void) | undefined;
  /** Waits for answers that are still on their way, within a limit. */
  drain(milliseconds: number): Promise<LocatorSnapshot[]>;
  /** What the last failing locator may have meant, if that can be told. */
  suggest(): Promise<LocatorSuggestion | undefined>;
}

const ACTIONS = new Set([
  'click', 'dblclick', 'tap', 'hover', 'check', 'uncheck', 'fill', 'type', 'press', 'selectOption', 'setInputFiles', 'focus',
]);
/** Assertions about a list, or about an element that is not there. */
const NOT_ABOUT_ONE = /\.array$|to\.have\.count|to\.be\.hidden|to\.be\.detached/;
const SNAPSHOTS_MAX = 200;
/** Lines whose elements a worker remembers. */
const KNOWN_MAX = 2_000;

/** What the lines of tests found in this worker, by line, locator and page. */
export type KnownElements = Map<string, LocatorSnapshot>;

const knownInWorker: KnownElements = new Map();

export function createLocatorRecorder(
  testIdAttribute: string, root: SourceRoot, known: KnownElements = knownInWorker,
): LocatorRecorder {
  const snapshots = new Map<string, LocatorSnapshot>();
  const seen = new Set<string>();
  const pending = new Set<Promise<unknown>>();
  let lastFailure: { frame: Frame; selector: string; location: string | null } | undefined;

  const inspect = async (frame: Frame, selector: string): Promise<Inspection | undefined> => {
    const answer = await evaluateOnAll(frame, selector, expressionOf({ testIdAttribute })).catch(() => undefined);
    return answer === undefined ? undefined : JSON.parse(answer) as Inspection;
  };
  const track = (work: Promise<unknown>): void => {
    const tracked: Promise<unknown> = work.catch(() => undefined).finally(() => pending.delete(tracked));
    pending.add(tracked);
  };

  return {
    onCall({ frame, method, selector, expression, isNot, stack }) {
      const isAction = ACTIONS.has(method);
      const isAssertion = method === 'expect' && expression !== undefined && !isNot && !NOT_ABOUT_ONE.test(expression);
      if (!isAction && !isAssertion) return undefined;
      const location = callSite(stack, root);
      const key = location ?? selector;
      const isNew = !seen.has(key) && seen.size < SNAPSHOTS_MAX;
      const place = location === null ? undefined : [location, selector, pageOf(frame.url())].join('\0');
      const found = place === undefined ? undefined : known.get(place);
      // Asked before the action too: a click often leads away from the element.
      const before = isNew && isAction && !found ? inspect(frame, selector) : undefined;
      return (succeeded) => {
        if (!succeeded) lastFailure = { frame, selector, location };
        if (!succeeded || !isNew || seen.has(key)) return;
        seen.add(key);
        if (found) {
          snapshots.set(key, found);
          return;
        }
        track((async () => {
          const early = await before;
          const answer = early?.element ? early : await inspect(frame, selector);
          const snapshot = {
            location,
            used: parseLocator(String(frame.locator(selector))),
            element: answer?.element ?? null,
            alternatives: answer?.alternatives ?? [],
          };
          snapshots.set(key, snapshot);
          if (place !== undefined && snapshot.element) remember(known, place, snapshot);
        })());
      };
    },
    async drain(milliseconds) {
      if (pending.size > 0) await within(milliseconds, Promise.all(pending));
      return [...snapshots.values()];
    },
    async suggest() {
      if (!lastFailure) return undefined;
      const { frame, selector, location } = lastFailure;
      const isThere = await evaluateOnAll(frame, selector, '(elements) => String(elements.length)');
      if (isThere !== '0') return undefined;
      const used = parseLocator(String(frame.locator(selector)));
      const failing = { method: used.method, args: used.args };
      const answer = await evaluateOnAll(frame, 'html', expressionOf({ testIdAttribute, failing }));
      const suggestions = answer === undefined ? [] : JSON.parse(answer) as Suggestion[];
      return suggestions.length > 0 ? { failing: { ...used, location }, suggestions } : undefined;
    },
  };
}

function remember(known: KnownElements, place: string, snapshot: LocatorSnapshot): void {
  if (known.size >= KNOWN_MAX) known.delete(known.keys().next().value!);
  known.set(place, snapshot);
}

/** An address without what differs between two things of a kind, such as their numbers. */
function pageOf(address: string): string {
  return address.split(/[?#]/, 1)[0]!.replace(/\/(?:\d+|[0-9a-f-]{16,})(?=\/|$)/gi, '/:id');
}

/** The call itself, wherever helpers of the project made it: what an edit would have to change. */
function callSite(stack: FrameCall['stack'], root: SourceRoot): string | null {
  const own = stack.find(({ file }) => !/[\\/]node_modules[\\/]/.test(file) && !file.startsWith('node:'));
  return own ? relativeLocation(own, root) : null;
}

function expressionOf(question: Question): string {
  return `(elements) => (${inspectInPage.toString()})(elements, ${JSON.stringify(question)})`;
}

/** Undefined when the work takes longer. */
export async function within<T>(milliseconds: number, work: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, milliseconds, undefined);
  });
  return Promise.race([work, limit]).finally(() => clearTimeout(timer));
}
