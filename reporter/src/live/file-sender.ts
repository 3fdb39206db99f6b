/**
 * Sends the files of accepted results, two requests at a time. Until a result is
 * accepted its files wait, because the service would not know where they belong.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { fitsRequest, REQUEST_MAX_BYTES } from '../capabilities';
import { isForbidden, isTransient, RequestFailed, type Client } from '../client';
import { Unreadable, type AttachmentFile } from '../files';
import type { Log } from '../log';
import type { AttemptIdentity } from '../test-case';
import { caseFilesBody } from '../upload';
import { PlanUnsupported } from '../uploads/calls';
import { stageFiles, TransferFailed } from '../uploads/stage-files';
import { stagedAttachment, STAGED_MIN_BYTES, type StagedFile } from '../uploads/staged-file';
import type { OpenRun } from './opening';
import type { RetryPolicy } from './retry-policy';

export interface FileSenderParts {
  client: Client;
  log: Log;
  retryPolicy: RetryPolicy;
  atOnce: boolean;
  run(): OpenRun | undefined;
  stop(error: unknown): void;
  isStopped(): boolean;
}

export interface FileSender {
  /** Keeps the files until their result was accepted. */
  hold(key: object, identity: AttemptIdentity, files: readonly AttachmentFile[]): void;
  release(key: object): void;
  start(): void;
  /** Ends when nothing is left, or there is no time for more; what is left then is not done. */
  drain(): Promise<void>;
  /** Every file was accepted, or will never be. */
  isDone(key: object): boolean;
  progress(): { filesSent: number; files: number; bytesLeft: number };
  readonly lost: number;
  /** The first file that was lost, and why. */
  readonly firstLost: string | undefined;
}

interface Job {
  key: object;
  identity: AttemptIdentity;
  files: readonly AttachmentFile[];
  triesOn500: number;
  /** By plan, PUT and commit instead of one multipart request. */
  isStaged: boolean;
}

const PARALLEL = 2;
const FILES_PER_REQUEST = 50;
/** The result may be on its way through another process of the service. */
const UNKNOWN_CASE_PAUSES_MS = [1_000, 3_000];
/** A file that makes the service fail would otherwise keep others from being sent for as long as the run lasts. */
const TRIES_ON_500 = 4;

