/**
 * One run from its first test to its last byte: streamed while it goes on, sent as a
 * batch where streaming did not work, kept on disk where that did not work either.
 */
import type { FullResult, TestCase, TestError, TestResult, TestStep } from '@playwright/test/reporter';
import { attemptOf, attemptsOf, keyOf, type Attempt } from './attempts';
import { takeCaptures, type CaptureStore } from './captures';
import { UNKNOWN_CAPABILITIES, type ServiceCapabilities } from './capabilities';
import { createClient, deadlineIn, deadlineWithin, isTransient, type Deadline } from './client';
import { recordsTrace, watchCutOff } from './cut-off';
import { deliverRun } from './delivery';
import { advice } from './failure';
import { NONE_LISTED, readFailingTests } from './failing-tests';
import { filesOf } from './files';
import { beginEvent, stepEvent } from './live/events';
import { startLive } from './live/session';
import { rememberRun } from './last-run';
import { mayBeHeldOpen, mayPrintNow } from './log';
import { showsSummary, writeCiOutputs, writeOutputFile } from './output';
import { deliveredRun, type DeliveredRun, type OutgoingAttempt, type OutgoingFile, type OutgoingResult } from './outgoing';
import { reportProgress } from './progress';
import { collectServerWarnings } from './server-warnings';
import { deliverNoReport, deliverReports } from './report-delivery';
import { expectedReports, isFresh, mayBeReported, type Report } from './reports';
import { runFields, type RunFields } from './run';
import { describeRun, type RunParts } from './run-context';
import { reasonsOf } from './run-errors';
import { createRunSpool } from './spool/run-spool';
import type { RunOutput } from './summary';
import { createTestCaseBuilder } from './test-case';

export interface ActiveRun {
  testBegan(test: TestCase, result: TestResult): void;
  stepBegan(test: TestCase, result: TestResult, step: TestStep): void;
  stepEnded(test: TestCase, result: TestResult, step: TestStep): void;
  testEnded(test: TestCase, result: TestResult): void;
  errorCame(error: TestError): void;
  /** Every test is done: gets all of it to the service. */
  end(result: FullResult): Promise<void>;
  /** Reports that are complete by now. */
  sendReports(): Promise<void>;
  /** Every reporter is done: what is left, and what later steps of a pipeline read. */
  exit(): Promise<void>;
}

/**
 * Where the run stands: its tests run, then the service has it or has not. Reports follow only a run that was delivered; of
 * one that was not they are kept beside it.
 */
type Stage =
  | { name: 'running' }
  | { name: 'undelivered' }
  | DeliveredStage;

interface DeliveredStage {
  name: 'delivered';
  fields: RunFields;
  run: DeliveredRun;
  /** The service waits for a report before it ends the run. */
  awaitsReport: boolean;
}

/** Kept back for ending the run when its files take all the time there is. */
const FINISH_SHARE = 0.25;
const FINISH_RESERVE_MS = 15_000;
/** For a list in the summary of the job, which is worth no more. */
const LISTING_MS = 5_000;
/** With a service that never answered while the tests ran, this much is tried at the end. */
const SILENT_SERVICE = { tries: 2, withinMs: 10_000 };

