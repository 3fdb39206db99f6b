/**
 * What is told about the run beside its tests: source control, CI, machine, the
 * shape of the configuration and how fast it was. Never the configuration itself,
 * which holds credentials.
 */
import os from 'node:os';
import path from 'node:path';
import type { FullConfig } from '@playwright/test/reporter';
import type { CiInfo } from './ci';
import type { ScmInfo } from './git';
import { relativeLocation } from './locations';
import type { Attempt, RunOutcome } from './attempts';
import type { Settings } from './options';
import type { RunError } from './run-errors';
import { relativePath, type SourceRoot } from './source-root';
import { wastedTime } from './steps';
import { titleFor } from './title';

export interface MetadataParts {
  settings: Settings;
  ci: CiInfo | undefined;
  scm: ScmInfo | undefined;
  /** Of the test files, see `sharedPaths` of git. */
  sharedPaths: readonly string[];
  run: RunOutcome;
  attempts: Iterable<Attempt>;
  globalErrors: readonly RunError[];
}

const SLOWEST_TESTS = 5;

export function metadataOf(parts: MetadataParts): Record<string, unknown> {
  const { settings, run } = parts;
  return {
    ...originOf({ ...parts, scm: { ...parts.scm, ...pathsOf(run.root, parts.sharedPaths) }, config: run.config, root: run.root }),
    ...withoutUndefined({
      projectDescription: settings.projectDescription,
      relatedIssue: settings.relatedIssue,
      tags: settings.tags.length > 0 ? settings.tags : undefined,
      customData: settings.customData,
      performance: performanceOf(parts.attempts, run.root),
      globalErrors: parts.globalErrors.length > 0 ? parts.globalErrors : undefined,
    }),
  };
}

export interface OriginParts {
  ci: CiInfo | undefined;
  scm: object | undefined;
  config: FullConfig;
  root: SourceRoot;
}

/** Where a run comes from: what the service finds the run by that this one repeats. */
export function originOf({ ci, scm, config, root }: OriginParts): Record<string, unknown> {
  return withoutUndefined({
    scm,
    ci,
    host: { os: `${os.type()} ${os.release()}`, arch: process.arch, node: process.version },
    playwrightConfig: configSummary(config, root),
  });
}

/** What joins the results of this release with those that earlier ones sent under other paths. */
function pathsOf({ kind, earlier }: SourceRoot, sharedPaths: readonly string[]): Record<string, unknown> {
  return withoutUndefined({
    pathRoot: kind,
    pathPrefix: earlier.from,
    earlierPathPrefix: earlier.to === '' ? undefined : earlier.to,
    sharedPaths: sharedPaths.length > 0 ? sharedPaths : undefined,
  });
}

function configSummary(config: FullConfig, root: SourceRoot): Record<string, unknown> {
  return withoutUndefined({
    configFile: config.configFile ? relativePath(config.configFile, root) : undefined,
    workers: config.workers,
    fullyParallel: config.fullyParallel,
    maxFailures: config.maxFailures,
    globalTimeout: config.globalTimeout,
    shard: config.shard ?? undefined,
    reporters: config.reporter.map(([name]) => (path.isAbsolute(name) ? relativePath(name, root) : name)),
    projects: config.projects.map((project) => ({
      name: project.name,
      testDir: relativePath(project.testDir, root),
      retries: project.retries,
      timeout: project.timeout,
      repeatEach: project.repeatEach,
      dependencies: project.dependencies,
    })),
  });
}

/** Over attempts that really ran; percentiles by nearest rank. */
function performanceOf(attempts: Iterable<Attempt>, root: SourceRoot): Record<string, unknown> | undefined {
  const timed: { title: string; location: string; project: string; duration: number }[] = [];
  let totalWastedTimeMs = 0;
  for (const { test, result, status, durationMs } of attempts) {
    if (!result || status === 'skipped' || status === 'didnotrun') continue;
    timed.push({
      title: titleFor(test),
      location: relativeLocation(test.location, root),
      project: test.parent.project()?.name ?? '',
      duration: durationMs,
    });
    totalWastedTimeMs += wastedTime(result);
  }
  if (timed.length === 0) return undefined;
  timed.sort((one, other) => other.duration - one.duration);
  const rank = (share: number): number | undefined => timed[timed.length - Math.ceil(share * timed.length)]?.duration;
  return {
    avgTestDuration: Math.round(timed.reduce((total, { duration }) => total + duration, 0) / timed.length),
    p50TestDuration: rank(0.5),
    p90TestDuration: rank(0.9),
    p95TestDuration: rank(0.95),
    slowestTests: timed.slice(0, SLOWEST_TESTS),
    totalWastedTimeMs,
  };
}

export function withoutUndefined(record: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined));
}
