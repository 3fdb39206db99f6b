/**
 * The fields of the run itself, as every sending call carries them.
 */
import type { TestCase } from '@playwright/test/reporter';
import type { RunOutcome } from './attempts';
import type { Selection } from './selection';
import type { Settings } from './options';

export interface RunFields {
  projectName: string;
  projectDescription?: string;
  status: string;
  startTime: string;
  duration: number;
  totalTests: number;
  passedTests: number;
  failedTests: number;
  timedOutTests: number;
  skippedTests: number;
  didNotRunTests: number;
  flakyTests: number;
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

export interface RunParts {
  run: RunOutcome;
  settings: Settings;
  selection: Selection;
  projectName: string;
  instanceId: string;
  clientRunId: string;
  reporterVersion: string;
  metadata: Record<string, unknown>;
}

export function runFields(parts: RunParts): RunFields {
  const { run, settings, selection } = parts;
  const { projectDescription, environment, label } = settings;
  const shard = run.config.shard;
  return {
    projectName: parts.projectName,
    ...(projectDescription === undefined ? {} : { projectDescription }),
    status: run.result.status,
    startTime: run.result.startTime.toISOString(),
    duration: Math.max(0, Math.round(run.result.duration)),
    ...totalsOf(run.suite.allTests()),
    ...(environment === undefined ? {} : { environment }),
    ...(label === undefined ? {} : { label }),
    metadata: parts.metadata,
    instanceId: parts.instanceId,
    clientRunId: parts.clientRunId,
    playwrightVersion: run.config.version,
    reporterVersion: parts.reporterVersion,
    ...(shard ? { shardIndex: shard.current, shardTotal: shard.total } : {}),
    isFullRun: selection.isFullRun,
    filterDetails: selection.filterDetails,
  };
}

type Totals = Pick<RunFields, 'totalTests' | 'passedTests' | 'failedTests' | 'timedOutTests' | 'skippedTests'
  | 'didNotRunTests' | 'flakyTests' | 'plannedTests'>;

/** Tests, not attempts; flaky ones are passed, timed-out ones are failed. */
function totalsOf(tests: readonly TestCase[]): Totals {
  const totals: Totals = {
    totalTests: tests.length, passedTests: 0, failedTests: 0, timedOutTests: 0, skippedTests: 0, didNotRunTests: 0,
    flakyTests: 0, plannedTests: tests.length,
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