export function createFileSender(parts: FileSenderParts): FileSender {
  const { retryPolicy, log } = parts;
  const held = new Map<object, Job>();
  const jobs: Job[] = [];
  const running = new Set<Promise<void>>();
  const aside: Job[] = [];
  const outstanding = new Map<object, number>();
  const done = new WeakSet<object>();
  let isOpen = false;
  let isGivenUp = false;
  let lost = 0;
  let firstLost: string | undefined;
  let filesSent = 0;
  let files = 0;
  let bytesLeft = 0;
  /** Bytes sent of files that are under way. */
  const underway = new Map<StagedFile, number>();

  const send = async (job: Job): Promise<void> => {
    const run = parts.run()!;
    const body = await caseFilesBody(run.streamToken, job.identity, job.files);
    for (let unknown = 0; ; unknown++) {
      try {
        await retryPolicy.persist(() => parts.client.send(
          `/api/test-runs/${run.runId}/case-files`, body, retryPolicy.deadline(), { tries: 1, withToken: true }),
        { triesOn500: job.triesOn500 });
        return;
      } catch (error) {
        const waitMs = UNKNOWN_CASE_PAUSES_MS[unknown];
        const mayAppear = error instanceof RequestFailed && error.code === 'case_not_found' && waitMs !== undefined;
        if (!mayAppear) throw error;
        await delay(waitMs);
      }
    }
  };
  const requestsFor = (job: Job, own: readonly AttachmentFile[]): Job[] =>
    split(own, parts.run()?.capabilities.requestMaxBytes ?? REQUEST_MAX_BYTES).map((files) => ({ ...job, files, isStaged: false }));
  /** A service that turns out to have no plans gets the files the way every service knows. */
  const stage = async (job: Job): Promise<void> => {
    const { runId, streamToken, capabilities } = parts.run()!;
    const staged = job.files.map((file) => stagedAttachment(job.identity, file));
    try {
      const outcomes = await stageFiles({
        client: parts.client, log,
        target: { runId, streamToken },
        parallel: 1,
        persist: (call) => retryPolicy.persist(call, { triesOn500: job.triesOn500 }),
        pause: (milliseconds) => retryPolicy.pause(milliseconds),
        deadline: () => retryPolicy.deadline(),
        isOver: () => retryPolicy.isOver,
        onSent: (file, sentBytes) => underway.set(file, sentBytes),
      }, staged);
      for (const [index, { failure }] of outcomes.entries()) {
        const one = { ...job, files: [job.files[index]!] };
        const isUnreachable = failure instanceof TransferFailed && failure.isUnreachable;
        if (failure === undefined) arrived(one);
        // A bucket that nobody reaches from here; the service is reached, so the file goes there.
        else if (isUnreachable && fitsRequest(one.files[0]!.content.size, capabilities)) jobs.unshift(...requestsFor(job, one.files));
        else failed(one, failure);
      }
    } catch (error) {
      if (!(error instanceof PlanUnsupported)) throw error;
      capabilities.plan = false;
      jobs.unshift(...requestsFor(job, job.files));
    } finally {
      for (const file of staged) underway.delete(file);
    }
  };
  const arrived = (job: Job): void => {
    filesSent += job.files.length;
    settle(job);
  };
  const work = async (job: Job): Promise<void> => {
    try {
      if (job.isStaged) await stage(job);
      else {
        await send(job);
        arrived(job);
      }
    } catch (error) {
      failed(job, error);
    }
  };
  const failed = (job: Job, error: unknown): void => {
    if (retryPolicy.isOver) jobs.unshift(job);
    else if (endsStreaming(error)) parts.stop(error);
    else if (mayBeDivided(error) && job.files.length > 1) jobs.unshift(...job.files.map((file) => ({ ...job, files: [file] })));
    else if (isBroken(error) || mayBeRead(error)) aside.push(job);
    else if (isTransient(error)) {
      // Patience has ended with the run: what one file met, the next one would wait for as well.
      isGivenUp = true;
      jobs.unshift(job);
    } else {
      lost += job.files.length;
      firstLost ??= `${job.files.map(({ name }) => name).join(', ')} of "${job.identity.title}": ${(error as Error).message}`;
      settle(job);
      log.detail(`${job.files.map(({ name }) => name).join(', ')} of "${job.identity.title}" not accepted: ${(error as Error).message}`);
    }
  };
  const settle = ({ key, files: own }: Job): void => {
    const remaining = outstanding.get(key)! - own.length;
    if (remaining > 0) outstanding.set(key, remaining);
    else {
      outstanding.delete(key);
      done.add(key);
    }
    bytesLeft -= sizeOf(own);
  };
  const pump = (): void => {
    while (isOpen && !isGivenUp && !retryPolicy.isOver && running.size < PARALLEL && jobs.length > 0 && !parts.isStopped()) {
      const job = jobs.shift()!;
      const one: Promise<void> = work(job).finally(() => {
        running.delete(one);
        pump();
      });
      running.add(one);
    }
  };

  return {
    hold(key, identity, own) {
      held.set(key, { key, identity, files: own, triesOn500: TRIES_ON_500, isStaged: false });
      outstanding.set(key, own.length);
      files += own.length;
      bytesLeft += sizeOf(own);
    },
    release(key) {
      const job = held.get(key);
      if (!job) return;
      held.delete(key);
      const isStaged = ({ content }: AttachmentFile): boolean =>
        parts.run()?.capabilities.plan === true && content.size >= STAGED_MIN_BYTES;
      jobs.push(...requestsFor(job, job.files.filter((file) => !isStaged(file))));
      const large = job.files.filter(isStaged);
      if (large.length > 0) jobs.push({ ...job, files: large, isStaged: true });
      if (parts.atOnce) pump();
    },
    start() {
      isOpen = true;
    },
    async drain() {
      pump();
      while (running.size > 0) await Promise.race(running);
      // Nobody waits behind these any more.
      jobs.push(...aside.splice(0).map((job) => ({ ...job, triesOn500: 1 })));
      pump();
      while (running.size > 0) await Promise.race(running);
    },
    isDone: (key) => done.has(key),
    progress: () => ({ filesSent, files, bytesLeft: [...underway.values()].reduce((left, sentBytes) => left - sentBytes, bytesLeft) }),
    get lost() {
      return lost;
    },
    get firstLost() {
      return firstLost;
    },
  };
}

/** These answers are about the run or its token, or there is none: every further request would meet the same. */
function endsStreaming(error: unknown): boolean {
  if (!(error instanceof RequestFailed)) return false;
  return isForbidden(error) || error.status === 409 || error.status === undefined
    || (error.status === 404 && error.code !== 'case_not_found');
}

/** Fewer files may be accepted, or all but the one that is gone or at fault. */
function mayBeDivided(error: unknown): boolean {
  return error instanceof Unreadable || isBroken(error)
    || error instanceof RequestFailed && (error.status === 413 || error.status === 400 || error.status === 422);
}

/** Of the file system, which may answer later, for instance when fewer files are open; or of an object store. */
function mayBeRead(error: unknown): boolean {
  return !(error instanceof RequestFailed || error instanceof Unreadable);
}

function isBroken(error: unknown): boolean {
  return error instanceof RequestFailed && error.status === 500;
}

function split(files: readonly AttachmentFile[], bytesMax: number): AttachmentFile[][] {
  const requests: AttachmentFile[][] = [];
  for (const file of files) {
    const current = requests.at(-1);
    const fits = current && current.length < FILES_PER_REQUEST
      && sizeOf(current) + file.content.size <= bytesMax - MULTIPART_BYTES;
    if (fits) current.push(file);
    else requests.push([file]);
  }
  return requests;
}

/** Room for the fields and part headers of one request. */
const MULTIPART_BYTES = 64 * 1024;

function sizeOf(files: readonly AttachmentFile[]): number {
  return files.reduce((total, { content }) => total + content.size, 0);
}
