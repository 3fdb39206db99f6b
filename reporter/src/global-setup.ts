/**
 * `globalSetup` for suites whose setup takes long: the run is registered before it and
 * waits on the dashboard. A service that does not answer changes nothing.
 */
import os from 'node:os';
import type { FullConfig } from '@playwright/test';
import { detectCi } from './ci';
import { createClient, deadlineIn } from './client';
import { reasonOf } from './failure';
import { collectScm } from './git';
import { jsonBody } from './http';
import { instanceId, newClientRunId } from './identity';
import { createLog } from './log';
import { originOf } from './metadata';
import { projectNameFor, resolveSettings, type CallboardReporterOptions } from './options';
import { configDir } from './reports';
import { startFields } from './run';
import { selectionOf } from './selection';
import { leaveHandover, type SetupHandover, type SetupRegistration } from './setup-registration';
import { sourceRootOf } from './source-root';

type Teardown = () => unknown;
export type GlobalSetup = (config: FullConfig) => Promise<void | Teardown> | void | Teardown;

const REGISTER_TIMEOUT_MS = 15_000;

/**
 * `options` are those of the reporter; `userSetup` runs once the run is being registered,
 * and what it returns or throws is returned or thrown.
 */
export function createGlobalSetup(options: CallboardReporterOptions = {}, userSetup?: GlobalSetup): (
  config: FullConfig) => Promise<void | Teardown> {
  return async (config) => {
    const handover = begin(options, config);
    if (!userSetup) return undefined;
    const startedAt = Date.now();
    const note = (status: 'passed' | 'failed'): void => void handover?.steps.push({
      title: 'global setup', category: 'hook', startedAt, duration: Date.now() - startedAt, status, location: null, workerIndex: -1,
    });
    try {
      const teardown = await userSetup(config);
      note('passed');
      return teardown;
    } catch (error) {
      note('failed');
      throw error;
    }
  };
}

function begin(options: CallboardReporterOptions, config: FullConfig): SetupHandover | undefined {
  try {
    const settings = resolveSettings(options, process.env);
    const selection = selectionOf(config);
    if (settings.origin === undefined || !settings.streaming || selection.isListing) return undefined;
    const workingDirectory = process.cwd();
    const projectName = projectNameFor(settings, configDir(config, workingDirectory));
    const startedAtMs = Date.now();
    const clientRunId = newClientRunId();
    const detected = detectCi(process.env);
    const { plannedTests: _unknownYet, ...fields } = startFields({
      config, settings, selection, projectName, clientRunId, startedAtMs, plannedTests: 0,
      instanceId: instanceId({
        projectName,
        runLabel: settings.runLabel ?? detected?.runLabel,
        playwrightProjects: selection.projects,
        hostname: os.hostname(),
        workingDirectory,
      }),
    });
    const log = createLog(settings.verbose, () => process.stderr);
    const client = createClient(settings.origin, settings.credentials, log);
    const ci = settings.collectCiInfo ? detected?.info : undefined;
    const scm = settings.collectScmInfo
      ? collectScm(configDir(config, workingDirectory), detected?.info).catch(() => undefined)
      : Promise.resolve(undefined);
    const registration = scm
      .then((known) => jsonBody({ ...fields, metadata: originOf({ ci, scm: known, config, root: sourceRootOf(config, workingDirectory) }) }))
      .then((body) => client.send('/api/test-runs/setup', body, deadlineIn(REGISTER_TIMEOUT_MS), { tries: 2 }))
      .then(({ runId, setupToken }): SetupRegistration | undefined =>
        (typeof runId === 'number' && typeof setupToken === 'string' ? { runId, setupToken } : undefined))
      .catch((error: unknown) => {
        log.detail(`registering the run failed: ${reasonOf(error)}`);
        return undefined;
      });
    const handover = { clientRunId, startedAtMs, registration, steps: [] };
    leaveHandover(handover);
    return handover;
  } catch {
    // Nothing of this package may keep the tests from running.
    return undefined;
  }
}
