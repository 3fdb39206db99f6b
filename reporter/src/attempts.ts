/**
 * Every attempt of every planned test, with the status the service understands.
 * Playwright calls a test "skipped" both when its author skipped it and when it never
 * got its turn; only the first is a skip, the second did not run.
 */
import type { FullConfig, FullResult, Suite, TestCase, TestResult } from '@playwright/test/reporter';
import { relativeLocation } from './locations';
import type { SourceRoot } from './source-root';

export type AttemptStatus = TestResult['status'] | 'didnotrun';

/** How a test ended over its attempts. */
export type TestOutcome = 'failed' | 'timedOut' | 'interrupted' | 'flaky' | 'passed' | 'skipped' | 'didNotRun';

export interface Attempt {
  test: TestCase;
  /** Absent when the test was planned and never begun. */
  result: TestResult | undefined;
  status: AttemptStatus;
  durationMs: number;
  didNotRunReason?: string;
  /** Location of the failing test that kept this one from running. */
  blockedBy?: string;
}

export interface RunOutcome {
  config: FullConfig;
  suite: Suite;
  result: Pick<FullResult, 'status' | 'startTime' | 'duration'>;
  /** Results for which Playwright reported the end of the attempt. */
  ended: WeakSet<TestResult>;
  root: SourceRoot;
}

export function* attemptsOf(run: RunOutcome): Generator<Attempt> {
  const tests = run.suite.allTests();
  const failures = failuresOf(run, tests);
  for (const test of tests) {
    if (test.results.length === 0) {
      yield { test, result: undefined, status: 'didnotrun', durationMs: 0, ...whyNotRun(run, test, failures) };
    }
    for (const result of test.results) yield attemptOf(run, test, result, () => failures);
  }
}

/** One attempt; also while the run is still going. */
export function attemptOf(
  run: RunOutcome, test: TestCase, result: TestResult, failures: () => Failures = () => failuresOf(run, run.suite.allTests()),
): Attempt {
  const status = attemptStatus(run, test, result);
  const reason = status === 'didnotrun' ? whyNotRun(run, test, failures()) : {};
  return { test, result, status, durationMs: attemptDuration(run, result), ...reason };
}

/** What an attempt is remembered by: a test that never began has no result. */
export function keyOf({ test, result }: Attempt): TestResult | TestCase {
  return result ?? test;
}

export function attemptStatus(run: RunOutcome, test: TestCase, result: TestResult): AttemptStatus {
  // Of a test that its global timeout cuts off Playwright says that it did not run.
  if (!run.ended.has(result)) return run.result.status === 'timedout' ? 'didnotrun' : 'interrupted';
  const skippedByPlaywright = result.status === 'skipped' && test.expectedStatus !== 'skipped';
  return skippedByPlaywright ? 'didnotrun' : result.status;
}

const FAILED: ReadonlySet<TestOutcome> = new Set(['failed', 'timedOut']);

export function testOutcome(run: RunOutcome, test: TestCase): TestOutcome {
  const statuses = test.results.map((result) => attemptStatus(run, test, result));
  return outcomeOver(statuses, test.expectedStatus === 'failed');
}

/**
 * The outcome over attempts in their order, as the service judges it: by the rule of `TestCase.outcome()`, which
 * not every release of Playwright has, with words of its own for tests that were interrupted or did not run.
 */
export function outcomeOver(statuses: readonly AttemptStatus[], expectsFailure: boolean): TestOutcome {
  const [expected, unexpected] = expectsFailure ? ['failed', 'passed'] : ['passed', 'failed'];
  const has = (status: AttemptStatus): boolean => statuses.includes(status);
  const failure = statuses.filter((status) => status === unexpected || status === 'timedOut').at(-1);
  const passes = statuses.includes(expected as AttemptStatus);
  // The last attempt says what is expected of all: after a skip neither a pass nor a failure is, before one a skip is none.
  const skips = statuses.filter((status) => status !== 'interrupted' && status !== 'didnotrun').at(-1) === 'skipped';
  if (failure !== undefined) {
    if (passes || skips) return 'flaky';
    return failure === 'timedOut' ? 'timedOut' : 'failed';
  }
  if (passes) return skips ? 'flaky' : 'passed';
  if (has('skipped')) return 'skipped';
  return has('interrupted') ? 'interrupted' : 'didNotRun';
}

export function attemptDuration(run: RunOutcome, result: TestResult): number {
  if (run.ended.has(result)) return Math.max(0, Math.round(result.duration));
  const end = run.result.startTime.getTime() + run.result.duration;
  return Math.max(0, Math.round(end - result.startTime.getTime()));
}

interface Failures {
  all: TestCase[];
  byFile: Map<string, TestCase[]>;
}

function failuresOf(run: RunOutcome, tests: readonly TestCase[]): Failures {
  const all = tests.filter((test) => FAILED.has(testOutcome(run, test)));
  const byFile = new Map<string, TestCase[]>();
  for (const test of all) byFile.set(fileKey(test), [...(byFile.get(fileKey(test)) ?? []), test]);
  return { all, byFile };
}

function whyNotRun(run: RunOutcome, test: TestCase, failures: Failures): Pick<Attempt, 'didNotRunReason' | 'blockedBy'> {
  if (test.results.some((result) => !run.ended.has(result))) return { didNotRunReason: 'global-timeout' };
  const blocker = closestBefore(test, failures.byFile.get(fileKey(test)) ?? []) ?? dependencyFailure(test, failures);
  if (test.results.length > 0 && blocker) return blockedBy(run, blocker);
  if (run.result.status === 'timedout') return { didNotRunReason: 'global-timeout' };
  if (run.result.status === 'interrupted') return { didNotRunReason: 'interrupted' };
  if (run.config.maxFailures > 0 && failures.all.length >= run.config.maxFailures) {
    return { didNotRunReason: 'max-failures' };
  }
  return blocker ? blockedBy(run, blocker) : { didNotRunReason: 'setup-failed' };
}

function blockedBy(run: RunOutcome, test: TestCase): Pick<Attempt, 'didNotRunReason' | 'blockedBy'> {
  return {
    didNotRunReason: 'previous-failure',
    blockedBy: relativeLocation(test.location, run.root),
  };
}

/** Tests of one file in one Playwright project: only these can block each other. */
function fileKey(test: TestCase): string {
  return `${test.parent.project()?.name ?? ''}\0${test.location.file}`;
}

/** Of the failing tests declared before this one, the one sharing most suites with it, the latest first. */
function closestBefore(test: TestCase, failing: TestCase[]): TestCase | undefined {
  const candidates = failing.filter((other) => other !== test && other.location.line <= test.location.line);
  const shared = (other: TestCase): number => {
    const own = new Set(enclosingSuites(test));
    return enclosingSuites(other).filter((suite) => own.has(suite)).length;
  };
  return candidates.reduce<TestCase | undefined>(
    (best, other) => (best === undefined || shared(other) >= shared(best) ? other : best), undefined);
}

function enclosingSuites(test: TestCase): Suite[] {
  const suites: Suite[] = [];
  for (let suite: Suite | undefined = test.parent; suite; suite = suite.parent) suites.push(suite);
  return suites;
}

function dependencyFailure(test: TestCase, failures: Failures): TestCase | undefined {
  const dependencies = new Set(test.parent.project()?.dependencies ?? []);
  if (dependencies.size === 0) return undefined;
  return failures.all.find((other) => dependencies.has(other.parent.project()?.name ?? ''));
}
