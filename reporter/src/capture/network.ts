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
  const responses = new WeakMap<Request, Response>();
  const onResponse = (response: Response): void => void responses.set(response.request(), response);
  const onEnd = (request: Request): void => {
    const resourceType = request.resourceType();
    if (entries.length >= ENTRIES_MAX || !KEPT_TYPES.has(resourceType) || !/^(https?|wss?):/.test(request.url())) return;
    const response = responses.get(request);
    const headers = response?.headers() ?? {};
    const { startTime, responseEnd } = request.timing();
    entries.push({
      method: request.method(),
      url: withoutQueryValues(request.url()),
      status: response?.status() ?? 0,
      duration: Math.max(0, Math.round(responseEnd)),
      startTime: Math.round(startTime),
      resourceType,
      ...(headers['content-type'] ? { contentType: headers['content-type'].slice(0, 200) } : {}),
      ...(withServerSide ? serverSideOf(headers) : {}),
    });
  };
  context.on('response', onResponse);
  context.on('requestfinished', onEnd);
  context.on('requestfailed', onEnd);
  return () => {
    context.off('response', onResponse);
    context.off('requestfinished', onEnd);
    context.off('requestfailed', onEnd);
  };
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
