/**
 * One HTTP exchange: send a body, read a JSON answer, give up when the connection
 * stays silent. Built on node:http because it streams with backpressure and tells
 * connecting, sending and waiting apart. No retries here, see client.ts.
 */
import http from 'node:http';
import https from 'node:https';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { Unreadable } from './files';

export interface RequestBody {
  headers: Record<string, string>;
  /** Absent: sent in chunks. */
  length: number | undefined;
  /** Called once per try. */
  open(): AsyncIterable<Uint8Array>;
}

export interface Answer {
  status: number;
  headers: http.IncomingHttpHeaders;
  body: string;
}

const CONNECT_TIMEOUT_MS = 10_000;
const SILENCE_TIMEOUT_MS = 30_000;
const JSON_WANTED = { accept: 'application/json' };
const ANSWER_MAX_BYTES = 8 * 1024 * 1024;
/** After the server stopped reading, this long an early answer (401, 413) is waited for. */
const EARLY_ANSWER_MS = 1_000;

/** A GET request. */
export function get(url: URL, headers: Record<string, string>, signal: AbortSignal): Promise<Answer> {
  return exchange('GET', url, { ...JSON_WANTED, ...headers }, { headers: {}, length: undefined, async* open() { /* No body. */ } }, signal);
}

/** A POST request with a body. */
export function post(
  url: URL, headers: Record<string, string>, body: RequestBody, signal: AbortSignal,
): Promise<Answer> {
  return exchange('POST', url, { ...JSON_WANTED, ...headers }, body, signal);
}

/** A PUT request with these headers and no others: the signature of an address may cover them. Redirects are not followed. */
export function put(
  url: URL, headers: Record<string, string>, body: RequestBody, signal: AbortSignal,
): Promise<Answer> {
  return exchange('PUT', url, headers, body, signal);
}

async function exchange(
  method: 'GET' | 'POST' | 'PUT', url: URL, headers: Record<string, string>, body: RequestBody, signal: AbortSignal,
): Promise<Answer> {
  const send = url.protocol === 'https:' ? https.request : http.request;
  const request = send(url, {
    method,
    agent: false,
    signal,
    headers: {
      ...headers,
      ...body.headers,
      ...(body.length === undefined ? {} : { 'content-length': String(body.length) }),
    },
  });
  limitConnecting(request);
  request.setTimeout(SILENCE_TIMEOUT_MS, () => request.destroy(new Error('no sign of life for 30 seconds')));
  const answer = new Promise<Answer>((resolve, reject) => {
    request.once('response', (response) => readAnswer(response).then(resolve, reject));
    request.once('error', reject);
  });
  answer.catch(() => undefined);
  let unreadable: Unreadable | undefined;
  async function* content(): AsyncGenerator<Uint8Array> {
    try {
      yield* body.open();
    } catch (error) {
      if (error instanceof Unreadable) unreadable = error;
      throw error;
    }
  }
  try {
    await Promise.race([pipeline(Readable.from(content(), { objectMode: false }), request), answer]);
  } catch (error) {
    if (unreadable) throw unreadable;
    const early = await Promise.race([
      answer.catch(() => undefined),
      delay(EARLY_ANSWER_MS, undefined, { ref: false }),
    ]);
    if (early) return early;
    throw error;
  }
  try {
    return await answer;
  } finally {
    request.destroy();
  }
}

export function jsonBody(value: unknown): RequestBody {
  const bytes = Buffer.from(JSON.stringify(value));
  return bytesBody(bytes, { 'content-type': 'application/json' });
}

/**
 * JSON that was compressed. Its type is none that a gateway of functions takes for text: read as text, compressed bytes
 * would arrive damaged.
 */
export function compressedJsonBody(gzip: Uint8Array): RequestBody {
  return bytesBody(gzip, { 'content-type': 'application/vnd.callboard+json', 'content-encoding': 'gzip' });
}

export function bytesBody(bytes: Uint8Array, headers: Record<string, string>): RequestBody {
  return {
    headers,
    length: bytes.length,
    async* open() {
      yield bytes;
    },
  };
}

function limitConnecting(request: http.ClientRequest): void {
  request.once('socket', (socket) => {
    if (!socket.connecting) return;
    const timer = setTimeout(() => request.destroy(new Error('no connection after 10 seconds')), CONNECT_TIMEOUT_MS);
    socket.once('connect', () => clearTimeout(timer));
    socket.once('close', () => clearTimeout(timer));
  });
}

async function readAnswer(response: http.IncomingMessage): Promise<Answer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response) {
    const bytes = chunk as Buffer;
    size += bytes.length;
    if (size > ANSWER_MAX_BYTES) throw new Error('the answer is too long');
    chunks.push(bytes);
  }
  return { status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks).toString('utf8') };
}
