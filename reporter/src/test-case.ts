/**
 * One attempt as the object the service stores. The identity of the test and of the
 * attempt is separate from the evidence, because file uploads repeat only the identity.
 */
import type { TestCase, TestResult } from '@playwright/test/reporter';
import { attemptDuration, attemptStatus, type Attempt, type AttemptStatus, type RunOutcome } from './attempts';
import { SUGGESTION, type Captures, type CaptureStore } from './captures';
import { browserOf, type Browser } from './browser';
import { errorText } from './errors';
import { ariaSnapshotOf } from './aria';
import { relativeLocation } from './locations';
import { createSourceReader, testSource, testSourceFrames, type SourceFrame, type SourceReader } from './source';
import { summariseSteps, unfinishedStep, type StepSummary } from './steps';
import { describeBlocks, suiteConfig, type SuiteConfig, type SuiteModes } from './suites';
import { titleFor } from './title';

/** Enough to find the attempt again. */
export interface AttemptIdentity {
  title: string;
  location: string;
  status: AttemptStatus;
  duration: number;
  retries: number;
  repeatEachIndex: number;
  startedAt: number | null;
  suitePath: string[];
  browser: Browser;
  expectedStatus: TestResult['status'];
  shardIndex: number | null;
}

export interface AttemptSummary {
  retry: number;
  status: AttemptStatus;
  duration: number;
  startedAt: number;
}

export interface TestCaseEntry extends AttemptIdentity, StepSummary {
  type: 'complete';
  timeout: number;
  error: string | null;
  attempts: AttemptSummary[];
  workerIndex: number | null;
  parallelIndex: number | null;
  suiteConfig: SuiteConfig[];
  testAnnotations: { type: string; description?: string }[];
  tags: string[];
  testSource: string | null;
  testSourceFrames: SourceFrame[];
  ariaSnapshot: string | null;
  networkRequests?: unknown[];
  consoleLogs?: unknown[];
  webVitals?: Record<string, unknown>;
  pageState?: Record<string, unknown>;
  locatorSnapshots?: unknown[];
  stdout: string | null;
  stderr: string | null;
  didNotRunReason: string | null;
  blockedBy: string | null;
}

export interface TestCaseBuilder {
  identity(attempt: Attempt): AttemptIdentity;
  entry(attempt: Attempt): TestCaseEntry;
}

/** What the service keeps, the line about the rest included: cut there once more it would lose its number. */
const OUTPUT_MAX_CHARS = 20_000;
const CUT_LINE_MAX_CHARS = 40;
const NO_STEPS: StepSummary = {
  steps: [], stepEvents: [], slowestStep: null, slowestStepDuration: null, wastedTimeMs: 0,
};

export function createTestCaseBuilder(run: RunOutcome, modes: SuiteModes, captures: CaptureStore): TestCaseBuilder {
  const reader = createSourceReader();
  const capturesOf = ({ result }: Attempt): Captures | undefined => result && captures.get(result);
  return {
    identity: (attempt) => identityOf(run, attempt),
    entry: (attempt) => ({
      type: 'complete',
      ...identityOf(run, attempt),
      ...(attempt.result ? summariseSteps(attempt.result, run.root) : NO_STEPS),
      ...configurationOf(attempt.test, attempt.result, modes, capturesOf(attempt)?.suggestions ?? []),
      ...withCaptures(evidenceOf(run, attempt, reader), capturesOf(attempt)),
      attempts: attempt.result ? historyOf(run, attempt.test, attempt.result) : [],
      workerIndex: attempt.result?.workerIndex ?? null,
      parallelIndex: attempt.result?.parallelIndex ?? null,
      didNotRunReason: attempt.didNotRunReason ?? null,
      blockedBy: attempt.blockedBy ?? null,
    }),
  };
}

/** What the fixtures saw; Playwright's own accessibility tree is as good as theirs. */
function withCaptures<Evidence extends { ariaSnapshot: string | null }>(
  evidence: Evidence, captures: Captures | undefined,
): Evidence & Captures['fields'] {
  if (!captures) return evidence;
  return { ...evidence, ...captures.fields, ariaSnapshot: evidence.ariaSnapshot ?? captures.ariaSnapshot ?? null };
}

function identityOf(run: RunOutcome, { test, result, status, durationMs }: Attempt): AttemptIdentity {
  return {
    title: titleFor(test),
    location: relativeLocation(test.location, run.root),
    status,
    duration: durationMs,
    retries: result?.retry ?? 0,
    repeatEachIndex: test.repeatEachIndex,
    startedAt: result ? result.startTime.getTime() : null,
    suitePath: describeBlocks(test).map((suite) => suite.title),
    browser: browserOf(test.parent.project()),
    expectedStatus: test.expectedStatus,
    shardIndex: run.config.shard?.current ?? null,
  };
}

function configurationOf(
  test: TestCase, result: TestResult | undefined, modes: SuiteModes, suggestions: readonly string[],
): Pick<TestCaseEntry, 'timeout' | 'suiteConfig' | 'testAnnotations' | 'tags'> {
  // Annotations belong to the attempt since Playwright 1.52, to the test before.
  const annotations = result?.annotations ?? test.annotations;
  return {
    timeout: test.timeout,
    suiteConfig: suiteConfig(describeBlocks(test), modes),
    testAnnotations: [
      ...annotations.map(({ type, description }) => ({ type, ...(description === undefined ? {} : { description }) })),
      ...suggestions.map((description) => ({ type: SUGGESTION, description })),
    ],
    tags: (test.tags ?? tagsInTitle(test)).map((tag) => tag.replace(/^@/, '')),
  };
}

/** Playwright before 1.42 has no `tags`; there they are words of the titles. */
function tagsInTitle(test: TestCase): string[] {
  return [...new Set(test.titlePath().join(' ').match(/@[\S]+/g) ?? [])];
}

function evidenceOf(
  run: RunOutcome, { test, result, status }: Attempt, reader: SourceReader,
): Pick<TestCaseEntry, 'error' | 'testSource' | 'testSourceFrames' | 'ariaSnapshot' | 'stdout' | 'stderr'> {
  const failed = status === 'failed' || status === 'timedOut' || status === 'interrupted';
  return {
    error: result ? errorText(result, unfinishedStep(result)?.location ?? test.location, run.root) : null,
    testSource: result && failed ? testSource(test, result, reader) : null,
    testSourceFrames: result && failed ? testSourceFrames(result, run.root, reader) : [],
    ariaSnapshot: result && failed ? ariaSnapshotOf(result) : null,
    stdout: result ? printed(result.stdout) : null,
    stderr: result ? printed(result.stderr) : null,
  };
}

function historyOf(run: RunOutcome, test: TestCase, until: TestResult): AttemptSummary[] {
  return test.results.filter((result) => result.retry <= until.retry).map((result) => ({
    retry: result.retry,
    status: attemptStatus(run, test, result),
    duration: attemptDuration(run, result),
    startedAt: result.startTime.getTime(),
  }));
}

function printed(chunks: readonly (string | Buffer)[]): string | null {
  const text = chunks.map((chunk) => chunk.toString()).join('');
  if (text === '') return null;
  if (text.length <= OUTPUT_MAX_CHARS) return text;
  const keptChars = OUTPUT_MAX_CHARS - CUT_LINE_MAX_CHARS;
  return `${text.slice(0, keptChars)}\n[truncated ${text.length - keptChars} chars]`;
}
