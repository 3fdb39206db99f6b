/**
 * The reporter's voice: single lines with the prefix `[callboard]`. They are held back
 * until the other reporters have finished, so that no line lands inside theirs; when one
 * of those prints its document on stdout, ours go to stderr.
 */
import type { FullConfig } from '@playwright/test/reporter';

export interface Log {
  info(message: string): void;
  warn(message: string): void;
  /** At once, for what is of no use later. */
  now(message: string): void;
  /** At once, and only with the option `verbose`. */
  detail(message: string): void;
  flush(): void;
}

export function createLog(verbose: boolean, stream: () => NodeJS.WritableStream): Log {
  const held: string[] = [];
  const hold = (message: string): void => void held.push(message);
  const write = (message: string): void => {
    try {
      stream().write(`[callboard] ${message.replace(/\s*\n\s*/g, ' ')}\n`);
    } catch {
      // A closed pipe must not become an error of the test run.
    }
  };
  return {
    info: hold,
    warn: hold,
    now: write,
    detail: (message) => verbose && write(message),
    flush: () => held.splice(0).forEach(write),
  };
}

/** Reporters that print a machine-readable document on stdout unless given a file. */
const STDOUT_DOCUMENTS: Readonly<Record<string, string>> = {
  json: 'PLAYWRIGHT_JSON_OUTPUT_',
  junit: 'PLAYWRIGHT_JUNIT_OUTPUT_',
};

export function stdoutIsDocument(config: FullConfig, env: NodeJS.ProcessEnv): boolean {
  return config.reporter.some(([name, options]: readonly [string, unknown?]) => {
    const prefix = STDOUT_DOCUMENTS[name];
    if (prefix === undefined) return false;
    const hasFile = typeof options === 'object' && options !== null && 'outputFile' in options;
    return !hasFile && !env[`${prefix}FILE`] && !env[`${prefix}NAME`];
  });
}

/**
 * Whether a line printed now stays where it is. At a terminal other reporters rewrite
 * their last lines once tests have begun, and `line` does so from the beginning.
 */
export function mayPrintNow(config: FullConfig, haveTestsBegun: boolean): boolean {
  return !process.stdout.isTTY || (!haveTestsBegun && config.reporter.every(([name]) => name !== 'line'));
}

/** At a terminal Playwright's html reporter may serve its report and never let the process go on. */
export function mayBeHeldOpen(config: FullConfig, env: NodeJS.ProcessEnv): boolean {
  return process.stdin.isTTY && !env['CI'] && config.reporter.some(([name]) => name === 'html');
}
