/**
 * Requests of pages, as they end. Only documents and calls of scripts: images, styles and
 * fonts tell little and are many.
 */
import type { BrowserContext, Request, Response } from '@playwright/test';
import { serverSideOf, type ServerSide } from './server-headers';

export interface NetworkEntry extends ServerSide {
  method: string;
  /** Values of the query are left out: they may be secrets. */
  url: string;
  /** 0 when there was no response. */
  status: number;
  duration: number;
  startTime: number;
  resourceType: string;
  contentType?: string;
}

const KEPT_TYPES = new Set(['document', 'fetch', 'xhr', 'other']);
const ENTRIES_MAX = 1_000;
const URL_MAX_CHARS = 2_000;

/** Returns how to stop. */
export function watchNetwork(context: BrowserContext, entries: NetworkEntry[], withServerSide: boolean): () => void {
  const responses = new Map<Request, Response>();
  const onResponse = (response: Response): void => void responses.set(response.request(), response);
  const onEnd = (request: Request): void => {
    const response = responses.get(request);
    responses.delete(request);
    add(request, response, Math.max(0, Math.round(request.timing().responseEnd)));
  };
  // What was answered before belongs to an earlier test of the page.
  const onFinished = (request: Request): void => {
    if (responses.has(request)) onEnd(request);
  };
  const add = (request: Request, response: Response | undefined, duration: number): void => {
    const resourceType = request.resourceType();
    if (!KEPT_TYPES.has(resourceType) || !/^(https?|wss?):/.test(request.url())) return;
    if (entries.length >= ENTRIES_MAX && !makeRoom(entries, response?.status() ?? 0)) return;
    const headers = response?.headers() ?? {};
    entries.push({
      method: request.method(),
      url: withoutQueryValues(request.url()),
      status: response?.status() ?? 0,
      duration,
      startTime: Math.round(request.timing().startTime),
      resourceType,
      ...(headers['content-type'] ? { contentType: headers['content-type'].slice(0, 200) } : {}),
      ...(withServerSide ? serverSideOf(headers) : {}),
    });
  };
  context.on('response', onResponse);
  context.on('requestfinished', onFinished);
  context.on('requestfailed', onEnd);
  return () => {
    context.off('response', onResponse);
    context.off('requestfinished', onFinished);
    context.off('requestfailed', onEnd);
    // Answered, but nobody has read it to its end: what an error says is often left unread.
    for (const [request, response] of responses) add(request, response, elapsedMs(request));
  };
}

function elapsedMs(request: Request): number {
  const { startTime } = request.timing();
  return startTime > 0 ? Math.max(0, Math.round(Date.now() - startTime)) : 0;
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

function withoutQueryValues(address: string): string {
  try {
    const url = new URL(address);
    url.username = '';
    url.password = '';
    url.hash = '';
    const names = [...new Set(url.searchParams.keys())];
    url.search = names.map((name) => `${encodeURIComponent(name)}=redacted`).join('&');
    return url.href.slice(0, URL_MAX_CHARS);
  } catch {
    return address.split('?', 1)[0]!.slice(0, URL_MAX_CHARS);
  }
}
