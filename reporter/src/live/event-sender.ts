/**
 * Sends queued events in batches, one request at a time, so that the order of events is
 * the order of requests and a slow service makes batches larger instead of more.
 */
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { RequestFailed, type Client } from '../client';
import { bytesBody, type RequestBody } from '../http';
import type { Log } from '../log';
import { slimmed } from '../slim';
import type { EventQueue, QueuedEvent } from './event-queue';
import type { OpenRun } from './open-run';
import type { Pace } from './pace';

export interface EventSenderParts {
  client: Client;
  log: Log;
  pace: Pace;
  queue: EventQueue;
  batchSize: number;
  batchDelayMs: number;
  run(): OpenRun | undefined;
  stop(error: unknown): void;
  isStopped(): boolean;
  onAccepted(key: object): void;
}

export interface EventSender {
  push(event: QueuedEvent): void;
  start(): void;
  /** Ends when nothing is left, or no more can be sent. */
  drain(): Promise<void>;
  has(key: object): boolean;
  isAccepted(key: object): boolean;
  progress(): { eventsSent: number; events: number };
  readonly isEmpty: boolean;
  readonly refused: number;
}

const BATCH_MAX_BYTES = 1024 * 1024;
/** When many wait, fewer and larger requests are easier for the service. */
const BATCH_MAX_EVENTS = 500;
const compress = promisify(gzip);

export function createEventSender(parts: EventSenderParts): EventSender {
  const { queue, pace, log } = parts;
  const known = new WeakSet<object>();
  const accepted = new WeakSet<object>();
  let refused = 0;
  let eventsSent = 0;
  let inFlight = 0;
  let sending: Promise<void> | undefined;
  let isOpen = false;
  let timer: NodeJS.Timeout | undefined;

  const sendBatch = async (batch: readonly QueuedEvent[]): Promise<void> => {
    const run = parts.run()!;
    try {
      const body = await eventsBody(run.streamToken, batch);
      await pace.persist(() => parts.client.send(
        `/api/test-runs/${run.runId}/events`, body, pace.deadline(), { tries: 1, withToken: true }));
    } catch (error) {
      const status = error instanceof RequestFailed ? error.status : undefined;
      if (status === undefined || !REFUSED.has(status)) throw error;
      const slim = status === 413 && batch.length === 1 ? slimmed(batch[0]!.json) : undefined;
      if (slim !== undefined) return sendBatch([{ ...batch[0]!, json: slim }]);
      if (batch.length > 1) return sendHalves(batch);
      if (batch[0]!.key) refused++;
      log.detail(`the service refused an event: ${(error as Error).message}`);
      return;
    }
    eventsSent += batch.length;
    for (const { key } of batch) {
      if (!key) continue;
      accepted.add(key);
      parts.onAccepted(key);
    }
  };
  const sendHalves = async (batch: readonly QueuedEvent[]): Promise<void> => {
    const middle = Math.ceil(batch.length / 2);
    await sendBatch(batch.slice(0, middle));
    await sendBatch(batch.slice(middle));
  };

  const sendAll = async (): Promise<void> => {
    while (queue.length > 0 && !parts.isStopped()) {
      const behind = queue.length >= 2 * parts.batchSize || pace.isHurried;
      const batch = queue.take(behind ? BATCH_MAX_EVENTS : parts.batchSize, BATCH_MAX_BYTES);
      inFlight = batch.length;
      try {
        await sendBatch(batch);
      } catch (error) {
        parts.stop(error);
      }
      inFlight = 0;
      if (queue.length < parts.batchSize && queue.bytes < BATCH_MAX_BYTES && !pace.isHurried) break;
    }
    if (parts.isStopped()) queue.clear();
  };
  const flush = (): Promise<void> => {
    clearTimeout(timer);
    timer = undefined;
    sending ??= sendAll().finally(() => {
      sending = undefined;
      schedule();
    });
    return sending;
  };
  function schedule(): void {
    if (!isOpen || sending || queue.length === 0 || parts.isStopped()) return;
    if (queue.length >= parts.batchSize || queue.bytes >= BATCH_MAX_BYTES) void flush();
    else timer ??= setTimeout(() => void flush(), parts.batchDelayMs).unref();
  }

  return {
    push(event) {
      if (queue.push(event) && event.key) known.add(event.key);
      schedule();
    },
    start() {
      isOpen = true;
      schedule();
    },
    async drain() {
      if (!isOpen) return;
      while (queue.length > 0 || sending) await flush();
    },
    has: (key) => known.has(key),
    isAccepted: (key) => accepted.has(key),
    progress: () => ({ eventsSent, events: eventsSent + inFlight + queue.length }),
    get isEmpty() {
      return queue.length === 0 && inFlight === 0;
    },
    get refused() {
      return refused;
    },
  };
}

/** A smaller batch may be accepted after these, down to the one event at fault. */
const REFUSED = new Set([400, 413, 415, 422]);

async function eventsBody(streamToken: string, batch: readonly QueuedEvent[]): Promise<RequestBody> {
  const json = `{"streamToken":${JSON.stringify(streamToken)},"testCases":[${batch.map((event) => event.json).join(',')}]}`;
  return bytesBody(await compress(json), { 'content-type': 'application/json', 'content-encoding': 'gzip' });
}
