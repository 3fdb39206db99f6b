/**
 * The fields of the run itself, as every sending call carries them.
 */
import type { FullConfig, TestCase } from '@playwright/test/reporter';
import type { RunOutcome } from './attempts';
import type { Settings } from './options';
import type { Selection } from './selection';
import { reporterVersion } from './version';

/** What is known when the run begins. */
export interface StartFields {
  projectName: string;
  projectDescription?: string;
  startTime: string;
  plannedTests: number;
  environment?: string;
  label?: string;
  metadata?: Record<string, unknown>;
  instanceId: string;
  clientRunId: string;
  playwrightVersion: string;
  reporterVersion: string;
  shardIndex?: number;
  shardTotal?: number;
  isFullRun: boolean;
  filterDetails: Selection['filterDetails'];
}

export interface RunFields extends StartFields {
  status: string;
  duration: number;
  totalTests: number;
  passedTests: number;
  failedTests: number;
  timedOutTests: number;
  skippedTests: number;
  didNotRunTests: number;
  flakyTests: number;
}

export interface StartParts {
  config: FullConfig;
  settings: Settings;
  selection: Selection;
  projectName: string;
  instanceId: string;
  clientRunId: string;
  startedAtMs: number;
  plannedTests: number;
}

export function startFields(parts: StartParts): StartFields {
  const { config, settings, selection } = parts;
  const { projectDescription, environment, label } = settings;
  return {
    projectName: parts.projectName,
    ...(projectDescription === undefined ? {} : { projectDescription }),
    startTime: new Date(parts.startedAtMs).toISOString(),
    plannedTests: parts.plannedTests,
    ...(environment === undefined ? {} : { environment }),
    ...(label === undefined ? {} : { label }),
    instanceId: parts.instanceId,
    clientRunId: parts.clientRunId,
    playwrightVersion: config.version,
    reporterVersion: reporterVersion(),
    ...(config.shard ? { shardIndex: config.shard.current, shardTotal: config.shard.total } : {}),
    isFullRun: selection.isFullRun,
    filterDetails: selection.filterDetails,
  };
}

export function runFields(start: StartFields, run: RunOutcome, metadata: Record<string, unknown>): RunFields {
  return {
    ...start,
    startTime: run.result.startTime.toISOString(),
    status: run.result.status,
    duration: Math.max(0, Math.round(run.result.duration)),
    ...totalsOf(run.suite.allTests()),
    metadata,
  };
}

type Totals = Pick<RunFields, 'totalTests' | 'passedTests' | 'failedTests' | 'timedOutTests' | 'skippedTests'
  | 'didNotRunTests' | 'flakyTests'>;

/** Tests, not attempts; flaky ones are passed, timed-out ones are failed. */
function totalsOf(tests: readonly TestCase[]): Totals {
  const totals: Totals = {
    totalTests: tests.length, passedTests: 0, failedTests: 0, timedOutTests: 0, skippedTests: 0, didNotRunTests: 0,
    flakyTests: 0,
  };
  for (const test of tests) {
    const outcome = test.outcome();
    const ran = test.results.some((result) => result.status !== 'skipped');
    if (!ran && test.expectedStatus !== 'skipped') totals.didNotRunTests++;
    else if (outcome === 'skipped') totals.skippedTests++;
    else if (outcome === 'unexpected') totals.failedTests++;
    else totals.passedTests++;
    if (outcome === 'flaky') totals.flakyTests++;
    if (outcome === 'unexpected' && test.results.at(-1)?.status === 'timedOut') totals.timedOutTests++;
  }
  return totals;
}
