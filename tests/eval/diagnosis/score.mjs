/** Asks the service about every case: what it stores, what a model would be sent, and what it says itself. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { casesOf } from './cases.mjs';
import { askModel, isModelConfigured } from './models.mjs';
import { projectOf } from './runs.mjs';
import { callTool, executionsOf, getJson, getOptional, settledRuns, traceText } from './service.mjs';
import { linesOf, names, tokensOf, within } from './text.mjs';

/** Tokens that the text for a model may have. */
export const BUDGET = 6_000;
/** Characters that are asked for, which is less than the budget unless most of them are not ASCII. */
const CHARS = BUDGET * 3.5;

/** Texts about an execution that a model or an agent can be given; those that the service does not have are left out. */
const PACKERS = {
  'get_test_case_context': async ({ id }) => (await callTool('get_test_case_context', { executionId: id, maxChars: CHARS })).text,
  'explain_failure': async ({ id }) => linesOf(await callTool('explain_failure', { executionId: id, detail: 'full' })),
  'GET diagnosis-context': async ({ id }) => (await getOptional(`/api/test-run-cases/${id}/diagnosis-context?maxChars=${CHARS}`))?.text,
};

/** Texts about a cluster. They show its newest failure, and are scored by what they say of that. */
const CLUSTER_PACKERS = {
  'get_cluster_context': async ({ clusterId }) => (await callTool('get_cluster_context', { clusterId, maxChars: CHARS })).text,
  'GET failure-clusters/context': async ({ clusterId }) => (await getOptional(`/api/failure-clusters/${clusterId}/context?maxChars=${CHARS}`))?.text,
};

const CATEGORY = {
  outage: 'infrastructure', 'locator-drift': 'test-bug', environment: 'environment', 'app-error': 'app-bug', 'likely-regression': 'app-bug',
  'likely-flake': 'flaky-test', 'test-bug': 'test-bug', unknown: 'unknown',
};

export async function scoreAll() {
  const results = [];
  const missing = [];
  const folder = await mkdtemp(path.join(tmpdir(), 'callboard-eval-traces-'));
  try {
    for (const half of ['first', 'second']) {
      const [, faulty, last] = await settledRuns(projectOf(half));
      const phases = half === 'first' ? [['first', faulty], ['repeated', last]] : [['second', faulty], ['stopped', last]];
      for (const [phase, run] of phases) {
        const executions = await executionsOf(run.id);
        for (const each of casesOf(phase)) {
          // What fails again is scored where it is known already.
          if (each.isRepeated && phase !== 'repeated') continue;
          const execution = executions.find(({ title }) => title === each.test);
          const outcome = execution?.flaky ? 'flaky' : execution?.status;
          const isAsMeant = each.isFirstTryOnly ? outcome === 'flaky' : ['failed', 'timedout'].includes(outcome);
          if (isAsMeant) results.push(await score(each, execution, executions, folder));
          else missing.push({ test: each.test, half, outcome: outcome ?? 'no result' });
        }
      }
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  const newest = new Map(results.map((result) => [result.clusterId, result]));
  for (const result of results) if (result.id > newest.get(result.clusterId).id) newest.set(result.clusterId, result);
  for (const result of newest.values()) Object.assign(result.packed, await pack(CLUSTER_PACKERS, result, result.evidence));
  if (isModelConfigured) await askModel(results);
  for (const result of results) delete result.evidence;
  return { results, missing };
}

/** What each text names, and how long it is. */
async function pack(packers, result, evidence) {
  const packed = {};
  for (const [name, ask] of Object.entries(packers)) {
    const text = await ask(result);
    if (text !== undefined) packed[name] = { tokens: tokensOf(text), isNamed: names(within(text, BUDGET), evidence) };
  }
  return packed;
}

async function score(each, { id, clusterId }, executions, folder) {
  const explanation = await getJson(`/api/test-run-cases/${id}/explain?detail=full`);
  const healing = await getJson(`/api/test-run-cases/${id}/locator-healing`);
  const stored = await storedText(each, id, executions, folder, healing);
  const held = Object.entries(stored).filter(([, text]) => names(text, each.evidence)).map(([section]) => section);
  const packed = await pack(PACKERS, { id, clusterId }, each.evidence);
  const { verdict, also, confidence, headline } = explanation;
  return {
    test: each.test, id, clusterId, split: each.split, expected: each.verdict, category: each.category, verdict, also, confidence, headline,
    // What is known says no cause; the second word does.
    said: CATEGORY[verdict === 'known-cluster' ? (also ?? 'unknown') : verdict],
    suggested: healing.recommendation?.recommended.locator, hasEdit: healing.edit !== null,
    inError: held.includes('error'), held, packed, evidence: each.evidence, changed: explanation.changed.map(({ kind, label, before, after }) => ({ kind, label, before, after })),
    everything: tokensOf(Object.entries(stored).filter(([section]) => section !== 'trace').map(([, text]) => text).join('\n')),
    traceTokens: tokensOf(stored.trace ?? ''),
  };
}

/** Everything that is stored about the attempt that failed, by section. */
async function storedText(each, id, executions, folder, healing) {
  const attempt = each.isFirstTryOnly ? '?attempt=0' : '';
  const [detail, differences, requests] = await Promise.all([
    getJson(`/api/test-run-cases/${id}${attempt}`), getJson(`/api/test-run-cases/${id}/environment-diff`), getOptional(`/api/test-run-cases/${id}/trace-network${attempt}`),
  ]);
  const evidence = detail.evidence ?? {};
  const trace = detail.traces?.find((file) => !each.isFirstTryOnly || file.attempt?.retry === 0);
  const shown = detail.attempts.find(({ retry }) => !each.isFirstTryOnly || retry === 0);
  const sections = {
    error: shown?.errorPlain ?? shown?.error ?? detail.errorPlain ?? detail.error, steps: linesOf(evidence.steps), network: linesOf(evidence.networkRequests),
    console: linesOf(evidence.consoleLogs), aria: evidence.ariaSnapshot, source: [evidence.testSource, ...(evidence.testSourceFrames ?? []).map(({ snippet }) => snippet)].join('\n'),
    output: [evidence.stdout, evidence.stderr].join('\n'), page: linesOf(evidence.pageState), environment: linesOf(differences), healing: linesOf(healing),
    'trace requests': linesOf(requests), trace: trace && (await traceText(trace, folder)),
  };
  if (each.beside) {
    const other = executions.find(({ title }) => title === each.beside);
    const found = (await getJson(`/api/test-run-cases/${other.id}`)).evidence;
    sections['output of another test'] = [found?.stdout, found?.stderr].join('\n');
  }
  return Object.fromEntries(Object.entries(sections).filter(([, text]) => text));
}
