/**
 * The reporter Playwright talks to. It only listens during the run, sends everything
 * when the run is over, and never lets a problem of its own reach the test run: no
 * method throws, none returns a status, a failure is one log line.
 */
import os from 'node:os';
import type { FullConfig, FullResult, Reporter, Suite, TestCase, TestError, TestResult } from '@playwright/test/reporter';
import { attemptsOf, type RunOutcome } from './attempts';
import { detectCi } from './ci';
import { createClient, deadlineIn, RequestFailed, type Client } from './client';
import { deliverRun, type DeliveredRun, type OutgoingAttempt } from './delivery';
import { messageOf, stripAnsi } from './errors';
import { filesOf } from './files';
import { collectScm, type ScmInfo } from './git';
import { instanceId, newClientRunId } from './identity';
import { createLog, mayBeHeldOpen, stdoutIsDocument, type Log } from './log';
import { metadataOf } from './metadata';
import { projectNameFor, resolveSettings, type CallboardReporterOptions, type Settings } from './options';
import { writeOutputFile } from './output';
import { deliverReports } from './report-delivery';
import { configDir, expectedReports } from './reports';
import { runFields } from './run';
import { selectionOf, type Selection } from './selection';
import { readSuiteModes, type PlannedRun, type SuiteModes } from './suites';
import { createTestCaseBuilder } from './test-case';
import { reporterVersion } from './version';

/** What is known from the beginning of the run on. */
interface Begun {
  config: FullConfig;
  suite: Suite;
  startedAtMs: number;
  selection: Selection;
  projectName: string;
  ci: ReturnType<typeof detectCi>;
  scm: Promise<ScmInfo | undefined>;
  client: Client;
}

const GLOBAL_ERRORS_MAX = 10;
const GLOBAL_ERROR_MAX_CHARS = 2_000;

export class CallboardReporter implements Reporter {
  private readonly settings: Settings;
  private readonly workingDirectory = process.cwd();
  private readonly log: Log;
  private output: NodeJS.WritableStream = process.stdout;
  private begun: Begun | undefined;
  private delivered: DeliveredRun | undefined;
  private readonly ended = new WeakSet<TestResult>();
  private readonly modes: SuiteModes = new WeakMap();
  private readonly globalErrors: string[] = [];
  private readonly sentReports = new Set<string>();
  private spentMs = 0;

  constructor(options: CallboardReporterOptions = {}) {
    this.settings = resolveSettings(options ?? {}, process.env);
    this.log = createLog(this.settings.verbose, () => this.output);
  }

  printsToStdio(): boolean {
    return false;
  }

  /** Only newer Playwright calls this; it is the one moment at which suites tell their mode. */
  async preprocess(planned: PlannedRun): Promise<void> {
    this.guard('reading suite modes', () => readSuiteModes(planned, this.modes));
  }

  onBegin(config: FullConfig, suite: Suite): void {
    this.guard('starting', () => this.begin(config, suite));
  }

  onTestEnd(_test: TestCase, result: TestResult): void {
    this.ended.add(result);
  }

  onError(error: TestError): void {
    if (this.globalErrors.length >= GLOBAL_ERRORS_MAX) return;
    this.globalErrors.push(stripAnsi(messageOf(error)).slice(0, GLOBAL_ERROR_MAX_CHARS));
  }

  async onEnd(result: FullResult): Promise<void> {
    await this.guardAsync('sending the run', async () => {
      const { begun } = this;
      if (!begun) return;
      await this.sendRun(begun, result);
      // Reporters listed before this one have written theirs already.
      await this.sendReports(begun);
    });
    if (this.begun && mayBeHeldOpen(this.begun.config, process.env)) this.log.flush();
  }

  async onExit(): Promise<void> {
    await this.guardAsync('sending reports', async () => {
      if (this.begun) await this.sendReports(this.begun);
    });
    this.log.flush();
  }

  private begin(config: FullConfig, suite: Suite): void {
    const { settings } = this;
    if (stdoutIsDocument(config, process.env)) this.output = process.stderr;
    if (settings.problem) this.log.warn(settings.problem);
    if (settings.origin === undefined) return;
    const selection = selectionOf(config);
    if (selection.isListing) return;
    const ci = detectCi(process.env);
    this.begun = {
      config,
      suite,
      startedAtMs: Date.now(),
      selection,
      projectName: projectNameFor(settings, configDir(config, this.workingDirectory)),
      ci,
      // Asked now, so that the answers are there when the run ends.
      scm: settings.collectScmInfo
        ? collectScm(configDir(config, this.workingDirectory), ci?.info).catch(() => undefined)
        : Promise.resolve(undefined),
      client: createClient(settings.origin, settings.credentials, this.log),
    };
  }

