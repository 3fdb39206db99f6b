/**
 * The reporter Playwright talks to. It listens, hands over and never lets a problem of
 * its own reach the test run: no method throws, none returns a status, a failure is one
 * log line.
 */
import type { FullConfig, FullResult, Reporter, Suite, TestCase, TestError, TestResult, TestStep } from '@playwright/test/reporter';
import { beginRun, type ActiveRun } from './active-run';
import { advice } from './failure';
import { createLog, mayBeHeldOpen, stdoutIsDocument, type Log } from './log';
import { optionProblems } from './option-problems';
import { announceCapture, isRecord, resolveSettings, type CallboardReporterOptions, type Settings } from './options';
import { collectRunErrors } from './run-errors';
import { selectionOf, withFocus } from './selection';
import { readSuiteModes, type PlannedRun, type SuiteModes } from './suites';

export class CallboardReporter implements Reporter {
  private readonly settings: Settings;
  private readonly options: CallboardReporterOptions;
  private readonly log: Log;
  private output: NodeJS.WritableStream = process.stdout;
  private run: ActiveRun | undefined;
  private isHeldOpen = false;
  private readonly modes: SuiteModes = new WeakMap();
  private readonly runErrors = collectRunErrors();
  private readonly said = new Set<string>();

  constructor(options: CallboardReporterOptions = {}) {
    this.options = options ?? {};
    this.settings = resolveSettings(this.options, process.env);
    this.log = createLog(this.settings.verbose, () => this.output);
    announceCapture(this.settings.origin === undefined ? undefined : this.settings.capture, process.env);
  }

  printsToStdio(): boolean {
    return false;
  }

  /** Called by newer Playwright only; afterwards the modes of suites cannot be read. */
  async preprocess(planned: PlannedRun): Promise<void> {
    this.guard('reading suite modes', () => readSuiteModes(planned, this.modes));
  }

  onBegin(config: FullConfig, suite: Suite): void {
    this.guard('starting', () => this.begin(config, suite));
  }

  onTestBegin(test: TestCase, result: TestResult): void {
    this.runErrors.testBegan();
    this.guard('reporting the start of a test', () => this.run?.testBegan(test, result));
  }

  onStepBegin(test: TestCase, result: TestResult, step: TestStep): void {
    this.guard('reporting the start of a step', () => this.run?.stepBegan(test, result, step));
  }

  onStepEnd(test: TestCase, result: TestResult, step: TestStep): void {
    this.guard('reporting the end of a step', () => this.run?.stepEnded(test, result, step));
  }

  onTestEnd(test: TestCase, result: TestResult): void {
    this.guard('recording a result', () => this.run?.testEnded(test, result));
  }

  /** Only newer Playwright says in which worker it happened. */
  onError(error: TestError, worker?: unknown): void {
    this.guard('recording an error', () => {
      this.runErrors.add(error, worker !== undefined);
      this.run?.errorCame(error);
    });
  }

  async onEnd(result: FullResult): Promise<void> {
    await this.guardAsync('sending the run', async () => {
      await this.run?.end(result);
      // Reporters listed before this one have written theirs already.
      await this.run?.sendReports();
    });
    if (this.isHeldOpen) this.log.flush();
  }

  async onExit(): Promise<void> {
    await this.guardAsync('ending', async () => this.run?.exit());
    this.log.flush();
  }

  private begin(config: FullConfig, suite: Suite): void {
    const { settings, log } = this;
    if (stdoutIsDocument(config, process.env)) this.output = process.stderr;
    if (settings.isWanted) optionProblems(this.options, writtenOptions(config), process.env).forEach(log.warn);
    if (settings.problem) log.warn(settings.problem);
    if (settings.origin === undefined) return;
    const selection = selectionOf(config);
    if (selection.isListing) return;
    this.isHeldOpen = mayBeHeldOpen(config, process.env);
    this.run = beginRun({
      settings, config, suite, log,
      selection: withFocus(selection, suite),
      origin: settings.origin,
      workingDirectory: process.cwd(),
      modes: this.modes,
      runErrors: this.runErrors,
      printCommand: (line) => void (this.output === process.stdout && process.stdout.write(`${line}\n`)),
    });
  }

  private guard(what: string, work: () => void): void {
    try {
      work();
    } catch (error) {
      const sentence = `${what} failed: ${advice(error)}`;
      // What fails for one test is likely to fail for a thousand.
      if (!this.said.has(sentence)) this.log.warn(sentence);
      this.said.add(sentence);
    }
  }

  private async guardAsync(what: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.log.warn(`${what} failed: ${advice(error)}`);
    }
  }
}

/** Names of the options of all reporters, as they stand in the configuration. */
function writtenOptions({ reporter }: FullConfig): Set<string> {
  return new Set(reporter.flatMap(([, options]: readonly [string, unknown?]) => (isRecord(options) ? Object.keys(options) : [])));
}
