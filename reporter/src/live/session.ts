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
import { openRun, type OpenRun } from './open-run';
import { createPace } from './pace';

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
  animate(event: QueuedEvent): void;
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

const QUEUE_MAX_BYTES = 64 * 1024 * 1024;
const IDLE_MS = 15_000;
/** A service that never answered is not waited for when the tests are done. */
const SILENT_SERVICE_MS = 5_000;

export function startLive(parts: LiveParts): Live {
  const { client, log } = parts;
  const pace = createPace();
  let run: OpenRun | undefined;
  let stoppedBy: RequestFailed | undefined;

  const stop = (error: unknown): void => {
    if (stoppedBy) return;
    stoppedBy = error instanceof RequestFailed ? error : new RequestFailed(reasonOf(error), undefined);
    log.detail(`streaming stopped: ${stoppedBy.message}`);
  };
  const isStopped = (): boolean => stoppedBy !== undefined;
  const files = createFileSender({ client, log, pace, stop, isStopped, run: () => run, atOnce: parts.filesAtOnce });
  const events = createEventSender({
    client, log, pace, stop, isStopped,
    run: () => run,
    queue: createEventQueue(QUEUE_MAX_BYTES),
    batchSize: parts.batchSize,
    batchDelayMs: parts.batchDelayMs,
    onAccepted: (key) => {
      files.release(key);
      parts.onAccepted(key);
    },
  });
  const opened = openRun({ client, log, pace, start: parts.start, setup: parts.setup }).then((answer) => {
    run = answer;
    parts.onOpen(answer);
    events.start();
    files.start();
  }).catch(stop);

  const call = (path: string, fields: Record<string, unknown>): Promise<JsonObject> => pace.persist(() => client.send(
    `/api/test-runs/${run!.runId}/${path}`, jsonBody({ streamToken: run!.streamToken, ...fields }), pace.deadline(),
    { tries: 1, withToken: true }));
  let beatAtMs = 0;
  // Beside what is on its way: that says whether the service takes what it is sent, and this only that the run goes on.
  const beat = async ({ runId, streamToken }: OpenRun): Promise<void> => {
    beatAtMs = Date.now();
    await client.send(
      `/api/test-runs/${runId}/heartbeat`, jsonBody({ streamToken }), pace.deadline(), { tries: 1, withToken: true },
    ).catch((error: unknown) => {
      if (!isTransient(error)) stop(error);
    });
  };
  const heartbeat = setInterval(() => {
    const idleMs = Date.now() - Math.max(pace.lastAnswerAtMs ?? Date.now(), beatAtMs);
    if (run && !stoppedBy && !pace.isHurried && idleMs >= IDLE_MS) void beat(run);
  }, IDLE_MS / 3);
  heartbeat.unref();

  return {
    animate: (event) => void (!stoppedBy && events.push(event)),
    complete(key, json, identity, own) {
      if (stoppedBy) return;
      if (own.length > 0) files.hold(key, identity, own);
      events.push({ json, key });
    },
    has: (key) => events.has(key),
    isAccepted: (key) => events.isAccepted(key),
    isSetAside: (key) => events.isSetAside(key),
    areFilesDone: (key) => files.isDone(key),
    async settle(deadline) {
      pace.hurry(pace.lastAnswerAtMs === undefined ? deadlineWithin(deadline, SILENT_SERVICE_MS) : deadline);
      await opened;
      await events.drain();
      await files.drain();
      return run !== undefined && !stoppedBy && events.isEmpty;
    },
    async finish(fields, deadline) {
      if (!run || stoppedBy) return undefined;
      pace.hurry(deadline);
      return call('finish', fields).catch((error: unknown) => {
        stop(error);
        return undefined;
      });
    },
    stop() {
      clearInterval(heartbeat);
      pace.stop();
    },
    progress: () => ({ ...events.progress(), ...files.progress() }),
    get run() {
      return run;
    },
    get stoppedBy() {
      return stoppedBy;
    },
    get isOffline() {
      return pace.isFailing || (pace.lastAnswerAtMs === undefined && run === undefined);
    },
    get wasHeard() {
      return pace.lastAnswerAtMs !== undefined;
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
