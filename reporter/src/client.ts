/**
 * Calls to the service: authentication, retries with growing pauses, and answers that
 * are either a JSON object or a `RequestFailed`. Nothing outlives the given deadline.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { Unreadable } from './files';
import { get, jsonBody, post, put, type Answer, type RequestBody } from './http';
import { isRecord, type Credentials } from './options';
import type { Log } from './log';

export type JsonObject = Record<string, unknown>;

export class RequestFailed extends Error {
  constructor(
    message: string,
    /** Undefined when there was no answer. */
    readonly status: number | undefined,
    /** The word by which the service names the reason. */
    readonly code?: string,
    /** How long the service asks to wait. */
    readonly pauseMs?: number,
  ) {
    super(message);
  }
}

export interface SendOptions {
  /** Requests made at most; six when absent. */
  tries?: number;
  /** The body carries a run token: no credential of the user is sent along. */
  withToken?: boolean;
}

/** Where the service wants the bytes of a file. */
export interface PutTarget {
  url: string;
  /** All that may be sent beside the length: a signature covers them. */
  headers: Record<string, string>;
  /** The address is one of an object store, not of the service. */
  isDirect: boolean;
}

export interface Client {
  send(path: string, body: RequestBody, deadline: Deadline, options?: SendOptions): Promise<JsonObject>;
  /** Sends the bytes of a file, once. The address itself is the permission: no credential goes along. */
  put(target: PutTarget, body: RequestBody, deadline: Deadline): Promise<void>;
}

export interface ReadingClient extends Client {
  /** A GET request, tried once. */
  read(path: string, deadline: Deadline): Promise<JsonObject>;
}

export interface Deadline {
  signal: AbortSignal;
  remainingMs(): number;
}

/** The same request may succeed later: there was no answer, or the service is busy or broken. */
export function isTransient(error: unknown): boolean {
  return error instanceof RequestFailed
    && (error.status === undefined || error.status >= 500 || RETRYABLE.has(error.status));
}

export function isForbidden(error: unknown): boolean {
  return error instanceof RequestFailed && (error.status === 401 || error.status === 403);
}

/** The pause before try number `tries + 1`, growing and slightly random. */
export function pauseAfter(tries: number): number {
  return Math.min(PAUSE_MAX_MS, FIRST_PAUSE_MS * 2 ** (tries - 1)) * jitter();
}

const RETRYABLE = new Set([408, 425, 429]);
const TRIES = 6;
const FIRST_PAUSE_MS = 1_000;
const PAUSE_MAX_MS = 30_000;
const JITTER = 0.2;
/** Longer timers fire at once. */
const TIMER_MAX_MS = 2 ** 31 - 1;

export function deadlineIn(milliseconds: number): Deadline {
  const end = Date.now() + milliseconds;
  const timer = Math.min(TIMER_MAX_MS, Math.max(0, Math.floor(milliseconds)));
  return { signal: AbortSignal.timeout(timer), remainingMs: () => end - Date.now() };
}

/** No later than the given one, and at most this long. */
export function deadlineWithin(deadline: Deadline, milliseconds: number): Deadline {
  return deadlineIn(Math.max(0, Math.min(deadline.remainingMs(), milliseconds)));
}

export function createClient(origin: string, credentials: Credentials, log: Log): ReadingClient {
  let cookie: string | undefined;

  const logIn = async (deadline: Deadline, tries: number): Promise<void> => {
    if (credentials.kind !== 'password') return;
    const { username, password } = credentials;
    const answer = await withRetries('/api/auth/login', tries, deadline, log, async () =>
      accepted(await post(new URL('/api/auth/login', origin), {}, jsonBody({ username, password }), deadline.signal)));
    cookie = cookiesOf(answer);
    if (cookie === undefined) throw new RequestFailed('the login set no session cookie', answer.status);
  };

  const authorization = (): Record<string, string> => {
    if (credentials.kind === 'key') return { authorization: `Bearer ${credentials.apiKey}` };
    return cookie === undefined ? {} : { cookie };
  };

  return {
    async send(path, body, deadline, { tries = TRIES, withToken = false } = {}) {
      const exchange = async (headers: () => Record<string, string>): Promise<JsonObject> => objectOf(
        await withRetries(path, tries, deadline, log, async () => accepted(await post(new URL(path, origin), headers(), body, deadline.signal))));
      if (withToken) return exchange(() => ({}));
      if (cookie === undefined) await logIn(deadline, tries);
      try {
        return await exchange(authorization);
      } catch (error) {
        const sessionEnded = credentials.kind === 'password' && error instanceof RequestFailed && error.status === 401;
        if (!sessionEnded) throw error;
        await logIn(deadline, tries);
        return exchange(authorization);
      }
    },
    async read(path, deadline) {
      if (cookie === undefined) await logIn(deadline, 1);
      return objectOf(await withRetries(path, 1, deadline, log, async () =>
        accepted(await get(new URL(path, origin), authorization(), deadline.signal))));
    },
    put: ({ url, headers, isDirect }, body, deadline) => withRetries('upload', 1, deadline, log, async () => {
      const address = new URL(url, origin);
      // The service may know itself under another name than the one it is reached by.
      const target = isDirect ? address : new URL(address.pathname + address.search, origin);
      const own = isDirect ? headers : { 'content-type': 'application/octet-stream', ...headers };
      const answer = await put(target, own, body, deadline.signal);
      if (answer.status >= 200 && answer.status < 300) return;
      throw isDirect ? storeRefusal(answer) : refusal(answer);
    }),
  };
}

