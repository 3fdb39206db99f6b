/**
 * The fields of the run itself, as every sending call carries them.
 */
import type { FullConfig, Suite, TestCase } from '@playwright/test/reporter';
import { testOutcome, type RunOutcome, type TestOutcome } from './attempts';
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
  rerunOf?: number;
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
    ...(settings.rerunOf === undefined ? {} : { rerunOf: settings.rerunOf }),
  };
}

export function runFields(start: StartFields, run: RunOutcome, metadata: Record<string, unknown>): RunFields {
  return {
    ...start,
    startTime: run.result.startTime.toISOString(),
    status: run.result.status,
    duration: Math.max(0, Math.round(run.result.duration)),
    ...totalsOf(run),
    metadata,
  };
}

type Totals = Pick<RunFields, 'totalTests' | 'passedTests' | 'failedTests' | 'timedOutTests' | 'skippedTests'
  | 'didNotRunTests' | 'flakyTests'>;

/** The tests of a suite, each with its repetitions: those of `--repeat-each` are one test, as the service counts them. */
export function testsOf(suite: Suite): TestCase[][] {
  const tests = new Map<string, TestCase[]>();
  for (const test of suite.allTests()) {
    const name = test.titlePath().join('\0');
    const repetitions = tests.get(name);
    if (repetitions) repetitions.push(test);
    else tests.set(name, [test]);
  }
  return [...tests.values()];
}

/** From the worst on: of several repetitions that decides which comes first. */
const WORST_FIRST: readonly TestOutcome[] = ['failed', 'timedOut', 'interrupted', 'flaky', 'passed', 'skipped', 'didNotRun'];

/** Tests, not attempts; flaky ones are passed, timed-out ones are failed, and those the parts leave open were interrupted. */
function totalsOf(run: RunOutcome): Totals {
  const tests = testsOf(run.suite);
  const totals: Totals = {
    totalTests: tests.length, passedTests: 0, failedTests: 0, timedOutTests: 0, skippedTests: 0, didNotRunTests: 0,
    flakyTests: 0,
  };
  for (const repetitions of tests) {
    const outcomes = repetitions.map((test) => testOutcome(run, test));
    const outcome = WORST_FIRST.find((each) => outcomes.includes(each));
    if (outcome === 'didNotRun') totals.didNotRunTests++;
    else if (outcome === 'skipped') totals.skippedTests++;
    else if (outcome === 'passed' || outcome === 'flaky') totals.passedTests++;
    else if (outcome !== 'interrupted') totals.failedTests++;
    if (outcome === 'flaky') totals.flakyTests++;
    if (outcome === 'timedOut') totals.timedOutTests++;
  }
  return totals;
}
