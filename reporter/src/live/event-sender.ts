/**
 * Sends queued events in batches, one request at a time, so that the order of events is
 * the order of requests and a slow service makes batches larger instead of more.
 */
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { pauseAfter, RequestFailed, type Client } from '../client';
import { compressedJsonBody, type RequestBody } from '../http';
import type { Log } from '../log';
import { trimmed } from '../trim-payload';
import type { EventQueue, QueuedEvent } from './event-queue';
import type { OpenRun } from './opening';
import type { RetryPolicy } from './retry-policy';

export interface EventSenderParts {
  client: Client;
  log: Log;
  retryPolicy: RetryPolicy;
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
  /** Set aside because the service fails on it, while it takes others. */
  isSetAside(key: object): boolean;
  progress(): { eventsSent: number; events: number };
  readonly isEmpty: boolean;
  readonly refused: number;
}

const BATCH_MAX_BYTES = 1024 * 1024;
/** When many wait, fewer and larger requests are easier for the service. */
const BATCH_MAX_EVENTS = 500;
/** After so many answers 500 in a row it is asked whether one event is at fault. */
const TRIES_ON_500 = 4;
/** A test that is at fault is so in each of its attempts; more than these, and it is the service, or the way to it. */
const FAULTS_WITHOUT_PROOF = 6;
const compress = promisify(gzip);

interface Faults {
  faults: QueuedEvent[];
  isAnyAccepted: boolean;
}

