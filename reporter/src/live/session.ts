/**
 * The streamed run: opened while the first tests start, fed with events and files while
 * they run, finished when they are done. Every answer that means "not like this" stops
 * streaming; what was not accepted by then is the caller's to send as a batch.
 */
import { deadlineWithin, isTransient, RequestFailed, type Client, type Deadline, type JsonObject } from '../client';
import { reasonOf } from '../failure';
import type { AttachmentFile } from '../files';
import { jsonBody } from '../http';
import type { Log } from '../log';
import type { Progress } from '../progress';
import type { StartFields } from '../run';
import type { SetupRegistration } from '../setup-registration';
import type { AttemptIdentity } from '../test-case';
import { createEventQueue, type QueuedEvent } from './event-queue';
import { createEventSender } from './event-sender';
import { createFileSender } from './file-sender';
import { openRun } from './open-run';
import type { OpenRun } from './opening';
import { createRetryPolicy } from './retry-policy';

export interface LiveParts {
  client: Client;
  log: Log;
  batchSize: number;
  batchDelayMs: number;
  /** Files follow their results at once; otherwise when the tests are done. */
  filesAtOnce: boolean;
  start: Promise<StartFields>;
  /** The run as it was registered before global setup. */
  setup: Promise<SetupRegistration | undefined> | undefined;
  onOpen(run: OpenRun): void;
  /** The service has this result. */
  onAccepted(key: object): void;
}

export interface Live {
  /** An event the service forwards and does not keep; dropped when there is no room. */
  sendTransient(event: QueuedEvent): void;
  /** A result, and the files that follow once it was accepted. */
  complete(key: object, json: string, identity: AttemptIdentity, files: readonly AttachmentFile[]): void;
  /** Whether the result waits to be sent or was sent. */
  has(key: object): boolean;
  isAccepted(key: object): boolean;
  /** The service fails on this result while it takes others: it is worth another try some other day. */
  isSetAside(key: object): boolean;
  /** Whether the files of this result need not be sent again. */
  areFilesDone(key: object): boolean;
  /** Sends what is left. True when the service has every result it can take, if not every file. */
  settle(deadline: Deadline): Promise<boolean>;
  /** Ends the run with what is known about it; undefined when that is not possible. */
  finish(fields: Record<string, unknown>, deadline: Deadline): Promise<JsonObject | undefined>;
  stop(): void;
  progress(): Required<Progress>;
  readonly run: OpenRun | undefined;
  /** Why streaming stopped, if it did. */
  readonly stoppedBy: RequestFailed | undefined;
  /** The service does not answer at present. */
  readonly isOffline: boolean;
  readonly wasHeard: boolean;
  readonly filesLost: number;
  readonly firstFileLost: string | undefined;
  readonly resultsRefused: number;
}

/** `stopped` is where every answer leads that means "not like this", before the run was open and after. */
type LiveState =
  | { phase: 'opening' }
  | { phase: 'open'; run: OpenRun }
  | { phase: 'stopped'; run: OpenRun | undefined; by: RequestFailed };

const QUEUE_MAX_BYTES = 64 * 1024 * 1024;
const IDLE_MS = 15_000;
/** A service that never answered is not waited for when the tests are done. */
const SILENT_SERVICE_MS = 5_000;

export function startLive(parts: LiveParts): Live {
  const { client, log } = parts;
  const retryPolicy = createRetryPolicy();
  let state: LiveState = { phase: 'opening' };

  const runNow = (): OpenRun | undefined => (state.phase === 'opening' ? undefined : state.run);
  const stop = (error: unknown): void => {
    if (state.phase === 'stopped') return;
    const by = error instanceof RequestFailed ? error : new RequestFailed(reasonOf(error), undefined);
    state = { phase: 'stopped', run: runNow(), by };
    log.detail(`streaming stopped: ${by.message}`);
  };
  const isStopped = (): boolean => state.phase === 'stopped';
  const files = createFileSender({ client, log, retryPolicy, stop, isStopped, run: runNow, atOnce: parts.filesAtOnce });
  const events = createEventSender({
    client, log, retryPolicy, stop, isStopped,
    run: runNow,
    queue: createEventQueue(QUEUE_MAX_BYTES),
    batchSize: parts.batchSize,
    batchDelayMs: parts.batchDelayMs,
    onAccepted: (key) => {
      files.release(key);
      parts.onAccepted(key);
    },
  });
  const opened = openRun({ client, retryPolicy, start: parts.start, setup: parts.setup }).then((run) => {
    state = { phase: 'open', run };
    parts.onOpen(run);
    events.start();
    files.start();
  }).catch(stop);

  let beatAtMs = 0;
  // Beside what is on its way: that says whether the service takes what it is sent, and this only that the run goes on.
  const beat = async ({ runId, streamToken }: OpenRun): Promise<void> => {
    beatAtMs = Date.now();
    await client.send(
      `/api/test-runs/${runId}/heartbeat`, jsonBody({ streamToken }), retryPolicy.deadline(), { tries: 1, withToken: true },
    ).catch((error: unknown) => {
      if (!isTransient(error)) stop(error);
    });
  };
  const heartbeat = setInterval(() => {
    const idleMs = Date.now() - Math.max(retryPolicy.lastAnswerAtMs ?? Date.now(), beatAtMs);
    if (state.phase === 'open' && !retryPolicy.isHurried && idleMs >= IDLE_MS) void beat(state.run);
  }, IDLE_MS / 3);
  heartbeat.unref();

  return {
    sendTransient: (event) => void (!isStopped() && events.push(event)),
    complete(key, json, identity, own) {
      if (isStopped()) return;
      if (own.length > 0) files.hold(key, identity, own);
      events.push({ json, key });
    },
    has: (key) => events.has(key),
    isAccepted: (key) => events.isAccepted(key),
    isSetAside: (key) => events.isSetAside(key),
    areFilesDone: (key) => files.isDone(key),
    async settle(deadline) {
      retryPolicy.hurry(retryPolicy.lastAnswerAtMs === undefined ? deadlineWithin(deadline, SILENT_SERVICE_MS) : deadline);
      await opened;
      await events.drain();
      await files.drain();
      return state.phase === 'open' && events.isEmpty;
    },
    async finish(fields, deadline) {
      if (state.phase !== 'open') return undefined;
      const { runId, streamToken } = state.run;
      retryPolicy.hurry(deadline);
      return retryPolicy.persist(() => client.send(
        `/api/test-runs/${runId}/finish`, jsonBody({ streamToken, ...fields }), retryPolicy.deadline(), { tries: 1, withToken: true }),
      ).catch((error: unknown) => {
        stop(error);
        return undefined;
      });
    },
    stop() {
      clearInterval(heartbeat);
      retryPolicy.stop();
    },
    progress: () => ({ ...events.progress(), ...files.progress() }),
    get run() {
      return runNow();
    },
    get stoppedBy() {
      return state.phase === 'stopped' ? state.by : undefined;
    },
    get isOffline() {
      return retryPolicy.isFailing || (retryPolicy.lastAnswerAtMs === undefined && runNow() === undefined);
    },
    get wasHeard() {
      return retryPolicy.lastAnswerAtMs !== undefined;
    },
    get firstFileLost() {
      return files.firstLost;
    },
    get filesLost() {
      return files.lost;
    },
    get resultsRefused() {
      return events.refused;
    },
  };
}
