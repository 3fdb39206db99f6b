/**
 * Names the run belongs under: `instanceId` groups the processes of one pipeline,
 * `clientRunId` makes sending the same run twice harmless.
 */
import { createHash, randomUUID } from 'node:crypto';

export interface InstanceParts {
  projectName: string;
  /** Id of the pipeline, as configured or as the CI system gives it. */
  runLabel: string | undefined;
  /** Names of the Playwright projects selected for this run. */
  playwrightProjects: readonly string[];
  hostname: string;
  workingDirectory: string;
}

export function instanceId(parts: InstanceParts): string {
  const identity = parts.runLabel === undefined
    ? [parts.projectName, parts.hostname, parts.workingDirectory]
    : [parts.projectName, parts.runLabel, [...parts.playwrightProjects].sort().join(',')];
  return createHash('sha256').update(identity.join('|')).digest('hex').slice(0, 16);
}

export function newClientRunId(): string {
  return randomUUID();
}
