/**
 * Requests of pages, as they end. Kept are documents and calls of scripts, and of scripts and style sheets those that
 * did not load. Images and fonts tell little and are many.
 */
import type { BrowserContext, Request, Response } from '@playwright/test';
import { withoutQueries, withoutQueryValues } from './addresses';
import { serverSideOf, type ServerSide } from './server-headers';

export interface NetworkEntry extends ServerSide {
  method: string;
  /** Values of the query are left out: they may be secrets. */
  url: string;
  /** 0 when there was no response. */
  status: number;
  /** Of a request without a response how long it was waited for. */
  duration: number;
  startTime: number;
  resourceType: string;
  contentType?: string;
  /** The error of the browser, such as `net::ERR_CONNECTION_REFUSED`. */
  failureText?: string;
  /** There was no response yet when the test ended. */
  pending?: true;
}

const CALL_TYPES = new Set(['document', 'fetch', 'xhr', 'other']);
/** A page without one of these fails in ways that its own errors do not explain. */
const NEEDED_TYPES = new Set(['script', 'stylesheet']);
const ENTRIES_MAX = 1_000;
const FAILURE_TEXT_MAX_CHARS = 200;
/** Chromium, Firefox and WebKit, of what the page itself no longer wanted. */
const CANCELLED = /ERR_ABORTED|NS_BINDING_ABORTED|cancell?ed/i;

interface Started {
  startedMs: number;
  response?: Response;
}

/** Returns how to stop, which adds what is still waited for. */
export function watchNetwork(context: BrowserContext, entries: NetworkEntry[], withServerSide: boolean): () => void {
  const open = new Map<Request, Started>();
  const onRequest = (request: Request): void => void open.set(request, { startedMs: Date.now() });
  const onResponse = (response: Response): void => {
    const request = response.request();
    open.set(request, { startedMs: request.timing().startTime, ...open.get(request), response });
  };
  const onFinished = (request: Request): void => {
    const started = open.get(request);
    open.delete(request);
    // What was answered before belongs to an earlier test of the page.
    if (started?.response) add(request, started, durationOf(request, started));
  };
  const onFailed = (request: Request): void => {
    const started = open.get(request);
    open.delete(request);
    add(request, started, durationOf(request, started), { failureText: failureTextOf(request) });
  };
  const add = (request: Request, started: Started | undefined, duration: number, outcome: Outcome = {}): void => {
    const response = started?.response;
    const status = response?.status() ?? 0;
    if (!isKept(request, status, outcome) || !/^(https?|wss?):/.test(request.url())) return;
    if (entries.length >= ENTRIES_MAX && !makeRoom(entries, status)) return;
    const headers = response?.headers() ?? {};
    // An answer that the page stopped reading is an answer.
    const failureText = response && isCancelled(outcome) ? undefined : outcome.failureText;
    entries.push({
      method: request.method(),
      url: withoutQueryValues(request.url()),
      status,
      duration,
      startTime: startOf(request, started),
      resourceType: request.resourceType(),
      ...(headers['content-type'] ? { contentType: headers['content-type'].slice(0, 200) } : {}),
      ...(failureText ? { failureText } : {}),
      ...(outcome.pending ? { pending: true } : {}),
      ...(withServerSide ? serverSideOf(headers) : {}),
    });
  };
  context.on('request', onRequest);
  context.on('response', onResponse);
  context.on('requestfinished', onFinished);
  context.on('requestfailed', onFailed);
  return () => {
    context.off('request', onRequest);
    context.off('response', onResponse);
    context.off('requestfinished', onFinished);
    context.off('requestfailed', onFailed);
    for (const [request, started] of open) {
      // Answered, but nobody has read it to its end: what an error says is often left unread.
      if (started.response) add(request, started, elapsedMs(started));
      else if (!isAbandoned(request)) add(request, started, elapsedMs(started), { pending: true });
    }
    open.clear();
  };
}

interface Outcome {
  failureText?: string | undefined;
  pending?: boolean;
}

function isKept(request: Request, status: number, outcome: Outcome): boolean {
  const type = request.resourceType();
  if (CALL_TYPES.has(type)) return true;
  // A page that was left cancels what it had not loaded yet; Chromium also a script that was answered with an error.
  const isLacking = outcome.pending === true || (outcome.failureText !== undefined && !isCancelled(outcome));
  return NEEDED_TYPES.has(type) && (status >= 400 || isLacking);
}

function isCancelled({ failureText }: Outcome): boolean {
  return failureText !== undefined && CANCELLED.test(failureText);
}

function failureTextOf(request: Request): string {
  const text = request.failure()?.errorText.trim() ?? '';
  return text === '' ? 'failed' : withoutQueries(text.slice(0, FAILURE_TEXT_MAX_CHARS));
}

function startOf(request: Request, started: Started | undefined): number {
  const { startTime } = request.timing();
  return Math.round(startTime > 0 ? startTime : started?.startedMs ?? 0);
}

/** Browsers time only what was answered. */
function durationOf(request: Request, started: Started | undefined): number {
  const { responseEnd } = request.timing();
  return responseEnd > 0 || !started ? Math.max(0, Math.round(responseEnd)) : elapsedMs(started);
}

function elapsedMs({ startedMs }: Started): number {
  return startedMs > 0 ? Math.max(0, Math.round(Date.now() - startedMs)) : 0;
}

/** Nobody waits for it any more: not every browser says so of a page that was closed. */
function isAbandoned(request: Request): boolean {
  try {
    const frame = request.frame();
    return frame.isDetached() || frame.page().isClosed();
  } catch {
    // Of a service worker, or of a page that is only being opened.
    return false;
  }
}

/** What failed is worth more than what did not. */
function makeRoom(entries: NetworkEntry[], status: number): boolean {
  const expendable = hasFailed(status) ? entries.findIndex((entry) => !hasFailed(entry.status)) : -1;
  if (expendable < 0) return false;
  entries.splice(expendable, 1);
  return true;
}

function hasFailed(status: number): boolean {
  return status === 0 || status >= 400;
}