export function beginRun(parts: RunParts): ActiveRun {
  const { settings, config, workingDirectory, log } = parts;
  const { handover, startedAtMs, buildUrl, projectName, root, run, fields, metadata } = describeRun(parts);
  const service = createClient(parts.origin, settings.credentials, log);
  const warnings = collectServerWarnings(log);
  const client = warnings.listenTo(service);
  const capabilities: ServiceCapabilities = { ...UNKNOWN_CAPABILITIES };
  const captures: CaptureStore = new WeakMap();
  const builder = createTestCaseBuilder(run, parts.modes, captures);

  let haveTestsBegun = false;
  const cutOff = watchCutOff();
  let changes = 0;
  let stage: Stage = { name: 'running' };
  let spentMs = 0;
  const sentReports = new Set<string>();
  let unsentReports = 0;
  const notWritten = new Set<string>();
  // Warnings about earlier runs do not belong to the end of this one.
  const spool = createRunSpool({ settings, origin: parts.origin, projectName, client: collectServerWarnings(log).listenTo(service), log, capabilities });
  const live = settings.streaming ? startLive({
    client, log,
    batchSize: settings.streamingBatchSize,
    batchDelayMs: settings.streamingBatchDelayMs,
    filesAtOnce: settings.liveFileUploads,
    start: metadata(false).then((known) => ({ ...fields, metadata: known })),
    setup: handover?.registration,
    onOpen({ runId, runUrl, capabilities: announced }) {
      Object.assign(capabilities, announced);
      if (mayPrintNow(config, haveTestsBegun)) log.now(`live: ${urlOf(runId, runUrl)}`);
      spool.flush();
    },
    onAccepted: (key) => void captures.delete(key as TestResult),
  }) : undefined;
  if (!live) spool.flush();
  spool.watch({
    isOffline: () => live?.isOffline ?? false,
    changes: () => changes,
    async snapshot() {
      const soFar = { ...run, result: { ...run.result, status: 'interrupted' as const, duration: Date.now() - startedAtMs } };
      function* begun(): Generator<OutgoingAttempt> {
        for (const attempt of attemptsOf(soFar)) if (attempt.result) yield outgoing(attempt);
      }
      return { run: runFields(fields, soFar, await metadata(true)), attempts: begun() };
    },
  });

  function outgoing(attempt: Attempt): OutgoingAttempt {
    const key = keyOf(attempt);
    // A run the service no longer knows is told from the beginning.
    const isKnown = live?.run !== undefined && live.stoppedBy?.status !== 404;
    const identity = builder.identity(attempt);
    return {
      identity,
      entry: isKnown && live.isAccepted(key) ? { type: 'complete', ...identity } : builder.entry(attempt),
      files: attempt.result && !(isKnown && live.areFilesDone(key)) ? filesOf(attempt.result, settings) : [],
    };
  }
  function* everything(): Generator<OutgoingAttempt> {
    for (const attempt of attemptsOf(run)) yield outgoing(attempt);
  }
  function urlOf(runId: number, runUrl: string | undefined): string {
    return runUrl ?? `${parts.origin}/test-runs/${runId}`;
  }
  function queue(attempt: Attempt): void {
    live?.complete(
      keyOf(attempt), JSON.stringify(builder.entry(attempt)), builder.identity(attempt),
      attempt.result ? filesOf(attempt.result, settings) : []);
  }

  /** The streamed run, ended; undefined when its results have to be sent as a batch. */
  async function finishLive(all: RunFields, deadline: Deadline): Promise<DeliveredStage | undefined> {
    if (!live) return undefined;
    for (const attempt of attemptsOf(run)) if (!live.has(keyOf(attempt))) queue(attempt);
    const stopProgress = reportProgress(log, () => live.progress());
    try {
      const reserveMs = Math.min(FINISH_RESERVE_MS, deadline.remainingMs() * FINISH_SHARE);
      const isComplete = await live.settle(deadlineWithin(deadline, deadline.remainingMs() - reserveMs))
        && [...attemptsOf(run)].every((attempt) => live.has(keyOf(attempt)));
      if (!isComplete) return undefined;
      const awaitsReport = settings.uploadReport && mayBeReported(config, settings.reports);
      const answer = await live.finish({
        ...all, hasPendingUploads: awaitsReport, setupSteps: handover?.steps ?? [],
      }, deadline);
      if (!answer) return undefined;
      const filesLeft: OutgoingFile[] = [];
      const resultsLeft: OutgoingResult[] = [];
      for (const attempt of attemptsOf(run)) {
        const { identity, entry, files } = outgoing(attempt);
        if (live.isSetAside(keyOf(attempt))) resultsLeft.push({ identity, entry });
        filesLeft.push(...files.map((file) => ({ identity, file })));
      }
      const { projectId, runUrl } = live.run!;
      const finished: DeliveredRun = {
        ...deliveredRun({ projectId, runUrl, ...answer }),
        filesSent: live.progress().filesSent, filesLost: live.filesLost, filesLeft, resultsLeft,
        ...(live.firstFileLost === undefined ? {} : { firstFileLost: live.firstFileLost }),
      };
      return { name: 'delivered', fields: all, run: finished, awaitsReport };
    } finally {
      stopProgress();
    }
  }

  async function sendBatch(all: RunFields, deadline: Deadline): Promise<DeliveredStage> {
    const isSilent = live !== undefined && !live.wasHeard;
    const submitted = await deliverRun({
      client, log, run: all, capabilities,
      isWaitedFor: true,
      deadline: isSilent ? deadlineWithin(deadline, SILENT_SERVICE.withinMs) : deadline,
      attempts: everything(),
      ...(isSilent ? { tries: SILENT_SERVICE.tries } : {}),
    });
    return { name: 'delivered', fields: all, run: submitted, awaitsReport: false };
  }

  async function deliver(all: RunFields, deadline: Deadline): Promise<Stage> {
    try {
      return await finishLive(all, deadline) ?? await sendBatch(all, deadline);
    } catch (error) {
      const because = isTransient(error) ? 'offline' : `sending the run to ${parts.origin} failed: ${advice(error)}`;
      log.detail(advice(error));
      try {
        log.warn(`${because}, spooled to ${await spool.keep(all, everything())}`);
      } catch (spoolError) {
        log.warn(`sending the run to ${parts.origin} failed: ${advice(error)}, and so did spooling it: ${advice(spoolError)}`);
      }
      return { name: 'undelivered' };
    }
  }

  /** `finalizeTimeout` covers everything done after the tests, not each call. */
  async function withinBudget<T>(work: (deadline: Deadline) => Promise<T>): Promise<T> {
    const from = Date.now();
    try {
      return await work(deadlineIn(Math.max(0, settings.finalizeTimeoutMs - spentMs)));
    } finally {
      spentMs += Date.now() - from;
    }
  }

  async function sendReports(isLast: boolean): Promise<void> {
    const now = stage;
    if (now.name !== 'delivered' || !settings.uploadReport) return;
    const run = { runId: now.run.runId, projectName, startedAtMs, clientRunId: now.fields.clientRunId };
    // An html report gets its page last; any other may look complete while its reporter is still at work.
    const areWritten = isLast || mayBeHeldOpen(config, process.env);
    const ready = reports().filter(({ type }) => areWritten || type === 'html');
    const left = await withinBudget(async (deadline) => {
      const sent = await deliverReports({ client, deadline, log, run, reports: ready, done: sentReports, capabilities });
      unsentReports += sent.left.length;
      let { status } = sent;
      if (status !== undefined) now.awaitsReport = false;
      // A report that comes some other day finds its run; until then the run need not look unfinished.
      if (now.awaitsReport && isLast) status = await deliverNoReport({ client, deadline, log, run }, unsentReports > 0 ? { tries: 1 } : {});
      now.run.status = status ?? now.run.status;
      return sent.left;
    });
    if (left.length > 0) await spool.keepReports(now.fields, left);
  }

  function reports(): Report[] {
    return expectedReports(config, settings.reports, process.env, workingDirectory);
  }

  return {
    testBegan(test, result) {
      haveTestsBegun = true;
      changes++;
      live?.sendTransient(beginEvent(test, result, root, config.shard?.current ?? null));
    },
    stepBegan(test, result, step) {
      const event = live && stepEvent('step-begin', test, result, step, root);
      if (event) live.sendTransient(event);
    },
    stepEnded(test, result, step) {
      const event = live && stepEvent('step-end', test, result, step, root);
      if (event) live.sendTransient(event);
    },
    testEnded(test, result) {
      const captured = takeCaptures(result);
      if (captured) captures.set(result, captured);
      // Playwright counts it no more; its files are sent with the run.
      if (cutOff.isNear) return cutOff.testEnded(result);
      run.ended.add(result);
      changes++;
      const attempt = attemptOf(run, test, result);
      // Why it did not run may be known only when the run is over; what is not queued yet is queued then.
      if (attempt.status !== 'didnotrun' || attempt.blockedBy !== undefined) queue(attempt);
    },
    errorCame: cutOff.errorCame,
    async end(result) {
      run.result = {
        status: result.status,
        // A merged report begins when its tests did, a registered run when it was registered.
        startTime: handover ? run.result.startTime : result.startTime ?? run.result.startTime,
        duration: result.duration ?? Date.now() - startedAtMs,
      };
      const unfinished = await withinBudget((deadline) => cutOff.settle(run, result.status, deadline.remainingMs()));
      for (const { title } of unfinished.filter(recordsTrace)) {
        log.warn(`"${title}" was cut off and wrote no trace in time, so none was sent`);
      }
      const all = runFields(fields, run, await metadata(true));
      stage = await withinBudget((deadline) => deliver(all, deadline));
      if (stage.name !== 'delivered') return;
      const { run: delivered } = stage;
      await spool.forget();
      await keepLeft(all, delivered);
      log.info(`run: ${urlOf(delivered.runId, delivered.runUrl)}`);
      // Written again when the reports are there; at a terminal that may never be.
      writeOutput();
      await rememberRun(settings.spoolDir, workingDirectory, { runId: delivered.runId, origin: parts.origin })
        .catch((error: unknown) => log.detail(`remembering the run for the command summary failed: ${advice(error)}`));
    },
    async sendReports() {
      await sendReports(false);
      if (mayBeHeldOpen(config, process.env)) sayWarnings();
    },
    async exit() {
      await sendReports(true);
      const areLeft = stage.name !== 'delivered' && settings.uploadReport;
      await spool.release(areLeft ? reports().filter((report) => isFresh(report, startedAtMs)) : []);
      await withinBudget((deadline) => spool.settle(deadline));
      live?.stop();
      sayWarnings();
      const output = writeOutput();
      if (!output) return;
      const failing = showsSummary(process.env)
        ? await readFailingTests(service, output, deadlineIn(LISTING_MS), log)
        : NONE_LISTED;
      written('what the CI system reads', () => {
        const totals = runFields(fields, run, {});
        const reasons = reasonsOf(parts.runErrors.list(config, root), run.result.status, totals.failedTests);
        const command = writeCiOutputs(process.env, workingDirectory, output, totals, reasons, failing);
        if (command) parts.printCommand(command);
      });
    },
  };

  function sayWarnings(): void {
    const line = warnings.take();
    if (line !== undefined) log.info(line);
  }

  /** What did not arrive of a run that did. */
  async function keepLeft(all: RunFields, { filesLeft, filesLost, firstFileLost, filesSent, resultsLeft }: DeliveredRun): Promise<void> {
    const refused = live?.resultsRefused ?? 0;
    if (refused > 0) log.warn(`${refused} results were not accepted by the service`);
    if (filesLost > 0) log.warn(`${filesLost} of ${filesSent + filesLost + filesLeft.length} files could not be sent${firstFileLost === undefined ? '' : `, the first: ${firstFileLost}`}`);
    const entries = new Map(resultsLeft.map(({ identity, entry }) => [identity, entry]));
    const files = new Map([...entries.keys(), ...filesLeft.map(({ identity }) => identity)]
      .map((identity) => [identity, [] as OutgoingAttempt['files']]));
    if (files.size === 0) return;
    for (const { identity, file } of filesLeft) files.get(identity)!.push(file);
    const left = [...files].map(([identity, own]) =>
      ({ identity, entry: entries.get(identity) ?? { type: 'complete' as const, ...identity }, files: own }));
    const what = [
      ...(resultsLeft.length > 0 ? [`${resultsLeft.length} results`] : []),
      ...(filesLeft.length > 0 ? [`${filesLeft.length} files`] : []),
    ].join(' and ');
    try {
      log.warn(`${what} are left, spooled to ${await spool.keep(all, left)}`);
    } catch (error) {
      log.warn(`${what} are left, and spooling them failed: ${advice(error)}`);
    }
  }

  function writeOutput(): RunOutput | undefined {
    if (stage.name !== 'delivered') return undefined;
    const { run: delivered } = stage;
    const output = {
      runUrl: urlOf(delivered.runId, delivered.runUrl),
      runId: delivered.runId,
      projectId: delivered.projectId ?? null,
      projectName,
      status: delivered.status ?? run.result.status,
      ciBuildUrl: buildUrl ?? null,
    };
    const { outputFile } = settings;
    if (outputFile) written('the file of the option outputFile', () => writeOutputFile(outputFile, workingDirectory, output));
    return output;
  }

  /** The run has arrived, whether or not this can be written beside it. */
  function written(what: string, write: () => void): void {
    try {
      write();
    } catch (error) {
      if (!notWritten.has(what)) log.warn(`${what} could not be written: ${advice(error)}`);
      notWritten.add(what);
    }
  }
}
