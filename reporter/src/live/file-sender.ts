/**
 * Sends the files of accepted results, two requests at a time. Until a result is
 * accepted its files wait, because the service would not know where they belong.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { isForbidden, RequestFailed, type Client } from '../client';
import { Unreadable, type AttachmentFile } from '../files';
import type { Log } from '../log';
import type { AttemptIdentity } from '../test-case';
import { caseFilesBody } from '../upload';
import type { OpenRun } from './open-run';
import type { Pace } from './pace';

export interface FileSenderParts {
  client: Client;
  log: Log;
  pace: Pace;
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
  drain(): Promise<void>;
  isDone(key: object): boolean;
  progress(): { filesSent: number; files: number; bytesLeft: number };
  readonly isEmpty: boolean;
  readonly lost: number;
}

interface Job {
  key: object;
  identity: AttemptIdentity;
  files: readonly AttachmentFile[];
}

const PARALLEL = 2;
const FILES_PER_REQUEST = 50;
/** The result may be on its way through another process of the service. */
const UNKNOWN_CASE_PAUSES_MS = [1_000, 3_000];

export function createFileSender(parts: FileSenderParts): FileSender {
  const { pace, log } = parts;
  const held = new Map<object, Job>();
  const jobs: Job[] = [];
  const running = new Set<Promise<void>>();
  const left = new Map<object, number>();
  const done = new WeakSet<object>();
  let isOpen = false;
  let lost = 0;
  let filesSent = 0;
  let files = 0;
  let bytesLeft = 0;

  const send = async (job: Job): Promise<void> => {
    const run = parts.run()!;
    const body = await caseFilesBody(run.streamToken, job.identity, job.files);
    for (let unknown = 0; ; unknown++) {
      try {
        await pace.persist(() => parts.client.send(
          `/api/test-runs/${run.runId}/case-files`, body, pace.deadline(), { tries: 1, withToken: true }));
        return;
      } catch (error) {
        const waitMs = UNKNOWN_CASE_PAUSES_MS[unknown];
        const mayAppear = error instanceof RequestFailed && error.code === 'case_not_found' && waitMs !== undefined;
        if (!mayAppear) throw error;
        await delay(waitMs);
      }
    }
  };
  const work = async (job: Job): Promise<void> => {
    try {
      await send(job);
      filesSent += job.files.length;
    } catch (error) {
      if (endsStreaming(error)) {
        parts.stop(error);
        return;
      }
      if (mayBeDivided(error) && job.files.length > 1) {
        left.set(job.key, left.get(job.key)! + job.files.length - 1);
        jobs.unshift(...job.files.map((file) => ({ ...job, files: [file] })));
        return;
      }
      lost += job.files.length;
      log.detail(`${job.files.map(({ name }) => name).join(', ')} of "${job.identity.title}" not accepted: ${(error as Error).message}`);
    } finally {
      finish(job);
    }
  };
  const finish = (job: Job): void => {
    const remaining = left.get(job.key)! - 1;
    left.set(job.key, remaining);
    if (remaining === 0 && !parts.isStopped()) done.add(job.key);
    bytesLeft -= sizeOf(job.files);
  };
  const pump = (): void => {
    while (isOpen && running.size < PARALLEL && jobs.length > 0 && !parts.isStopped()) {
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
      held.set(key, { key, identity, files: own });
      files += own.length;
      bytesLeft += sizeOf(own);
    },
    release(key) {
      const job = held.get(key);
      if (!job) return;
      held.delete(key);
      const requests = split(job.files, parts.run()?.requestMaxBytes ?? Infinity);
      left.set(key, requests.length);
      jobs.push(...requests.map((own) => ({ ...job, files: own })));
      if (parts.atOnce) pump();
    },
    start() {
      isOpen = true;
    },
    async drain() {
      pump();
      while (running.size > 0) await Promise.race(running);
    },
    isDone: (key) => done.has(key),
    progress: () => ({ filesSent, files, bytesLeft }),
    get isEmpty() {
      return jobs.length === 0 && held.size === 0;
    },
    get lost() {
      return lost;
    },
  };
}

/** These answers are about the run or its token; every further request would meet them too. */
function endsStreaming(error: unknown): boolean {
  if (!(error instanceof RequestFailed)) return false;
  return isForbidden(error) || error.status === 409 || error.status === undefined || error.status >= 500
    || (error.status === 404 && error.code !== 'case_not_found');
}

/** Fewer files may be accepted, or all but the one that is gone. */
function mayBeDivided(error: unknown): boolean {
  return error instanceof Unreadable || error instanceof RequestFailed && (error.status === 413 || error.status === 400 || error.status === 422);
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
