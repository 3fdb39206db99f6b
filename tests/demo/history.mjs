/** The runs of a project, oldest first, as bodies of `POST /api/test-runs/submit`. */
import { orderButton, renamedButton } from './causes.mjs';
import { TIMEOUT } from './projects.mjs';
import { randomOf } from './random.mjs';

export const DAYS = 28;
const DAY = 86_400_000;
const RUNS = 60;
/** Runs whose passed tests tell their steps and locators too. */
const DETAILED = 6;
/** Runs whose tests tell what they called. */
const WITH_REQUESTS = 24;

/** Every run as `{ body, pictures }`; `pictures` names the picture of failed attempts by their index. */
export function* runsOf(project, now) {
  const random = randomOf('runs', project.name);
  for (let number = 0; number < RUNS; number += 1) {
    const age = DAYS * (1 - (number + 0.6 + random.next() * 0.3) / RUNS);
    yield runOf(project, number, Math.round(now - age * DAY), age);
  }
}

function runOf(project, number, startTime, age) {
  const random = randomOf('run', project.name, number);
  const isNightly = number % 4 === 0;
  const branch = isNightly || random.chance(0.62) ? 'main' : random.pick(project.branches);
  const isPartial = !isNightly && branch !== 'main' && random.chance(0.25);
  const environment = isNightly ? 'staging' : random.pick(project.environments);
  const commit = commitOf(project, branch, age, number);
  const circumstances = { project, origin: originIn(environment, project), branch, age, startTime, isDetailed: number >= RUNS - DETAILED, callsAreTold: number >= RUNS - WITH_REQUESTS };
  const setupSteps = setUp(project, startTime);
  const ready = setupSteps.reduce((end, step) => Math.max(end, step.startedAt + step.duration), startTime);
  const clocks = Array.from({ length: project.workers }, () => ready + random.between(400, 1_600));
  const testCases = [];
  const pictures = new Map();
  for (const browser of project.browsers) {
    for (const test of project.tests) {
      if (isPartial && !test.tags.includes('smoke')) continue;
      const worker = clocks.indexOf(Math.min(...clocks));
      for (const attempt of attemptsOf(test, browser, circumstances, random)) {
        const { picture, ...entry } = attempt;
        if (picture) pictures.set(testCases.length, picture);
        testCases.push({ ...startedAt(entry, clocks[worker]), workerIndex: worker, parallelIndex: worker });
        clocks[worker] += entry.duration + random.between(30, 220);
      }
    }
  }
  const last = new Map(testCases.map((each) => [`${each.browser.projectName} ${each.location}`, each.status]));
  const failed = [...last.values()].some((status) => status !== 'passed' && status !== 'skipped');
  return {
    pictures,
    body: {
      projectName: project.name,
      projectDescription: project.description,
      status: failed ? 'failed' : 'passed',
      startTime: new Date(startTime).toISOString(),
      duration: Math.max(...clocks) - startTime,
      environment,
      ...(isNightly ? { label: 'Nightly' } : {}),
      isFullRun: !isPartial,
      ...(isPartial ? { filterDetails: { grep: '@smoke' } } : {}),
      instanceId: random.hex(16),
      playwrightVersion: age > 14 ? '1.64.0' : '1.65.1',
      reporterVersion: '0.1.0',
      metadata: {
        scm: { branch, commit: commit.sha, author: commit.author, commitMessage: commit.message },
        ci: { provider: 'GitHub Actions', buildUrl: `https://ci.example/${encodeURIComponent(project.name)}/builds/${4_100 + number}`, buildNumber: String(4_100 + number) },
        host: { platform: 'linux', arch: 'x64', cpus: 8, node: age > 2.75 ? '22.11.0' : '22.12.0' },
      },
      setupSteps,
      testCases,
    },
  };
}

/** What a project does before its tests, one step after the other. */
function setUp(project, startTime) {
  let startedAt = startTime + 150;
  return (project.setup ?? []).map(([title, duration]) => {
    const step = { title, category: 'hook', startedAt, duration, status: 'passed', workerIndex: 0 };
    startedAt += duration + 40;
    return step;
  });
}

/** Steps and console entries are told relative to their attempt. */
function startedAt(entry, moment) {
  return {
    ...entry,
    startedAt: moment,
    steps: entry.steps?.map((step) => ({ ...step, startTime: step.startTime + moment })),
    consoleLogs: entry.consoleLogs?.map((log) => ({ ...log, timestamp: log.timestamp + moment })),
  };
}

