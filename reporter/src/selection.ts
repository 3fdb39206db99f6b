/**
 * Which part of the suite this run was asked to execute, read from the command line
 * and the configuration. A run narrowed in any way is partial and must not be taken
 * for the state of the whole suite.
 */
import type { FullConfig } from '@playwright/test/reporter';

export interface FilterDetails {
  grep?: string;
  grepInvert?: string;
  files?: string[];
  projects?: string[];
  lastFailed?: true;
  onlyChanged?: true;
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

interface CommandLine {
  files: string[];
  /** Values by option; an option without value has an empty list. */
  options: Map<string, string[]>;
}

export function selectionOf(config: FullConfig, argv: readonly string[] = commandLineOf(config)): Selection {
  const { files, options } = parseCommandLine(argv);
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
  const narrowed = Object.keys(details).length > 0 || options.has('--test-list') || options.has('--test-list-invert');
  return {
    isFullRun: !narrowed,
    filterDetails: Object.keys(details).length > 0 ? details : null,
    projects,
    isListing: options.has('--list'),
  };
}

function commandLineOf(config: FullConfig): readonly string[] {
  return config.argv?.length ? config.argv : process.argv;
}

function parseCommandLine(argv: readonly string[]): CommandLine {
  const files: string[] = [];
  const options = new Map<string, string[]>();
  const ownArguments = argv.includes('--') ? argv.slice(0, argv.indexOf('--')) : argv;
  // node, program, `test`, arguments. Other commands (merge-reports, an editor's server) select nothing.
  if (ownArguments[2] !== 'test') return { files, options };
  const rest = ownArguments.slice(3);
  for (let token = rest.shift(); token !== undefined; token = rest.shift()) {
    if (!token.startsWith('-')) {
      files.push(token);
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
  return { files, options };
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
