/**
 * Options that will not do what whoever wrote them expects: names nobody knows, values of
 * another kind. They are left out, and each is named in a sentence.
 */
import { isAmount, isJsonObject, isReportOption, type CallboardReporterOptions, type Env } from './options';

type Kind = 'flag' | 'text' | 'amount' | 'texts' | 'object' | 'reports';

const KINDS: Record<keyof CallboardReporterOptions, Kind> = {
  enabled: 'flag', serverUrl: 'text', apiKey: 'text', username: 'text', password: 'text',
  projectName: 'text', projectDescription: 'text', relatedIssue: 'text', tags: 'texts', customData: 'object',
  environment: 'text', label: 'text', runLabel: 'text', rerunOf: 'amount',
  streaming: 'flag', streamingBatchSize: 'amount', streamingBatchDelay: 'amount',
  uploadTraces: 'flag', uploadAttachments: 'flag', uploadReport: 'flag', liveFileUploads: 'flag', reports: 'reports',
  captureLocators: 'flag', capturePageState: 'flag', captureNetwork: 'flag', captureConsole: 'flag', captureServerTraces: 'flag',
  collectScmInfo: 'flag', collectCiInfo: 'flag', spoolDir: 'text', spoolMaxBytes: 'amount', finalizeTimeout: 'amount',
  outputFile: 'text', verbose: 'flag',
};

const EXPECTED: Record<Kind, string> = {
  flag: 'true or false',
  text: 'a text',
  amount: 'a number that is not negative',
  texts: 'a list of texts',
  object: 'an object that can be written as JSON',
  reports: 'a list of { type, dir?, label? }, with types of letters, digits, _ and -',
};

const FITS: Record<Kind, (value: unknown) => boolean> = {
  flag: (value) => typeof value === 'boolean',
  text: (value) => typeof value === 'string',
  amount: isAmount,
  texts: (value) => Array.isArray(value) && value.every((each) => typeof each === 'string'),
  object: isJsonObject,
  reports: (value) => Array.isArray(value) && value.every(isReportOption),
};

const AMOUNT_VARIABLES = [
  'SERVICE_STREAMING_BATCH_SIZE', 'SERVICE_STREAMING_BATCH_DELAY', 'SERVICE_SPOOL_MAX_BYTES', 'SERVICE_FINALIZE_TIMEOUT',
  'SERVICE_RERUN_OF',
];

/** `written` are the names that stand in the configuration: Playwright hands more to every reporter. */
export function optionProblems(options: object, written: ReadonlySet<string>, env: Env): string[] {
  const problems = Object.entries(options).filter(([name]) => written.has(name)).flatMap(([name, value]) => {
    const kind = isKnown(name) ? KINDS[name] : undefined;
    if (kind === undefined) return [`there is no option "${name}"${suggestion(name)}`];
    if (value == null || FITS[kind](value)) return [];
    // Other values stay out of it: some are secrets.
    const got = kind === 'amount' && typeof value === 'number' ? String(value) : kindOf(value);
    return [`the option "${name}" must be ${EXPECTED[kind]}, got ${got}`];
  });
  const variables = AMOUNT_VARIABLES.filter((name) => env[name] && !isAmount(env[name]))
    .map((name) => `${name} must be ${EXPECTED.amount}, got "${env[name]}"`);
  return [...problems, ...variables];
}

function isKnown(name: string): name is keyof CallboardReporterOptions {
  return Object.hasOwn(KINDS, name);
}

function kindOf(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

function suggestion(name: string): string {
  const wanted = name.toLowerCase();
  const [closest] = Object.keys(KINDS)
    .map((known) => ({ known, edits: editsBetween(wanted, known.toLowerCase()) }))
    .sort((one, other) => one.edits - other.edits);
  return closest && closest.edits <= EDITS_MAX ? `, did you mean "${closest.known}"?` : '';
}

const EDITS_MAX = 2;

/** Letters to insert, remove or change (Levenshtein 1966). */
function editsBetween(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (const [index, letter] of [...one].entries()) {
    const next = [index + 1];
    for (let at = 0; at < other.length; at++) {
      next.push(Math.min(next[at]! + 1, row[at + 1]! + 1, row[at]! + (letter === other[at] ? 0 : 1)));
    }
    row = next;
  }
  return row[other.length]!;
}