/** What is new on a branch: the commits of the stories at their time, everyday ones in between. */
function commitOf(project, branch, age, number) {
  const random = randomOf('commit', project.name, branch, branch === 'main' ? Math.floor(number / 2) : number);
  const sha = random.hex(40);
  const span = DAYS / RUNS * 1.6;
  const told = project.stories.flatMap((story) => [
    ...(story.commit ? [{ ...story.commit, at: story.from }] : []),
    ...(story.fix ? [{ ...story.fix, at: story.until }] : []),
  ]);
  const fresh = branch === 'main' && told.find(({ at }) => at >= age && at - age < span);
  if (fresh) return { sha: randomOf('commit', project.name, fresh.message).hex(40), message: fresh.message, author: fresh.author };
  return { sha, message: random.pick(project.messages), author: random.pick(project.authors) };
}

const concerns = (story, test, browser, { branch, age }) =>
  age <= story.from && age > story.until && story.of(test) && (story.browser ?? browser) === browser
  && (!story.branches || story.branches.includes(branch));

/** The attempts of one test in one run, in their order: at most two. */
function* attemptsOf(test, browser, circumstances, random) {
  const stories = circumstances.project.stories.filter((story) => concerns(story, test, browser, circumstances));
  const slower = stories.reduce((factor, story) => factor * (story.slower ?? 1), 1);
  const duration = Math.round(test.usual * slower * random.spread(0.45) * (browser === 'firefox' ? 1.2 : 1));
  const entry = (retry) => ({
    title: test.title, location: `${test.file}:${test.line}:5`, suitePath: test.suite, retries: retry, timeout: TIMEOUT,
    tags: test.tags, testMeta: { owner: test.owner, feature: test.feature, priority: test.priority }, browser: browserOf(browser),
  });
  if (stories.some((story) => story.skip)) {
    yield { ...entry(0), status: 'skipped', duration: 0, testAnnotations: [{ type: 'skip', description: 'waits for the new search' }] };
    return;
  }
  const story = stories.find((each) => each.cause && random.chance(each.chance));
  // Hardly anything is perfectly reliable.
  if (!story) {
    yield { ...entry(0), status: 'passed', duration, ...passing(test, duration, circumstances, random) };
    return;
  }
  yield { ...entry(0), ...failing(test, story.cause(random), duration, circumstances, random) };
  const passesThen = random.chance(story.again ?? 0);
  yield passesThen
    ? { ...entry(1), status: 'passed', duration, ...passing(test, duration, circumstances, random) }
    : { ...entry(1), ...failing(test, story.cause(random), duration, circumstances, random) };
}

function failing(test, cause, usual, circumstances, random) {
  const line = test.line + 5;
  const at = `${test.file}:${line}:${cause.code.length - 8}`;
  const duration = Math.round(usual * 0.6) + cause.took;
  const error = cause.error(at);
  const { project, origin } = circumstances;
  const here = (address) => address.replace(project.origin, origin);
  // What it would have sent at its end it did not come to.
  const calls = callsOf(test, circumstances, random).filter(({ method }) => method !== 'POST');
  return {
    status: cause.status ?? 'failed',
    duration,
    error,
    testSource: sourceOf(test, cause.code, line),
    testSourceFrames: [{ file: test.file, line, snippet: sourceOf(test, cause.code, line) }],
    steps: stepsOf(test, usual * 0.6, cause, error),
    slowestStep: cause.code.replace(/^await /, '').replace(/;$/, ''),
    slowestStepDuration: cause.took,
    ariaSnapshot: cause.aria,
    consoleLogs: cause.console?.map((log) => ({ ...log, timestamp: 0, location: `${origin ?? ''}/assets/app.js:1:20417` })),
    networkRequests: [...calls, ...(cause.network ?? []).map((call) => ({ ...call, url: here(call.url) }))],
    pageState: { url: `${origin ?? ''}${pathOf(test)}`, localStorage: [{ key: 'currency', length: 3 }], sessionStorage: [], cookies: [] },
    picture: cause.picture,
    wastedTimeMs: random.chance(0.3) ? random.pick([500, 1_000, 2_000]) : 0,
  };
}

