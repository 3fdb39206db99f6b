/**
 * What is known of a run when it begins: its names, where its paths begin, and what surrounds it.
 */
import os from 'node:os';
import type { FullConfig, Suite } from '@playwright/test/reporter';
import { attemptsOf, type RunOutcome } from './attempts';
import { detectCi } from './ci';
import { collectScm, sharedPaths } from './git';
import { instanceId, newClientRunId } from './identity';
import type { Log } from './log';
import { metadataOf } from './metadata';
import { projectNameFor, type Settings } from './options';
import { configDir } from './reports';
import { startFields, testsOf, type StartFields } from './run';
import type { RunErrors } from './run-errors';
import type { Selection } from './selection';
import { takeHandover, type SetupHandover } from './setup-registration';
import { relativePath, sourceRootOf, type SourceRoot } from './source-root';
import type { SuiteModes } from './suites';

export interface RunParts {
  settings: Settings;
  origin: string;
  config: FullConfig;
  suite: Suite;
  selection: Selection;
  workingDirectory: string;
  log: Log;
  modes: SuiteModes;
  runErrors: RunErrors;
  /** Prints a line that is for the CI system and not for people. */
  printCommand(line: string): void;
}

export interface RunContext {
  /** The run as global set-up registered it. */
  handover: SetupHandover | undefined;
  startedAtMs: number;
  /** Address of the CI build. */
  buildUrl: string | undefined;
  projectName: string;
  root: SourceRoot;
  /** Grows while the run goes on. */
  run: RunOutcome;
  fields: StartFields;
  /** What is sent beside the results; of a run that is over with its figures. */
  metadata(isOver: boolean): Promise<Record<string, unknown>>;
}

export function describeRun(parts: RunParts): RunContext {
  const { settings, config, suite, selection, workingDirectory } = parts;
  const handover = takeHandover();
  const startedAtMs = handover?.startedAtMs ?? Date.now();
  const detected = detectCi(process.env);
  const ci = settings.collectCiInfo ? detected?.info : undefined;
  const projectName = projectNameFor(settings, configDir(config, workingDirectory));
  const root = sourceRootOf(config, workingDirectory, suite);
  const run: RunOutcome = {
    config, suite, root,
    ended: new WeakSet(),
    result: { status: 'passed', startTime: new Date(startedAtMs), duration: 0 },
  };
  const fields = startFields({
    config, settings, selection, projectName, startedAtMs,
    clientRunId: handover?.clientRunId ?? newClientRunId(),
    plannedTests: testsOf(suite).length,
    instanceId: instanceId({
      projectName, workingDirectory,
      runLabel: settings.runLabel ?? detected?.runLabel,
      playwrightProjects: selection.projects,
      hostname: os.hostname(),
    }),
  });
  // Asked now, so that the answers are there when they are needed.
  const scm = settings.collectScmInfo
    ? collectScm(configDir(config, workingDirectory), detected?.info).catch(() => undefined)
    : Promise.resolve(undefined);
  const testFiles = new Set(suite.allTests().map(({ location }) => relativePath(location.file, root)));
  const shared = settings.collectScmInfo ? sharedPaths([...testFiles], root).catch(() => []) : [];
  return {
    handover, startedAtMs, projectName, root, run, fields,
    buildUrl: ci?.buildUrl,
    metadata: async (isOver) => metadataOf({
      settings, ci, run,
      scm: await scm,
      sharedPaths: await shared,
      attempts: isOver ? attemptsOf(run) : [],
      globalErrors: parts.runErrors.list(config, root),
    }),
  };
}
