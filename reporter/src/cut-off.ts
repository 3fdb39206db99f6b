/**
 * Tests that a global timeout cut off: Playwright counts them as not run, but their workers go on to write traces and
 * report them while the run is sent. They are waited for, as long as it takes to write a trace.
 */
import type { FullResult, TestCase, TestError, TestResult } from '@playwright/test/reporter';
import type { RunOutcome } from './attempts';
import { stripAnsi } from './errors';

const WAIT_MS = 5_000;
const LOOK_EVERY_MS = 50;

export interface CutOff {
  /** Playwright says first that its time is over; what ends after that is cut off. */
  errorCame(error: TestError): void;
  /** Whether an end that comes now is that of a test that was cut off. */
  readonly isNear: boolean;
  testEnded(result: TestResult): void;
  /** Returns those whose end did not come in time. */
  settle(run: RunOutcome, status: FullResult['status'], remainingMs: number): Promise<TestCase[]>;
}

export function watchCutOff(): CutOff {
  const late = new Set<TestResult>();
  let isNear = false;
  const open = (run: RunOutcome): TestCase[] => run.suite.allTests()
    .filter(({ results }) => results.some((result) => !run.ended.has(result) && !late.has(result)));
  return {
    errorCame({ message }) {
      isNear ||= /^\W*(?:Error: )?Timed out waiting .* to run/.test(stripAnsi(message ?? ''));
    },
    get isNear() {
      return isNear;
    },
    testEnded(result) {
      late.add(result);
    },
    async settle(run, status, remainingMs) {
      isNear = true;
      if (status !== 'timedout') return [];
      const until = Date.now() + Math.min(WAIT_MS, remainingMs);
      while (open(run).length > 0 && Date.now() < until) {
        await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
      }
      return open(run);
    },
  };
}

/** Whether Playwright records a trace of a test, which a cut-off one would have left. */
export function recordsTrace(test: TestCase): boolean {
  const trace = test.parent.project()?.use.trace;
  const mode = typeof trace === 'object' ? trace.mode : trace;
  return mode !== undefined && mode !== 'off';
}