/** Repeats the work while it fails for a reason that may pass, with growing pauses. */
export async function withRetries<T>(
  path: string, triesMax: number, deadline: Deadline, log: Log, attempt: () => Promise<T>,
): Promise<T> {
  for (let tries = 1; ; tries++) {
    let failure: RequestFailed;
    try {
      return await attempt();
    } catch (error) {
      if (error instanceof Unreadable || (error instanceof RequestFailed && !isTransient(error))) throw error;
      failure = error instanceof RequestFailed ? error : new RequestFailed(networkMessage(error), undefined);
    }
    const pauseMs = failure.pauseMs ?? pauseAfter(tries);
    if (tries >= triesMax || deadline.signal.aborted || deadline.remainingMs() <= pauseMs) throw failure;
    log.detail(`${path}: ${failure.message}; trying again in ${Math.round(pauseMs)} ms`);
    await delay(pauseMs);
  }
}

function jitter(): number {
  return 1 - JITTER + Math.random() * 2 * JITTER;
}

function retryAfterMs(answer: Answer): number | undefined {
  const value = answer.headers['retry-after'];
  if (value === undefined) return undefined;
  // Seconds, or the time itself.
  const pauseMs = /^\s*\d+(\.\d+)?\s*$/.test(value) ? Number(value) * 1_000 : Date.parse(value) - Date.now();
  return Number.isFinite(pauseMs) ? Math.min(Math.max(0, pauseMs), PAUSE_MAX_MS) : undefined;
}

function accepted(answer: Answer): Answer {
  if (answer.status !== 200) throw refusal(answer);
  return answer;
}

function objectOf(answer: Answer): JsonObject {
  const value = parse(answer.body);
  if (!value) throw new RequestFailed('the answer is not a JSON object: is this the address of the service?', answer.status);
  return value;
}

/** The service explains itself in a sentence; a proxy in front of it may not. */
function refusal(answer: Answer): RequestFailed {
  const target = redirectTarget(answer);
  if (target !== undefined) return new RequestFailed(`HTTP ${answer.status}: the server answers with a redirect; set serverUrl to ${target}`, answer.status);
  const { message, code } = parse(answer.body) ?? {};
  return new RequestFailed(
    `HTTP ${answer.status}${typeof message === 'string' ? `: ${message}` : ''}`, answer.status,
    typeof code === 'string' ? code : undefined, retryAfterMs(answer));
}

/** Of an object store, which answers in XML. Its address is a permission, so it is not named. */
function storeRefusal(answer: Answer): RequestFailed {
  const code = /<Code>(\w{1,60})<\/Code>/.exec(answer.body)?.[1];
  return new RequestFailed(
    `HTTP ${answer.status} of the object store${code === undefined ? '' : `: ${code}`}`, answer.status, undefined, retryAfterMs(answer));
}

/** The origin a redirect leads to: requests with a body and a key are not sent on to it. */
function redirectTarget({ status, headers: { location } }: Answer): string | undefined {
  if (status < 300 || status > 399 || location === undefined) return undefined;
  try {
    return new URL(location).origin;
  } catch {
    return undefined;
  }
}

function parse(body: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(body);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function networkMessage(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'AbortError' || error.name === 'TimeoutError') return 'not finished within finalizeTimeout';
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined;
  return error.message || code || error.name;
}

function cookiesOf(answer: Answer): string | undefined {
  const pairs = (answer.headers['set-cookie'] ?? []).map((line) => line.split(';', 1)[0]!.trim()).filter(Boolean);
  return pairs.length > 0 ? pairs.join('; ') : undefined;
}
