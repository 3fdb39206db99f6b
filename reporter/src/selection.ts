/**
 * Which part of the suite this run was asked to execute, read from the command line,
 * the configuration and the tests. A run narrowed in any way is partial and must not be taken
 * for the state of the whole suite.
 */
import { readdirSync } from 'node:fs';
import path from 'node:path';
import type { FullConfig, Suite } from '@playwright/test/reporter';
import type { Env } from './options';

export interface FilterDetails {
  grep?: string;
  grepInvert?: string;
  files?: string[];
  projects?: string[];
  lastFailed?: true;
  onlyChanged?: true;
  /** Tests or suites are focused with `.only`. */
  only?: true;
}

export interface Selection {
  isFullRun: boolean;
  filterDetails: FilterDetails | null;
  /** Names of the selected Playwright projects. */
  projects: string[];
  /** `--list` collects tests without running them. */
  isListing: boolean;
}

/** Options followed by a value; the value must not be taken for a file filter. */
const WITH_VALUE = new Set([
  '--add-reporter', '--browser', '-c', '--config', '-g', '--grep', '-G', '-gv', '--grep-invert', '--global-timeout',
  '-j', '--workers', '--last-failed-file', '--max-failures', '--output', '--repeat-each', '--reporter', '--retries',
  '--run-agents', '--shard', '--test-list', '--test-list-invert', '--timeout', '--trace', '--tsconfig', '--ui-host',
  '--ui-port', '--update-source-method',
]);
const WITH_OPTIONAL_VALUE = new Set(['--debug', '--only-changed', '--shuffle', '-u', '--update-snapshots']);
const WITH_VALUES = new Set(['--project']);

/** Filters made by clicking are nowhere in the configuration, so such a run is never known to be whole. */
const INTERACTIVE_OPTIONS = ['--ui', '--ui-host', '--ui-port'];
const INTERACTIVE_COMMANDS = new Set(['test-server', 'run-test-mcp-server']);

interface CommandLine {
  /** `test`, or another command of Playwright. */
  command: string | undefined;
  /** Words that belong to no option: for `test` these are file filters. */
  words: string[];
  /** Values by option; an option without value has an empty list. */
  options: Map<string, string[]>;
}

export function selectionOf(
  config: FullConfig, argv: readonly string[] = commandLineOf(config), env: Env = process.env,
): Selection {
  const commandLine = parseCommandLine(argv);
  // What other commands are told selects nothing.
  const { words: files, options } = commandLine.command === 'test' ? commandLine : NOTHING;
  const grep = options.get('--grep')?.[0] ?? options.get('-g')?.[0] ?? patternText(config.grep);
  const grepInvert = options.get('--grep-invert')?.[0] ?? options.get('-G')?.[0] ?? options.get('-gv')?.[0]
    ?? patternText(config.grepInvert);
  const allProjects = config.projects.map((project) => project.name);
  const projects = selectedProjects(allProjects, options.get('--project'));
  const details: FilterDetails = {
    ...(grep === undefined ? {} : { grep }),
    ...(grepInvert === undefined ? {} : { grepInvert }),
    ...(files.length === 0 ? {} : { files }),
    ...(projects.length === allProjects.length ? {} : { projects }),
    ...(options.has('--last-failed') ? { lastFailed: true } : {}),
    ...(options.has('--only-changed') ? { onlyChanged: true } : {}),
  };
  const narrowed = Object.keys(details).length > 0 || options.has('--test-list') || options.has('--test-list-invert')
    || isInteractive(commandLine, env) || mergesNarrowedRuns(config, commandLine);
  return {
    isFullRun: !narrowed,
    filterDetails: Object.keys(details).length > 0 ? details : null,
    projects,
    isListing: options.has('--list'),
  };
}

/** The selection, known to be partial when tests or suites are focused with `.only`. */
export function withFocus(selection: Selection, suite: Suite): Selection {
  if (!hasFocus(suite)) return selection;
  return { ...selection, isFullRun: false, filterDetails: { ...selection.filterDetails, only: true } };
}