function passing(test, duration, circumstances, random) {
  const { isDetailed, project } = circumstances;
  const isOrder = project.stories.some((story) => story.cause === renamedButton && story.of(test));
  return {
    ...(isDetailed ? { steps: stepsOf(test, duration) } : {}),
    networkRequests: callsOf(test, circumstances, random),
    ...(isOrder ? { locatorSnapshots: [{ location: `${test.file}:${test.line + 5}:${renamedButton().code.length - 8}`, used: usedLocator(), ...orderButton }] } : {}),
    ...(project.browsers.includes('api') ? {} : { webVitals: { vitals: { lcp: Math.round(600 + duration / 4), cls: 0.02, inp: 48 } } }),
  };
}

/** Where a project runs: staging has its own host. */
const originIn = (environment, { origin }) => (environment === 'production' ? origin?.replace('//staging.', '//www.') : origin);

const pathOf = (test) => `/${test.suite[0].toLowerCase().replaceAll(' ', '-')}`;

/** What a test calls while it runs: one endpoint is slow for everybody, and got slower lately. */
function callsOf(test, { origin, age, callsAreTold }, random) {
  if (!callsAreTold || !origin) return [];
  const part = test.feature.toLowerCase().replaceAll(' ', '-');
  const call = (method, path, usual, more = {}) => ({
    method, url: `${origin}${path}`, status: 200, duration: Math.round(usual * random.spread(0.8)), resourceType: 'fetch', ...more,
  });
  const calls = [call('GET', `/api/${part}/${random.between(1_000, 9_999)}`, 85), call('GET', '/api/session', 24)];
  if (test.feature === 'Search') calls.push(call('GET', `/api/suggest?q=tea${random.between(1, 99)}`, age < 6 ? 1_900 : 640));
  if (test.title === 'shows recommendations') calls.push(call('GET', `/api/recommendations/${random.between(1_000, 9_999)}`, 310));
  if (test.feature === 'Checkout') calls.push(call('POST', '/api/orders', 420, random.chance(0.04) ? { status: 502 } : { status: 201 }));
  if (test.feature === 'Stock') calls.push(call('POST', '/api/deliveries', 1_250, { status: 202 }));
  return calls;
}

function usedLocator() {
  const { locator } = renamedButton();
  return { ...locator, raw: "getByRole('button', { name: 'Place order' })" };
}

function sourceOf(test, code, failingLine) {
  const opens = `  await page.goto('${pathOf(test)}');`;
  const lines = [`test('${test.title}', async ({ page }) => {`, opens,
    `  await expect(page.getByRole('heading', { name: '${test.suite[0]}' })).toBeVisible();`, `  await prepare(page, '${test.title}');`, '', `  ${code}`, '});',
    // As many lines follow as stand before: with fewer, the file would end here.
    '', `test('${test.title}, signed in', async ({ page }) => {`, opens, `  await prepare(page, '${test.title}');`];
  const number = (at) => String(test.line + at).padStart(4);
  const marker = (at) => (at === 0 ? '* ' : test.line + at === failingLine ? '> ' : '  ');
  return lines.map((text, at) => `${marker(at)}${number(at)} | ${text}`).join('\n');
}

function stepsOf(test, duration, cause, error) {
  let at = 0;
  const step = (title, category, share, more = {}) => {
    const begun = at;
    const took = Math.round(duration * share);
    at += took;
    return { title, category, startTime: begun, duration: took, ...more };
  };
  const steps = [
    step('Before Hooks', 'hook', 0.15), step(`Navigate to "${pathOf(test)}"`, 'navigation', 0.35),
    step(`Expect "toBeVisible" getByRole('heading', { name: '${test.suite[0]}' })`, 'assertion', 0.1), step(`prepare: ${test.title}`, 'other', 0.25),
  ];
  if (cause) {
    const failed = { title: cause.code.replace(/^await /, '').replace(/;$/, ''), category: /expect/.test(cause.code) ? 'assertion' : 'action', startTime: at, duration: cause.took, failed: true,
      error: { message: error }, location: `${test.file}:${test.line + 5}` };
    at += cause.took;
    steps.push(failed);
  }
  steps.push(step('After Hooks', 'hook', 0.15));
  return steps;
}

function browserOf(name) {
  const engines = { pixel: 'chromium', iphone: 'webkit', api: undefined };
  const small = ['pixel', 'iphone'].includes(name);
  return {
    projectName: name,
    ...(name === 'api' ? {} : { browserName: engines[name] ?? name, viewport: small ? { width: 390, height: 844 } : { width: 1280, height: 720 }, isMobile: small, locale: 'en-GB', colorScheme: 'light' }),
  };
}