export function createEventSender(parts: EventSenderParts): EventSender {
  const { queue, retryPolicy, log } = parts;
  const known = new WeakSet<object>();
  const accepted = new WeakSet<object>();
  const aside: QueuedEvent[] = [];
  let refused = 0;
  /** Set while every event so far was refused. */
  let refusal: RequestFailed | undefined;
  let refusals = 0;
  let eventsSent = 0;
  let inFlight = 0;
  let sending: Promise<void> | undefined;
  let isOpen = false;
  let timer: NodeJS.Timeout | undefined;

  /** Undefined once the batch is dealt with; the answer when the service fails on it. */
  const tryBatch = async (batch: readonly QueuedEvent[], triesOn500: number): Promise<RequestFailed | undefined> => {
    const run = parts.run()!;
    try {
      const body = await eventsBody(run.streamToken, batch);
      await retryPolicy.persist(() => parts.client.send(
        `/api/test-runs/${run.runId}/events`, body, retryPolicy.deadline(), { tries: 1, withToken: true }), { triesOn500 });
    } catch (error) {
      if (!(error instanceof RequestFailed) || error.status === undefined) throw error;
      if (error.status === 500) return error;
      if (!REFUSED.has(error.status)) throw error;
      const smaller = error.status === 413 && batch.length === 1 ? trimmed(batch[0]!.json) : undefined;
      if (smaller !== undefined) return tryBatch([{ ...batch[0]!, json: smaller }], triesOn500);
      if (batch.length > 1) {
        for (const half of halvesOf(batch)) await sendBatch(half);
        return undefined;
      }
      if (batch[0]!.key) refused++;
      log.detail(`the service refused an event: ${error.message}`);
      if (eventsSent > 0) return undefined;
      refusal = error;
      if (++refusals >= FAULTS_WITHOUT_PROOF) throw error;
      return undefined;
    }
    eventsSent += batch.length;
    refusal = undefined;
    for (const { key } of batch) {
      if (!key) continue;
      accepted.add(key);
      parts.onAccepted(key);
    }
  };
  const sendBatch = async (batch: readonly QueuedEvent[]): Promise<void> => {
    let left = batch;
    for (let tries = TRIES_ON_500; ; tries++) {
      const failure = await tryBatch(left, tries === TRIES_ON_500 ? TRIES_ON_500 : 1);
      if (!failure) return;
      left = await withoutFaults(left);
      if (left.length === 0) return;
      if (retryPolicy.isHurried) throw failure;
      await retryPolicy.pause(failure.pauseMs ?? pauseAfter(tries));
    }
  };
  /**
   * What is to be tried again of a batch the service fails on. Events at fault fail alone while
   * others are taken; a service that is broken takes none, and is waited for.
   */
  const withoutFaults = async (batch: readonly QueuedEvent[]): Promise<readonly QueuedEvent[]> => {
    // At the end of the run nobody watches it any more.
    const suspects = retryPolicy.isHurried ? batch.filter(({ key }) => key !== undefined) : [...batch];
    const found: Faults = { faults: [], isAnyAccepted: false };
    if (suspects.length > 1) await findFaults(suspects, found);
    else found.faults.push(...suspects);
    if (!found.isAnyAccepted && found.faults.length === suspects.length) {
      // All of them may be at fault: those behind them tell.
      const next = queue.take(parts.batchSize, BATCH_MAX_BYTES);
      inFlight += next.length;
      suspects.push(...next);
      await findFaults(next, found);
    }
    if (!found.isAnyAccepted) {
      // Of the last few events the end of the run will tell: that is refused as well by a broken service.
      const areLast = retryPolicy.isHurried && eventsSent > 0 && found.faults.length === suspects.length;
      return areLast ? setAside(suspects) : suspects;
    }
    // Some may have met a service that has recovered since.
    for (const fault of found.faults) if (await tryBatch([fault], 1)) setAside([fault]);
    return [];
  };
  const findFaults = async (failing: readonly QueuedEvent[], found: Faults): Promise<void> => {
    for (const half of halvesOf(failing).filter(({ length }) => length > 0)) {
      if (!found.isAnyAccepted && found.faults.length >= FAULTS_WITHOUT_PROOF) return;
      if (await tryBatch(half, 1) === undefined) found.isAnyAccepted = true;
      else if (half.length > 1) await findFaults(half, found);
      else found.faults.push(half[0]!);
    }
  };
  const setAside = (events: readonly QueuedEvent[]): QueuedEvent[] => {
    log.detail(`the service fails on ${events.length} events, which are set aside`);
    aside.push(...events.filter(({ key }) => key !== undefined));
    return [];
  };
  const isStillAtFault = async (event: QueuedEvent): Promise<boolean> => {
    try {
      return retryPolicy.isOver || await tryBatch([event], 1) !== undefined;
    } catch (error) {
      if (!retryPolicy.isOver) parts.stop(error);
      return true;
    }
  };
  const sendAll = async (): Promise<void> => {
    while (queue.length > 0 && !parts.isStopped()) {
      const behind = queue.length >= 2 * parts.batchSize || retryPolicy.isHurried;
      const batch = queue.take(behind ? BATCH_MAX_EVENTS : parts.batchSize, BATCH_MAX_BYTES);
      inFlight = batch.length;
      try {
        await sendBatch(batch);
      } catch (error) {
        parts.stop(error);
      }
      inFlight = 0;
      if (queue.length < parts.batchSize && queue.bytes < BATCH_MAX_BYTES && !retryPolicy.isHurried) break;
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
      for (const event of aside.splice(0)) {
        if (parts.isStopped() || await isStillAtFault(event)) aside.push(event);
      }
      // A batch may be accepted, and one that is refused as well is kept.
      if (refusal) parts.stop(refusal);
    },
    has: (key) => known.has(key),
    isAccepted: (key) => accepted.has(key),
    isSetAside: (key) => aside.some((event) => event.key === key),
    progress: () => ({ eventsSent, events: eventsSent + inFlight + queue.length + aside.length }),
    get isEmpty() {
      return queue.length === 0 && inFlight === 0;
    },
    get refused() {
      // Then nothing was dropped: all of it is left to the batch.
      return refusal ? 0 : refused;
    },
  };
}

function halvesOf<T>(all: readonly T[]): [T[], T[]] {
  const middle = Math.ceil(all.length / 2);
  return [all.slice(0, middle), all.slice(middle)];
}

/** A smaller batch may be accepted after these, down to the one event at fault. */
const REFUSED = new Set([400, 413, 415, 422]);

async function eventsBody(streamToken: string, batch: readonly QueuedEvent[]): Promise<RequestBody> {
  const json = `{"streamToken":${JSON.stringify(streamToken)},"testCases":[${batch.map((event) => event.json).join(',')}]}`;
  return compressedJsonBody(await compress(json));
}