/** Playwright has no public word for a focus; suites and tests keep it in `_only`, and a merged report has none. */
function hasFocus(suite: Suite): boolean {
  const isFocused = (item: unknown): boolean => (item as { _only?: unknown })._only === true;
  return isFocused(suite) || suite.tests.some(isFocused) || suite.suites.some(hasFocus);
}

function commandLineOf(config: FullConfig): readonly string[] {
  return config.argv?.length ? config.argv : process.argv;
}

const NOTHING: CommandLine = { command: undefined, words: [], options: new Map() };

/** UI mode, an editor and watch mode run whatever was picked there with the reporters of the configuration. */
function isInteractive({ command, options }: CommandLine, env: Env): boolean {
  if (command === 'test') return Boolean(env['PWTEST_WATCH']) || INTERACTIVE_OPTIONS.some((option) => options.has(option));
  return command !== undefined && INTERACTIVE_COMMANDS.has(command);
}

/** The blob reporter calls its file `report-<hash>-<shard>.zip`; a run without filters gets no hash. */
const NARROWED_BLOB = /^report-(?:.+-)?[0-9a-f]{7}(?:-\d+)?\.zip$/;

/**
 * A blob does not hold the command line of its run, but its name tells that there were filters.
 * A name somebody chose tells nothing, and neither does the hash of a configuration with tags.
 */
function mergesNarrowedRuns({ tags }: FullConfig, { command, words }: CommandLine): boolean {
  if (command !== 'merge-reports' || tags?.length) return false;
  try {
    return readdirSync(path.resolve(words[0] ?? '')).some((name) => NARROWED_BLOB.test(name));
  } catch {
    return false;
  }
}

function parseCommandLine(argv: readonly string[]): CommandLine {
  const words: string[] = [];
  const options = new Map<string, string[]>();
  const ownArguments = argv.includes('--') ? argv.slice(0, argv.indexOf('--')) : argv;
  const [, , command, ...rest] = ownArguments;
  for (let token = rest.shift(); token !== undefined; token = rest.shift()) {
    if (!token.startsWith('-')) {
      words.push(token);
      continue;
    }
    const [name, attached] = splitOption(token);
    const values = options.get(name) ?? [];
    options.set(name, values);
    if (attached !== undefined) values.push(attached);
    if (WITH_VALUES.has(name)) {
      while (rest[0] !== undefined && !rest[0].startsWith('-')) values.push(rest.shift()!);
    } else if (attached === undefined && takesNext(name, rest[0])) {
      values.push(rest.shift()!);
    }
  }
  return { command, words, options };
}

function splitOption(token: string): [string, string | undefined] {
  const equals = token.indexOf('=');
  if (token.startsWith('--')) return equals < 0 ? [token, undefined] : [token.slice(0, equals), token.slice(equals + 1)];
  const short = token.slice(0, 2);
  return token.length > 2 && token !== '-gv' && WITH_VALUE.has(short) ? [short, token.slice(2)] : [token, undefined];
}

function takesNext(name: string, next: string | undefined): boolean {
  if (next === undefined) return false;
  return WITH_VALUE.has(name) || (WITH_OPTIONAL_VALUE.has(name) && !next.startsWith('-'));
}

/** Playwright matches project names without case and with `*` for any text. */
function selectedProjects(all: readonly string[], filters: readonly string[] | undefined): string[] {
  if (!filters?.length) return [...all];
  const patterns = filters.map((filter) =>
    new RegExp(`^${filter.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&')).join('.*')}$`, 'i'));
  return all.filter((name) => patterns.some((pattern) => pattern.test(name)));
}

// Playwright says "no filter" with the pattern `.*`.
function patternText(pattern: RegExp | RegExp[] | null | undefined): string | undefined {
  const patterns = [pattern ?? []].flat().filter((each) => each.source !== '.*');
  return patterns.length === 0 ? undefined : patterns.map(String).join(' ');
}