  private async sendRun(begun: Begun, result: FullResult): Promise<void> {
    const { settings, workingDirectory } = this;
    const run: RunOutcome = {
      config: begun.config,
      suite: begun.suite,
      ended: this.ended,
      workingDirectory,
      result: {
        status: result.status,
        startTime: result.startTime ?? new Date(begun.startedAtMs),
        duration: result.duration ?? Date.now() - begun.startedAtMs,
      },
    };
    const ci = settings.collectCiInfo ? begun.ci?.info : undefined;
    const scm = await begun.scm;
    const metadata = metadataOf({ settings, ci, scm, run, attempts: attemptsOf(run), globalErrors: this.globalErrors });
    const fields = runFields({
      run,
      settings,
      metadata,
      selection: begun.selection,
      projectName: begun.projectName,
      clientRunId: newClientRunId(),
      reporterVersion: reporterVersion(),
      instanceId: instanceId({
        projectName: begun.projectName,
        runLabel: settings.runLabel ?? begun.ci?.runLabel,
        playwrightProjects: begun.selection.projects,
        hostname: os.hostname(),
        workingDirectory,
      }),
    });
    const delivered = await this.withinBudget((deadline) => deliverRun({
      client: begun.client, deadline, log: this.log, run: fields, attempts: this.outgoing(run),
    }));
    this.delivered = delivered;
    if (delivered.filesLost > 0) {
      this.log.warn(`${delivered.filesLost} of ${delivered.filesSent + delivered.filesLost} files could not be sent`);
    }
    const runUrl = delivered.runUrl ?? `${settings.origin}/test-runs/${delivered.runId}`;
    this.log.info(`run: ${runUrl}`);
    this.guard('writing outputFile', () => {
      if (!settings.outputFile) return;
      writeOutputFile(settings.outputFile, workingDirectory, {
        runUrl,
        runId: delivered.runId,
        projectId: delivered.projectId ?? null,
        projectName: begun.projectName,
        status: delivered.status ?? result.status,
        ciBuildUrl: ci?.buildUrl ?? null,
      });
    });
  }

  private* outgoing(run: RunOutcome): Generator<OutgoingAttempt> {
    const builder = createTestCaseBuilder(run, this.modes);
    for (const attempt of attemptsOf(run)) {
      yield {
        entry: builder.entry(attempt),
        identity: builder.identity(attempt),
        files: attempt.result ? filesOf(attempt.result, this.settings) : [],
      };
    }
  }

  private async sendReports(begun: Begun): Promise<void> {
    const { delivered, settings } = this;
    if (!delivered || !settings.uploadReport) return;
    await this.withinBudget((deadline) => deliverReports({
      client: begun.client,
      deadline,
      log: this.log,
      reports: expectedReports(begun.config, settings.reports, process.env, this.workingDirectory),
      run: { runId: delivered.runId, projectName: begun.projectName, startedAtMs: begun.startedAtMs },
      done: this.sentReports,
    }));
  }

  /** `finalizeTimeout` covers everything this reporter does after the tests, not each call. */
  private async withinBudget<T>(work: (deadline: ReturnType<typeof deadlineIn>) => Promise<T>): Promise<T> {
    const from = Date.now();
    try {
      return await work(deadlineIn(Math.max(0, this.settings.finalizeTimeoutMs - this.spentMs)));
    } finally {
      this.spentMs += Date.now() - from;
    }
  }

  private guard(what: string, work: () => void): void {
    try {
      work();
    } catch (error) {
      this.log.warn(`${what} failed: ${explain(error)}`);
    }
  }

  private async guardAsync(what: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.log.warn(`${what} to ${this.settings.origin} failed: ${explain(error)}`);
    }
  }
}

function explain(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  if (!(error instanceof RequestFailed)) return message;
  if (error.status === 401) return `${message} (set apiKey or SERVICE_API_KEY, or username and password)`;
  if (error.status === 403) return `${message} (the key or account needs the role reporter and access to the project)`;
  return message;
}
