/**
 * The spool as one run uses it: earlier runs are sent once the service answers, and this
 * one is kept when it cannot be sent, as far as it got also while it goes on.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Client, Deadline } from '../client';
import type { OutgoingAttempt } from '../delivery';
import { reasonOf } from '../failure';
import type { Log } from '../log';
import type { Report } from '../reports';
import type { Settings } from '../options';
import type { RunFields } from '../run';
import { releaseEntry, removeEntry, writeEntry } from './entry';
import { entriesIn, flushSpool, prune, spoolFolder } from './spool';

export interface RunSpoolParts {
  settings: Pick<Settings, 'spoolDir' | 'spoolMaxBytes'>;
  origin: string;
  projectName: string;
  client: Client;
  log: Log;
}

export interface RunSpool {
  /** Sends earlier runs in the background. */
  flush(): void;
  /** Keeps the run as far as it got, every minute while the service is out of reach. */
  watch(isOffline: () => boolean, snapshot: () => Promise<{ run: RunFields; attempts: Iterable<OutgoingAttempt> }>): void;
  /** Keeps the run for a later process; returns the file. */
  keep(run: RunFields, attempts: Iterable<OutgoingAttempt>): Promise<string>;
  /** This process is done: what it kept is left to later ones, with the reports of the run. */
  release(reports: readonly Report[]): Promise<void>;
  /** The run reached the service: what was kept of it is not needed. */
  forget(): Promise<void>;
  /** Gives earlier runs a little time, then lets go of them. */
  settle(deadline: Deadline): Promise<void>;
}

const SNAPSHOT_INTERVAL_MS = 60_000;
const SETTLE_MS = 10_000;

export function createRunSpool({ settings, origin, projectName, client, log }: RunSpoolParts): RunSpool {
  const dir = spoolFolder(settings.spoolDir, projectName, origin);
  const target = { dir, origin, filesMaxBytes: settings.spoolMaxBytes };
  const abort = new AbortController();
  const deadline: Deadline = { signal: abort.signal, remainingMs: () => (abort.signal.aborted ? 0 : Infinity) };
  let flushing: Promise<void> = Promise.resolve();
  let writing: Promise<string | undefined> = Promise.resolve(undefined);
  let timer: NodeJS.Timeout | undefined;
  let kept: string | undefined;

  return {
    flush() {
      flushing = entriesIn(dir).then((entries) => flushSpool({
        entries, deadline, log,
        clientFor: () => client,
        tries: 1,
        onSent: (run) => log.info(`a run from the spool was sent: ${run.runUrl ?? `${origin}/test-runs/${run.runId}`}`),
        onFailed: () => undefined,
      })).catch((error: unknown) => log.detail(`sending runs from the spool failed: ${reasonOf(error)}`));
    },
    watch(isOffline, snapshot) {
      const refresh = async (written: string | undefined): Promise<string | undefined> => {
        if (isOffline()) {
          const { run, attempts } = await snapshot();
          return writeEntry(target, run, attempts, false);
        }
        // The service is back; left to lie, what was kept would be taken for a run that nobody works on.
        if (written) await removeEntry(written);
        return undefined;
      };
      timer = setInterval(() => {
        writing = writing.then((written) => refresh(written).catch(() => written));
      }, SNAPSHOT_INTERVAL_MS);
      timer.unref();
    },
    async keep(run, attempts) {
      clearInterval(timer);
      await writing;
      kept = await writeEntry(target, run, attempts, true);
      await prune(settings.spoolDir, settings.spoolMaxBytes);
      return kept;
    },
    async release(reports) {
      if (kept === undefined) return;
      try {
        await releaseEntry(kept, reports, settings.spoolMaxBytes);
        await prune(settings.spoolDir, settings.spoolMaxBytes);
      } catch (error) {
        log.detail(`keeping the reports of the run failed: ${reasonOf(error)}`);
      }
    },
    async forget() {
      clearInterval(timer);
      const file = await writing;
      if (file) await removeEntry(file);
    },
    async settle(limit) {
      await Promise.race([flushing, delay(Math.max(0, Math.min(SETTLE_MS, limit.remainingMs())), undefined, { ref: false })]);
      abort.abort();
      await flushing;
    },
  };
}
