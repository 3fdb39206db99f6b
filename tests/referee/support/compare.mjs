/** Compares a stored run with what Playwright says of it. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { nameOf, outcomeOf } from './report.mjs';
import { getAll, getJson } from './service.mjs';

/** The run that one way of sending (`live` or `batch`) made. */
export function runIdOf({ outputFolder, output }, way) {
  try {
    return JSON.parse(readFileSync(path.join(outputFolder, `${way}.json`), 'utf8')).runId;
  } catch (error) {
    throw new Error(`the run was not sent (${way}): ${error.message}\n${output}`);
  }
}

/** Every test of the run has Playwright's outcome and attempts, and the sums of the run are those of its tests. */
export async function assertAsReported(runId, { tests }, what) {
  const run = await getJson(`/api/test-runs/${runId}?limit=0`);
  const executions = await getAll(`/api/test-runs/${runId}/executions`);
  assert.deepEqual(await storedTests(executions), reportedTests(tests), what);
  assert.deepEqual(sumsOf(run), countedSums(tests), what);
  return { run, executions };
}

function reportedTests(tests) {
  return sorted([...tests].map(([name, test]) => [name, {
    outcome: outcomeOf(test),
    attempts: countedAttempts(test.repetitions.flatMap(({ attempts }) => attempts)),
  }]));
}

async function storedTests(executions) {
  return sorted(await Promise.all(executions.map(async (execution) => [
    nameOf({ project: execution.browserProject ?? '', file: execution.filePath, describes: execution.suitePath, title: execution.title }),
    { outcome: execution.flaky ? 'flaky' : execution.status, attempts: countedAttempts(await attemptsOf(execution)) },
  ])));
}

async function attemptsOf({ id, attemptCount, status, retries }) {
  if (attemptCount === 1) return [{ retry: retries, status }];
  const { attempts } = await getJson(`/api/test-run-cases/${id}`);
  return attempts;
}

/** How often there was which attempt; one that did not run counts only where nothing else did. */
function countedAttempts(attempts) {
  const ran = attempts.filter(({ status }) => status !== 'didnotrun');
  return (ran.length > 0 ? ran : [{ retry: 0, status: 'didnotrun' }]).map(({ retry, status }) => `${retry} ${status}`).sort();
}

function sumsOf(run) {
  const { totalTests, passedTests, failedTests, timedOutTests, flakyTests, skippedTests, didNotRunTests, interruptedTests } = run;
  return { totalTests, passedTests, failedTests, timedOutTests, flakyTests, skippedTests, didNotRunTests, interruptedTests };
}

function countedSums(tests) {
  const outcomes = [...tests.values()].map(outcomeOf);
  const count = (...wanted) => outcomes.filter((each) => wanted.includes(each)).length;
  return {
    totalTests: outcomes.length, passedTests: count('passed', 'flaky'), failedTests: count('failed', 'timedout'), timedOutTests: count('timedout'),
    flakyTests: count('flaky'), skippedTests: count('skipped'), didNotRunTests: count('didnotrun'), interruptedTests: count('interrupted'),
  };
}

function sorted(entries) {
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}
