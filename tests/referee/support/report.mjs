/** What Playwright says of its run: the JSON report and the sums it prints, in the words of the service. */
import { readFileSync } from 'node:fs';
import path from 'node:path';

/** From the worst on: of the repetitions of a test the first one in this order speaks for all. */
const WORST_FIRST = ['failed', 'timedout', 'interrupted', 'flaky', 'passed', 'skipped', 'didnotrun'];

/** The report of a run: `tests` by name, each with the outcomes and the attempts of its repetitions. */
export function readReport({ outputFolder, output }) {
  const { config, suites, errors, stats } = JSON.parse(readFileSync(path.join(outputFolder, 'report.json'), 'utf8'));
  const tests = new Map();
  const read = (suite, describes) => {
    for (const { title, file, line, column, tests: ofSpec } of suite.specs) {
      for (const test of ofSpec) {
        const name = nameOf({ project: test.projectName, describes, title, file: inFolder(config, file) });
        if (!tests.has(name)) tests.set(name, { line, column, repetitions: [] });
        tests.get(name).repetitions.push(repetitionOf(test));
      }
    }
    for (const child of suite.suites ?? []) read(child, [...describes, child.title]);
  };
  for (const suite of suites) read(suite, []);
  return { tests, errors, stats, printed: printedSums(output) };
}

/** Paths in the report are relative to the folder of the tests, and those of the service to the working directory. */
function inFolder({ rootDir, configFile }, file) {
  return path.relative(path.dirname(configFile), path.resolve(rootDir, file)).replaceAll(path.sep, '/');
}

/** The service names what has no title, and leaves groups out that have none. */
export function nameOf({ project, file, describes, title }) {
  return [project, file, ...describes.filter((each) => each.trim() !== ''), title || '(no title)'].map((part) => JSON.stringify(part)).join(' › ');
}

/** The reports of shards as one: a test that several of them ran is repeated. */
export function joined(reports) {
  const tests = new Map();
  for (const report of reports) {
    for (const [name, test] of report.tests) {
      const known = tests.get(name);
      tests.set(name, known ? { ...known, repetitions: [...known.repetitions, ...test.repetitions] } : test);
    }
  }
  return { tests, errors: reports.flatMap(({ errors }) => errors) };
}

export function outcomeOf({ repetitions }) {
  const outcomes = repetitions.map(({ outcome }) => outcome);
  return WORST_FIRST.find((each) => outcomes.includes(each));
}

function repetitionOf({ status, expectedStatus, results }) {
  const attempts = results.map((result) => ({ retry: result.retry, status: attemptStatus(result.status, expectedStatus) }));
  return { outcome: repetitionOutcome(status, expectedStatus, results), attempts };
}

/** By the rules by which Playwright prints its sums. */
function repetitionOutcome(status, expectedStatus, results) {
  if (status === 'expected') return 'passed';
  if (status === 'flaky') return 'flaky';
  if (status === 'unexpected') {
    return results.filter((result) => !['interrupted', 'skipped', expectedStatus].includes(result.status)).at(-1).status === 'timedOut' ? 'timedout' : 'failed';
  }
  if (results.some((result) => result.status === 'interrupted')) return 'interrupted';
  return results.length === 0 || expectedStatus !== 'skipped' ? 'didnotrun' : 'skipped';
}

/** The service says of an attempt whether it was as expected: one that should fail and did has passed. */
function attemptStatus(status, expectedStatus) {
  if (status === 'skipped') return expectedStatus === 'skipped' ? 'skipped' : 'didnotrun';
  if (status === 'timedOut') return 'timedout';
  if (expectedStatus !== 'failed' || status === 'interrupted') return status;
  return status === 'failed' ? 'passed' : 'failed';
}

/** The last lines of the output, which count each repetition. */
function printedSums(output) {
  const sum = (words) => Number(new RegExp(`^ {2}(\\d+) ${words}\\b`, 'm').exec(output)?.[1] ?? 0);
  return {
    passed: sum('passed'), flaky: sum('flaky'), failed: sum('failed'), skipped: sum('skipped'), interrupted: sum('interrupted'), didNotRun: sum('did not run'),
  };
}
