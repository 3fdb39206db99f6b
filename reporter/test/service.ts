/** A service for tests: remembers what it was sent and answers what the test wants. */
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import type { AttachmentFile } from '../src/files';

export interface Received {
  method: string;
  path: string;
  /** The body as it was sent. */
  raw: Buffer;
  headers: http.IncomingHttpHeaders;
  json: Record<string, unknown>;
  form: FormData;
}

export interface Reply {
  status?: number;
  body?: unknown;
  headers?: Record<string, string | string[]>;
  /** Never answers. */
  hangs?: boolean;
  /** Closes the connection instead of an answer. */
  breaksOff?: boolean;
  /** Answers when this has happened. */
  after?: Promise<unknown>;
}

export interface Service {
  url: string;
  received: Received[];
  paths(): string[];
  close(): Promise<void>;
}

export const ACCEPTED = { success: true, runId: 7, testRunId: 7, projectId: 3, status: 'failed' };

/** `retry-after: 0` lets the reporter try again at once. */
export const AT_ONCE = { 'retry-after': '0' };

/** A file of so many bytes that is not there any more. */
export function goneFile(name: string, size = 4): AttachmentFile {
  const content = { kind: 'file', path: path.join(tmpdir(), `callboard-gone-${name}`), size } as const;
  return { kind: 'attachment', name, contentType: 'text/plain', originalName: name, content };
}

/** A trace that cannot be read so many times, as when too many files are open. */
export function busyTrace(times: number): AttachmentFile {
  const bytes = Buffer.from('trace');
  const content = {
    kind: 'bytes' as const, size: bytes.length,
    get bytes() {
      if (times-- > 0) throw Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' });
      return bytes;
    },
  };
  return { kind: 'trace', name: 'trace', contentType: 'application/zip', originalName: 'trace.zip', content };
}

export const STREAM_TOKEN = 'f'.repeat(64);

/** What a service answers that takes runs live; `special` may answer instead. */
export function liveReplies(special: (request: Received, count: number) => Reply | undefined = () => undefined) {
  return (request: Received, count: number): Reply => special(request, count) ?? { body: liveBody(request) };
}

function liveBody({ path }: Received): unknown {
  const call = path.split('/').at(-1);
  if (call === 'setup') return { ...ACCEPTED, setupToken: 'e'.repeat(64) };
  if (call === 'start' || call === 'begin') return { ...ACCEPTED, streamToken: STREAM_TOKEN, capabilities: ['gzip'] };
  if (call === 'finish') return { ...ACCEPTED, status: 'finalizing' };
  return ACCEPTED;
}

/** Events of a kind in all batches the service was sent. */
export function eventsOf<T>({ received }: Service, type: string): T[] {
  return received.filter(({ path }) => path.endsWith('/events'))
    .flatMap(({ json }) => json['testCases'] as ({ type: string } & T)[])
    .filter((event) => event.type === type);
}

export async function startService(
  reply: (request: Received, count: number) => Reply = () => ({}), port = 0,
): Promise<Service> {
  const received: Received[] = [];
  const server = http.createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer);
    } catch {
      // The client broke off: nothing was received.
      return;
    }
    const entry = await decode(request, Buffer.concat(chunks));
    received.push(entry);
    const { status = 200, body = ACCEPTED, headers = {}, hangs = false, breaksOff = false, after } = reply(entry, received.length);
    if (hangs) return;
    if (breaksOff) return void request.socket.destroy();
    await after;
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    paths: () => received.map((request) => request.path.replace('/api/', '')),
    close: () => new Promise((resolve) => {
      server.closeAllConnections();
      server.close(() => resolve());
    }),
  };
}

async function decode(request: http.IncomingMessage, raw: Buffer): Promise<Received> {
  const type = request.headers['content-type'] ?? '';
  const bytes = request.headers['content-encoding'] === 'gzip' ? gunzipSync(raw) : raw;
  return {
    method: request.method ?? '',
    path: request.url ?? '',
    raw,
    headers: request.headers,
    json: /^application\/(.*\+)?json/.test(type) ? JSON.parse(bytes.toString('utf8')) as Record<string, unknown> : {},
    form: type.startsWith('multipart/')
      ? await new Response(new Uint8Array(bytes), { headers: { 'content-type': type } }).formData()
      : new FormData(),
  };
}

export function field<T>(form: FormData, name: string): T {
  return JSON.parse(String(form.get(name))) as T;
}

export async function fileBytes(value: ReturnType<FormData['get']>): Promise<Buffer> {
  if (value === null || typeof value === 'string') throw new Error('expected a file part');
  return Buffer.from(await value.arrayBuffer());
}

/** The records of a report archive, by path. */
export function unpack(archive: Buffer): Map<string, Buffer> {
  const bytes = gunzipSync(archive);
  const entries = new Map<string, Buffer>();
  for (let at = 0; at < bytes.length;) {
    const nameEnd = at + 4 + bytes.readUInt32LE(at);
    const end = nameEnd + 4 + bytes.readUInt32LE(nameEnd);
    entries.set(bytes.toString('utf8', at + 4, nameEnd), bytes.subarray(nameEnd + 4, end));
    at = end;
  }
  return entries;
}
