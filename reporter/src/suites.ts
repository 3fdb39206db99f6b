/**
 * The describe blocks around a test and how they were configured.
 * The mode of a block can only be asked while Playwright plans the run, and only
 * newer releases answer at all; elsewhere it is reported as `default`.
 */
import type { Suite, TestCase } from '@playwright/test/reporter';

export type SuiteMode = 'parallel' | 'serial' | 'default';

export interface SuiteConfig {
  mode: SuiteMode;
  annotations: { type: string; description?: string }[];
}

/** What `preprocess` gets from Playwright, as far as it is used here. */
export interface PlannedRun {
  suite: Suite;
  testRun: { mode?(suite: Suite): SuiteMode };
}

export type SuiteModes = WeakMap<Suite, SuiteMode>;

export function readSuiteModes(planned: PlannedRun, modes: SuiteModes): void {
  const visit = (suite: Suite): void => {
    const mode = planned.testRun.mode?.(suite);
    if (mode) modes.set(suite, mode);
    suite.suites.forEach(visit);
  };
  visit(planned.suite);
}

/** Suites nest as root, Playwright project, file, describe blocks; older releases do not name the kinds. */
const DEPTH_OF_DESCRIBE = 3;

export function describeBlocks(test: TestCase): Suite[] {
  const suites: Suite[] = [];
  for (let suite: Suite | undefined = test.parent; suite; suite = suite.parent) suites.unshift(suite);
  return suites.filter((suite, depth) =>
    (suite.type === undefined ? depth >= DEPTH_OF_DESCRIBE : suite.type === 'describe') && suite.title.trim() !== '');
}

export function suiteConfig(blocks: readonly Suite[], modes: SuiteModes): SuiteConfig[] {
  return blocks.map((suite) => ({ mode: modes.get(suite) ?? 'default', annotations: [] }));
}
