/** A run that goes on: tests begin, take their steps and end while one looks. */
import { PROJECTS } from './projects.mjs';
import { randomOf } from './random.mjs';
import { send } from './service.mjs';

const pause = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });
const WORKERS = 3;

/** Feeds one run from its start to its end; answers its id as soon as it is known. */
export async function startLiveRun(pace = 900) {
  const project = PROJECTS[0];
  const random = randomOf('live', Date.now());
  const tests = project.tests.filter((test) => !test.title.includes('recent'));
  const { runId, streamToken } = await send('POST', '/api/test-runs/start', {
    projectName: project.name, startTime: new Date().toISOString(), environment: 'staging', label: 'Pull request 318', plannedTests: tests.length,
    instanceId: random.hex(16), metadata: { scm: { branch: 'feature/gift-cards', commit: random.hex(40), author: 'Jonas Weber', commitMessage: 'Sell gift cards' } },
  });
  const events = (...testCases) => send('POST', `/api/test-runs/${runId}/events`, { streamToken, testCases });
  const queue = [...tests];
  const work = async (workerIndex) => {
    for (let test = queue.shift(); test; test = queue.shift()) {
      const startedAt = Date.now();
      const base = { title: test.title, location: `${test.file}:${test.line}:5`, suitePath: test.suite, workerIndex, parallelIndex: workerIndex, startedAt,
        tags: test.tags, testMeta: { owner: test.owner, feature: test.feature }, browser: { projectName: 'chromium', browserName: 'chromium' } };
      await events({ ...base, type: 'begin' });
      for (const title of ['Before Hooks', `Navigate to "/${test.suite[0].toLowerCase()}"`, `prepare: ${test.title}`]) {
        const step = { ...base, title, parentTitle: test.title, stepCategory: 'test.step', startedAt: Date.now() };
        await events({ ...step, type: 'step-begin' });
        await pause(pace * random.spread(0.5));
        await events({ ...step, type: 'step-end', status: 'passed', duration: Date.now() - step.startedAt });
      }
      const fails = random.chance(0.06);
      await events({ ...base, type: 'complete', retries: 0, duration: Date.now() - startedAt, status: fails ? 'failed' : 'passed',
        ...(fails ? { error: `Error: expect(locator).toBeVisible() failed\n\nLocator: getByRole('heading', { name: '${test.suite[0]}' })\nExpected: visible\nTimeout: 5000ms\n\n    at ${test.file}:${test.line + 3}:20` } : {}) });
    }
  };
  const finished = Promise.all(Array.from({ length: WORKERS }, async (_, index) => work(index)))
    .then(() => send('POST', `/api/test-runs/${runId}/finish`, { streamToken, status: 'passed', duration: tests.length * pace }));
  return { runId, finished };
}
