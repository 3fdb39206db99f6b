/**
 * Errors of the run that belong to no test: a global set-up that throws, a file that does
 * not load, a worker fixture whose teardown throws. Playwright may report them before the
 * run begins.
 */
import type { FullConfig, FullResult, TestError } from '@playwright/test/reporter';
import { messageOf, stripAnsi } from './errors';
import { relativeLocation } from './locations';
import type { SourceRoot } from './source-root';

/** When an error happened. What Playwright's own sentences say of it the service reads by itself. */
type Phase = 'global-setup' | 'global-teardown' | 'load' | 'worker';

export interface RunError {
  message: string;
  location?: string;
  phase?: Phase;
}

export interface RunErrors {
  add(error: TestError, isOfWorker: boolean): void;
  /** A test began: all of them are loaded. */
  testBegan(): void;
  list(config: FullConfig, root: SourceRoot): RunError[];
}

/** As many as the service keeps. */
const MAX_ERRORS = 20;
const MAX_MESSAGE_CHARS = 4_000;

/** Sentences of Playwright that name what happened, whenever they are said. */
const NAMED: readonly [RegExp, string][] = [
  [/item focused with '\.only' is not allowed/, 'test.only is forbidden'],
  [/Timed out waiting .* to run/, 'Global timeout reached'],
  [/Testing stopped early after/, 'Stopped at the maximum of failures'],
];
const TITLES: Record<Phase, string> = {
  'global-setup': 'Global set-up failed',
  'global-teardown': 'Global teardown failed',
  load: 'Loading the tests failed',
  worker: 'A worker failed outside of its tests',
};

export function collectRunErrors(): RunErrors {
  const errors: { error: TestError; isOfWorker: boolean; isEarly: boolean }[] = [];
  let haveTestsBegun = false;
  let left = 0;
  return {
    add(error, isOfWorker) {
      if (errors.length < MAX_ERRORS) errors.push({ error, isOfWorker, isEarly: !haveTestsBegun });
      else left++;
    },
    testBegan() {
      haveTestsBegun = true;
    },
    list(config, root) {
      const read = errors.map(({ error, isOfWorker, isEarly }): RunError => {
        const message = stripAnsi(messageOf(error) || error.stack || 'Unknown error');
        const phase = isOfWorker ? 'worker' : phaseOf(error, message, config, isEarly);
        return {
          message: withSource(message, error).slice(0, MAX_MESSAGE_CHARS),
          ...(error.location ? { location: relativeLocation(error.location, root) } : {}),
          ...(phase ? { phase } : {}),
        };
      });
      // In the place of the last one, as the service keeps no more.
      if (left > 0) read.splice(MAX_ERRORS - 1, 1, { message: `and ${left + 1} more errors outside tests` });
      return read;
    },
  };
}

/** The lines of source around the error below its message, unless they stand in it already. */
function withSource(message: string, { snippet }: TestError): string {
  const source = stripAnsi(snippet ?? '').trimEnd();
  return source === '' || message.includes(source) ? message : `${message.trimEnd()}\n\n${source}`;
}

function phaseOf(error: TestError, message: string, config: FullConfig, isEarly: boolean): Phase | undefined {
  if (NAMED.some(([sentence]) => sentence.test(message))) return undefined;
  const places = `${error.location?.file ?? ''}\n${error.stack ?? ''}`;
  if (config.globalTeardown && places.includes(config.globalTeardown)) return 'global-teardown';
  if (config.globalSetup && places.includes(config.globalSetup)) return 'global-setup';
  // The server of the application is started before the tests, as global set-up is.
  if (message.includes('config.webServer')) return 'global-setup';
  return isEarly ? 'load' : undefined;
}

/** Why the run is not green beyond its failed tests, a line for each reason. */
export function reasonsOf(errors: readonly RunError[], status: FullResult['status'], failedTests: number): string[] {
  if (errors.length > 0) return errors.map(headline);
  if (status === 'interrupted') return ['The run was interrupted before all tests had a result'];
  if (status === 'timedout') return ['The run reached its global timeout before all tests had a result'];
  return status === 'failed' && failedTests === 0 ? ['The run failed although no test did'] : [];
}

function headline({ message, location, phase }: RunError): string {
  const named = NAMED.find(([sentence]) => sentence.test(message))?.[1];
  const title = named ?? (phase ? TITLES[phase] : 'Error outside tests');
  const said = message.split('\n').find((line) => line.trim() !== '')?.trim().replace(/^Error: /, '') ?? '';
  return `${title}: ${said}${location ? ` (${location})` : ''}`;
}
