/**
 * Fills the service at `CALLBOARD_URL` with four projects and four weeks of history, over the
 * same calls a reporter uses, then feeds a live run. The same seed gives the same history;
 * times count back from now.
 *   node demo.mjs            fills an instance that has no runs, then keeps one run going until Ctrl+C
 *   node demo.mjs --once     fills it and ends
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { runsOf } from './history.mjs';
import { startLiveRun } from './live.mjs';
import { decide } from './people.mjs';
import { draw } from './pictures.mjs';
import { PROJECTS, TAGS } from './projects.mjs';
import { getJson, send, serviceUrl, upload } from './service.mjs';

if (!serviceUrl) throw new Error('CALLBOARD_URL must name the running service, for instance CALLBOARD_URL=http://127.0.0.1:3000');

/** Runs older than this have no pictures: they are the same few every time. */
const PICTURE_DAYS = 3;

/** Tags of the projects, by their words. */
async function makeTags() {
  const made = {};
  for (const [text, color] of Object.entries(TAGS)) made[text] = (await send('POST', '/api/tags', { text, color })).tag.id;
  return made;
}

async function fill(project, tags, now, drawn) {
  const made = await send('POST', '/api/projects', { name: project.name, description: project.description, defaultBranch: 'main', tagIds: project.tags.map((tag) => tags[tag]) });
  await send('PATCH', `/api/projects/${made.project.id}`, { repositoryUrl: project.repository });
  let sent = 0;
  for (const { body, pictures } of runsOf(project, now)) {
    const isRecent = now - Date.parse(body.startTime) < PICTURE_DAYS * 86_400_000;
    const shown = drawn && isRecent ? [...pictures].map(([index, name]) => [index, drawn[name]]) : [];
    if (shown.length > 0) await upload(body, shown);
    else await send('POST', '/api/test-runs/submit', body);
    sent += 1;
  }
  console.log(`${project.name}: ${sent} runs`);
}

/** A suite that really runs, with traces, screenshots and a report; where a browser and the packages are there. */
async function runForReal() {
  const packages = ['@playwright/test', 'callboard-reporter/dist/index.js'];
  if (!packages.every((name) => existsSync(new URL(`../e2e/node_modules/${name}`, import.meta.url)))) {
    console.log('No traces of a real run: npm ci in reporter/ and tests/e2e/ installs what they need.');
    return;
  }
  const { runPlaywright } = await import('../e2e/support/playwright-run.mjs');
  const folder = mkdtempSync(path.join(tmpdir(), 'callboard-demo-'));
  try {
    await runPlaywright([], {
      SERVICE_URL: serviceUrl, SERVICE_API_KEY: process.env.CALLBOARD_API_KEY ?? '', SERVICE_PROJECT_NAME: 'teapots', SERVICE_ENVIRONMENT: 'local', ...workingCopy(folder),
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  console.log('teapots: 1 real run with traces');
}

/** The suite is part of this repository, but what it tests is not: a commit of its own stands for that. */
function workingCopy(folder) {
  const person = { GIT_AUTHOR_NAME: 'Mira Santos', GIT_AUTHOR_EMAIL: 'mira@shop.example', GIT_COMMITTER_NAME: 'Mira Santos', GIT_COMMITTER_EMAIL: 'mira@shop.example' };
  const git = (...args) => execFileSync('git', ['-C', folder, ...args], { stdio: 'ignore', env: { ...process.env, ...person } });
  try {
    git('init', '--quiet', '--initial-branch=main');
    git('commit', '--quiet', '--allow-empty', '--message', 'Sell teapots by the dozen');
    return { GIT_DIR: path.join(folder, '.git') };
  } catch {
    return {};
  }
}

const { items } = await getJson('/api/projects?limit=1');
if (items.length > 0) {
  console.log('There are runs already: nothing is added to them.');
} else {
  const tags = await makeTags();
  const drawn = await draw();
  const now = Date.now();
  // One after another: the order of arrival, and with it every id, is the same each time.
  for (const project of PROJECTS) await fill(project, tags, now, drawn);
  await decide(PROJECTS, now);
  await runForReal();
}
if (!process.argv.includes('--once')) {
  for (;;) {
    const { runId, finished } = await startLiveRun();
    console.log(`live: ${serviceUrl}/test-runs/${runId}`);
    await finished;
  }
}
