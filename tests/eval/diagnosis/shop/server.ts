/**
 * A small shop: pages, an API with its state in memory, and a second server on another port that plays the
 * companies around it (payments, reviews, support chat). Each test starts its own.
 */
import { readFile } from 'node:fs/promises';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { callOf, partnerAnswer, shopAnswer, startingState, type Answer, type Call, type State } from './api.ts';

/** What is different from the shop as it should be. Functions see a call before the shop answers it. */
export interface Difference {
  /** Replacements in served files, by path. Each has to change something. */
  files?: Record<string, [string, string][]>;
  /** Further headers of pages, by path. */
  headers?: Record<string, Record<string, string>>;
  settings?: Record<string, string>;
  change?(state: State): void;
  answer?(call: Call, state: State): Answer | undefined | Promise<Answer | undefined>;
  partner?(call: Call): Answer | undefined | Promise<Answer | undefined>;
  partnerIsDown?: boolean;
  shopIsDown?: boolean;
}

export interface Shop {
  url: string;
  stop(): Promise<void>;
}

const PAGES = fileURLToPath(new URL('pages/', import.meta.url));
const TYPES: Record<string, string> = { html: 'text/html; charset=utf-8', js: 'text/javascript; charset=utf-8', css: 'text/css' };

export async function startShop(difference: Difference = {}): Promise<Shop> {
  const state = startingState();
  Object.assign(state.settings, difference.settings);
  difference.change?.(state);
  const partner = await listen(async (request, response) => {
    const call = await callOf(request);
    send(response, (await difference.partner?.(call)) ?? partnerAnswer(call) ?? (await file(call.path, difference, {})));
  });
  const shop = await listen(async (request, response) => {
    const call = await callOf(request);
    const values = { partner: difference.settings?.['PARTNER_URL'] ?? partner.url };
    const answer = (await difference.answer?.(call, state)) ?? shopAnswer(call, state);
    send(response, answer ?? (await file(call.path, difference, values)));
  });
  if (difference.partnerIsDown) await partner.stop();
  if (difference.shopIsDown) await shop.stop();
  return { url: shop.url, stop: async () => { await Promise.all([shop.stop(), partner.stop()]); } };
}

async function file(path: string, { files = {}, headers = {} }: Difference, values: Record<string, string>): Promise<Answer> {
  const name = path === '/' ? 'index.html' : path.slice(1) + (/\.\w+$/.test(path) ? '' : '.html');
  const extension = name.split('.').at(-1) ?? '';
  let text: string;
  try {
    text = await readFile(PAGES + name, 'utf8');
  } catch {
    return { status: 404, body: 'Not found', type: 'text/plain' };
  }
  for (const [from, to] of files[`/${name}`] ?? []) {
    if (!text.includes(from)) throw new Error(`/${name} does not contain ${from}`);
    text = text.replaceAll(from, to);
  }
  for (const [key, value] of Object.entries(values)) text = text.replaceAll(`{{${key}}}`, value);
  return { status: 200, body: text, type: TYPES[extension] ?? 'text/plain', headers: headers[path] };
}

function send(response: ServerResponse, answer: Answer): void {
  if (answer.drop) {
    response.destroy();
    return;
  }
  const isText = typeof answer.body === 'string';
  response.writeHead(answer.status ?? 200, {
    'content-type': answer.type ?? (isText ? 'text/plain' : 'application/json'),
    ...(answer.logs ? { 'x-service-logs': packed(answer.logs) } : {}),
    ...answer.headers,
  });
  response.end(isText ? answer.body : JSON.stringify(answer.body ?? null));
}

/** Logs of the backend, as a shop in test mode sends them along. */
function packed(logs: string[]): string {
  const entries = logs.map((message) => ({ timestamp: Date.now(), level: 'Error', category: 'Shop', message }));
  return gzipSync(JSON.stringify(entries)).toString('base64');
}

async function listen(handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>): Promise<Shop> {
  const server = http.createServer((request, response) => {
    handle(request, response).catch((error: unknown) => {
      console.error(error);
      response.destroy();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    stop: () => new Promise((resolve) => {
      server.closeAllConnections();
      server.close(() => resolve());
    }),
  };
}
