/**
 * The spool as one run uses it: earlier runs are sent once the service answers, and this
 * one is kept when it cannot be sent, as far as it got also while it goes on.
 */
import { utimes } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { ServiceCapabilities } from '../capabilities';
import type { Client, Deadline } from '../client';
import { advice, reasonOf } from '../failure';
import type { Log } from '../log';
import type { OutgoingAttempt } from '../outgoing';
import type { LeftReport } from '../report-delivery';
import type { Report } from '../reports';
import type { Settings } from '../options';
import type { RunFields } from '../run';
import { chooseSpoolFolder } from './disk';
import { addReports, releaseEntry, removeEntry, writeEntry, type SpoolTarget, type UnkeptReport } from './entry';
import { createHashes } from './hashes';
import { createKeeper } from './keeper';
import { entriesOf, flushSpool, prune, runsFolder } from './spool';

export interface RunSpoolParts {
  settings: Pick<Settings, 'spoolDir' | 'spoolMaxBytes'>;
  origin: string;
  projectName: string;
  client: Client;
  log: Log;
  /** What the service offers; unknown when absent. */
  capabilities?: ServiceCapabilities;
  snapshotIntervalMs?: number;
}

/** The run while it goes on. */
export interface Watched {
  isOffline(): boolean;
  /** Grows whenever a snapshot would hold something new. */
  changes(): number;
  snapshot(): Promise<{ run: RunFields; attempts: Iterable<OutgoingAttempt> }>;
}

export interface RunSpool {
  /** Sends earlier runs in the background. */
  flush(): void;
  /** Keeps the run as far as it got, every minute while the service is out of reach. */
  watch(run: Watched): void;
  /** Keeps the run for a later process; returns the file. */
  keep(run: RunFields, attempts: Iterable<OutgoingAttempt>): Promise<string>;
  /** Keeps reports of a run that has arrived without them, and says what became of each. */
  keepReports(run: RunFields, left: readonly LeftReport[]): Promise<void>;
  /** This process is done: what it kept is left to later ones, with the reports of the run. */
  release(reports: readonly Report[]): Promise<void>;
  /** The run reached the service: what was kept of it is not needed. */
  forget(): Promise<void>;
  /** Gives earlier runs a little time, then lets go of them. */
  settle(deadline: Deadline): Promise<void>;
}

const SNAPSHOT_INTERVAL_MS = 60_000;
const SETTLE_MS = 10_000;

export function createRunSpool(
  { settings, origin, projectName, client, log, capabilities, snapshotIntervalMs = SNAPSHOT_INTERVAL_MS }: RunSpoolParts,
): RunSpool {
  const target = async (): Promise<SpoolTarget> => ({
    dir: path.join(await chooseSpoolFolder(settings.spoolDir), runsFolder(projectName, origin)),
    origin,
    filesMaxBytes: settings.spoolMaxBytes,
  });
  const hashes = createHashes();
  const keeper = createKeeper();
  const abort = new AbortController();
  const deadline: Deadline = { signal: abort.signal, remainingMs: () => (abort.signal.aborted ? 0 : Infinity) };
  let flushing: Promise<void> = Promise.resolve();
  const atWork = new AbortController();
  let refreshing: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let snapshot: { entry: string; changes: number } | undefined;
  let kept: string | undefined;

  const refresh = async (watched: Watched): Promise<void> => {
    if (!watched.isOffline()) {
      // The service is back; left to lie, what was kept would be taken for a run that nobody works on.
      if (snapshot) await removeEntry(snapshot.entry);
      snapshot = undefined;
      return;
    }
    const changes = watched.changes();
    // Only its time says that somebody is still at work on a run; another process may have removed it.
    if (snapshot?.changes === changes && await touch(snapshot.entry)) return;
    const { run, attempts } = await watched.snapshot();
    const entry = await writeEntry(await target(), run, attempts, { isFinal: false, keeper, hashes, signal: atWork.signal });
    snapshot = { entry, changes };
  };
  /** The run is over, and nobody waits for a snapshot of it any more. */
  const endSnapshots = async (): Promise<void> => {
    clearInterval(timer);
    atWork.abort();
    await refreshing;
  };

  const keep = async (run: RunFields, attempts: Iterable<OutgoingAttempt>): Promise<string> => {
    await endSnapshots();
    kept = await writeEntry(await target(), run, attempts, { isFinal: true, keeper, hashes });
    await prune(settings.spoolDir, settings.spoolMaxBytes);
    return kept;
  };
  const add = async (entry: string, reports: readonly Report[]): Promise<UnkeptReport[]> => {
    const unkept = await addReports(entry, reports, settings.spoolMaxBytes);
    await prune(settings.spoolDir, settings.spoolMaxBytes);
    return unkept;
  };

  return {
    flush() {
      flushing = entriesOf(settings.spoolDir, projectName, origin).then((entries) => flushSpool({
        entries, deadline, log,
        clientFor: () => client,
        tries: 1,
        ...(capabilities === undefined ? {} : { capabilities }),
        onSent: (run) => log.info(`a run from the spool was sent: ${run.runUrl ?? `${origin}/test-runs/${run.runId}`}`),
        onFailed: () => undefined,
      })).then(() => prune(settings.spoolDir, settings.spoolMaxBytes))
        .catch((error: unknown) => log.detail(`sending runs from the spool failed: ${reasonOf(error)}`));
    },
    watch(watched) {
      timer = setInterval(() => {
        // A run with many files may take longer than the interval.
        refreshing ??= refresh(watched).catch((error: unknown) => {
          if (!atWork.signal.aborted) log.detail(`keeping the run so far failed: ${reasonOf(error)}`);
        }).finally(() => {
          refreshing = undefined;
        });
      }, snapshotIntervalMs);
      timer.unref();
    },
    keep,
    async keepReports(run, left) {
      let becomeOf: (report: Report) => string;
      try {
        const isEmpty = kept === undefined;
        // Without results: sent under the same id, it finds the run that has them.
        const entry = kept ?? await keep(run, []);
        const unkept = new Map((await add(entry, left.map(({ report }) => report))).map(({ report, reason }) => [report, reason]));
        if (isEmpty && unkept.size === left.length) {
          await removeEntry(entry);
          kept = undefined;
        }
        becomeOf = (report) => (unkept.has(report) ? `and is not kept: ${unkept.get(report)}` : `spooled to ${entry}`);
      } catch (error) {
        becomeOf = () => `and spooling it failed: ${advice(error)}`;
      }
      for (const { report, error } of left) {
        log.warn(`the ${report.type} report could not be sent: ${advice(error)}, ${becomeOf(report)}`);
      }
    },
    async release(reports) {
      if (kept === undefined) return;
      try {
        for (const { report, reason } of await add(kept, reports)) log.warn(`the ${report.type} report is not kept: ${reason}`);
        await releaseEntry(kept);
      } catch (error) {
        log.detail(`keeping the reports of the run failed: ${reasonOf(error)}`);
      }
    },
    async forget() {
      await endSnapshots();
      if (snapshot) await removeEntry(snapshot.entry);
      snapshot = undefined;
    },
    async settle(limit) {
      await Promise.race([flushing, delay(Math.max(0, Math.min(SETTLE_MS, limit.remainingMs())), undefined, { ref: false })]);
      abort.abort();
      await flushing;
    },
  };
}

function touch(file: string): Promise<boolean> {
  return utimes(file, new Date(), new Date()).then(() => true, () => false);
}
