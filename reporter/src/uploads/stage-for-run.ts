/**
 * Direct uploads for a run that has ended: with the credentials of the user, and as patient as every request of a batch.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { withRetries, type Client, type Deadline } from '../client';
import type { Log } from '../log';
import type { UploadTarget } from './calls';
import { stageFiles, type StagedOutcome } from './stage-files';
import type { StagedFile } from './staged-file';

export interface RunStaging {
  client: Client;
  deadline: Deadline;
  log: Log;
  /** Requests made at most for each step; six when absent. */
  tries?: number;
}

const TRIES = 6;
const PARALLEL = 2;

/** See `stageFiles`. */
export function stageForRun(
  { client, deadline, log, tries = TRIES }: RunStaging, target: UploadTarget, files: readonly StagedFile[],
  onSent: (file: StagedFile, sentBytes: number) => void,
): Promise<StagedOutcome[]> {
  return stageFiles({
    client, log, target, onSent,
    parallel: PARALLEL,
    persist: (call) => withRetries('/api/uploads', tries, deadline, log, call),
    async pause(milliseconds) {
      await delay(Math.max(0, Math.min(milliseconds, deadline.remainingMs())));
    },
    deadline: () => deadline,
    isOver: () => deadline.signal.aborted || deadline.remainingMs() <= 0,
  }, files);
}
