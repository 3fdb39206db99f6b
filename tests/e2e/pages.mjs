/**
 * Looks at every page in real Chromium, in both themes and on two widths: it answers, says
 * nothing on the console, asks no other host for anything, fits a phone and a zoomed window, does
 * not jump, is light, has no accessibility violation, and shows what a test was called and never
 * runs it. Needs `CALLBOARD_URL`; `CHROMIUM_PATH` when Chromium is not at /usr/bin/chromium.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { chromium } from '@playwright/test';
import { BETWEEN, COLOUR_RULES, THEMES, WIDTHS, ZOOMED, complaintsAbout, cramped, movingParts, tooWide, walkByKeys, watchJumps } from './support/look.mjs';
import { getJson, reporterEnvironment, serviceUrl } from './support/service.mjs';
import { weigh } from './support/weight.mjs';

if (!serviceUrl) {
  throw new Error('CALLBOARD_URL must name the running service, for instance CALLBOARD_URL=http://127.0.0.1:3000');
}

/** Pages that say what went wrong. */
const REFUSED = { 'nothing there': ['/nothing-here', 404], 'no such run': ['/test-runs/999999999', 404], 'an address that cannot be shown': ['/projects?sort=sideways', 400] };
const KIB = 1024;
/** Markup in everything that people name, and no place to break a line at. */
const HOSTILE = '<img src=x onerror="window.wasRun=1">';
const LONG = 'a-name-without-any-place-to-break-'.repeat(6);
const PIXEL = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64');

/** A day, counted from today. */
const isoDay = (days) => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);

/** One run with every outcome, evidence of every kind, and a screenshot. */
async function sendRun(projectName) {
  const startedAt = Date.now() - 60_000;
  const base = { browser: { projectName: 'desktop', browserName: 'chromium' }, suitePath: ['Cart', LONG], startedAt, timeout: 30_000 };
  const failed = {
    ...base,
    title: `shows ${HOSTILE}`,
    location: `tests/${LONG}/cart.spec.ts:7:5`,
    status: 'failed',
    duration: 1_300,
    error: `\u001b[31mError: expected ${HOSTILE}\u001b[39m\n\u001b[2m  at tests/cart.spec.ts:9:3\u001b[22m ${LONG}${LONG}`,
    testSource: `     8 | test('…', async ({ page }) => {\n>    9 |   await expect(page.locator('${LONG}${HOSTILE}')).toBeVisible();`,
    steps: [
      { title: 'Before Hooks', startTime: startedAt, duration: 300, category: 'hook' },
      { title: `click ${LONG}`, startTime: startedAt + 10, duration: 200, category: 'action', failed: true, error: { message: HOSTILE } },
    ],
    consoleLogs: [{ type: 'error', text: `${HOSTILE} ${LONG}`, timestamp: startedAt, location: `https://shop.example/${LONG}.js:1:1` }],
    networkRequests: [{ method: 'GET', url: `https://shop.example/${LONG}/${LONG}`, normalizedUrl: '/', status: 500, duration: 40 }],
    pageState: { url: `https://shop.example/${LONG}`, localStorage: [{ key: LONG, length: 3 }], sessionStorage: [], cookies: [] },
    ariaSnapshot: `- heading "${HOSTILE}"`,
    webVitals: { vitals: { lcp: 1_200, cls: 0.01 } },
    stdout: `${HOSTILE}\n${LONG}`,
    testAnnotations: [{ type: 'issue', description: LONG }],
    tags: ['smoke'],
  };
  const testCases = [
    failed,
    { ...failed, retries: 1 },
    { ...base, title: 'applies a coupon', location: 'tests/cart.spec.ts:30:5', status: 'failed', duration: 800, error: 'Error: once' },
    { ...base, title: 'applies a coupon', location: 'tests/cart.spec.ts:30:5', status: 'passed', duration: 700, retries: 1 },
    { ...base, title: 'pays by invoice', location: 'tests/cart.spec.ts:50:5', status: 'skipped', duration: 0 },
    { ...base, title: 'never started', location: 'tests/cart.spec.ts:60:5', status: 'didnotrun', duration: 0, didNotRunReason: 'max-failures' },
    ...Array.from({ length: 60 }, (_, at) => ({ ...base, title: `works ${at}`, location: `tests/many.spec.ts:${at + 1}:1`, status: 'passed', duration: 10 + at })),
  ];
  const form = new FormData();
  form.set('projectName', projectName);
  form.set('testRun', JSON.stringify({
    projectName, status: 'failed', startTime: new Date(startedAt).toISOString(), duration: 42_000, environment: LONG.slice(0, 90),
    label: `Nightly ${HOSTILE}`, branch: `feature/${LONG}`, commit: '0123456789abcdef0123456789abcdef01234567', author: LONG,
    buildUrl: 'https://ci.example/build/1', metadata: { globalErrors: [`Error: ${HOSTILE}`], customData: { [LONG]: [{ deep: { deeper: HOSTILE } }] } },
  }));
  form.set('testCases', JSON.stringify(testCases));
  form.set('attach_meta_0', JSON.stringify([{ name: 'screenshot', contentType: 'image/png', originalName: 'screenshot.png' }]));
  form.set('attach_file_0', new Blob([PIXEL], { type: 'image/png' }), 'screenshot.png');
  const key = reporterEnvironment().SERVICE_API_KEY;
  const headers = key ? { authorization: `Bearer ${key}` } : {};
  const response = await fetch(new URL('/api/test-runs/upload', serviceUrl), { method: 'POST', headers, body: form });
  const body = await response.text();
  assert.equal(response.status, 200, body);
  return JSON.parse(body);
}

describe('the pages of a run', () => {
  const projectName = `pages ${HOSTILE} ${randomUUID().slice(0, 8)}`;
  let browser;
  let pages;

  before(async () => {
    const { testRunId, projectId } = await sendRun(projectName);
    const { items } = await getJson(`/api/test-runs/${testRunId}/executions?limit=3`);
    const flaky = items.find((item) => item.flaky);
    pages = {
      home: '/',
      projects: '/projects',
      'projects, filtered': `/projects?q=${encodeURIComponent(HOSTILE)}&sort=name`,
      'projects, nothing found': `/projects?q=${randomUUID()}`,
      project: `/projects/${projectId}`,
      'project, filtered': `/projects/${projectId}?branch=${encodeURIComponent(`feature/${LONG}`)}&status=failed&suite=full`,
      'project, nothing found': `/projects/${projectId}?status=passed`,
      'test grid': `/projects/${projectId}?tab=grid`,
      'test grid of a folder': `/projects/${projectId}?tab=grid&file=tests%2F&sort=rate`,
      'test grid, nothing found': `/projects/${projectId}?tab=grid&q=${randomUUID()}`,
      clusters: `/projects/${projectId}?tab=clusters&status=all`,
      'clusters, none put off': `/projects/${projectId}?tab=clusters&snoozed=yes&assignee=nobody`,
      flaky: `/projects/${projectId}?tab=flaky`,
      'spec health': `/projects/${projectId}?tab=health`,
      'files of a folder': `/projects/${projectId}?tab=health&folder=tests`,
      quarantine: `/projects/${projectId}?tab=quarantine`,
      'quarantine, released': `/projects/${projectId}?tab=quarantine&state=released`,
      'compare runs': `/projects/${projectId}?tab=compare`,
      members: `/projects/${projectId}?tab=members`,
      'project settings': `/projects/${projectId}?tab=settings`,
      performance: `/projects/${projectId}?tab=performance`,
      'test cases': `/projects/${projectId}?tab=cases&sort=title`,
      run: `/test-runs/${testRunId}`,
      'files of a run': `/test-runs/${testRunId}?sort=file`,
      'run, by file': `/test-runs/${testRunId}?sort=file&outcome=failing,flaky`,
      'run, tried again': `/test-runs/${testRunId}?tried=again`,
      insights: `/test-runs/${testRunId}?tab=insights`,
      'failure groups': `/test-runs/${testRunId}?tab=groups`,
      regression: `/test-runs/${testRunId}?tab=regression`,
      compare: `/test-runs/${testRunId}?tab=compare`,
      'compare with the run before': `/test-runs/${testRunId}?tab=compare&with=previous&change=newFailure`,
      timeline: `/test-runs/${testRunId}?tab=timeline`,
      'timeline, filtered': `/test-runs/${testRunId}?tab=timeline&outcome=failing,flaky`,
      'timeline, retried': `/test-runs/${testRunId}?tab=timeline&tried=again`,
      'timeline, first attempts': `/test-runs/${testRunId}?tab=timeline&phase=first`,
      'timeline, set-up alone': `/test-runs/${testRunId}?tab=timeline&phase=setup`,
      'timeline, one worker': `/test-runs/${testRunId}?tab=timeline&worker=1`,
      'runs, oldest first': `/projects/${projectId}?order=asc`,
      endpoints: `/test-runs/${testRunId}?tab=endpoints`,
      reports: `/test-runs/${testRunId}?tab=reports`,
      details: `/test-runs/${testRunId}?tab=details`,
      execution: `/test-run-cases/${items[0].id}`,
      'first attempt': `/test-run-cases/${items[0].id}?retry=0`,
      'flaky execution': `/test-run-cases/${flaky.id}`,
      'test case': `/test-cases/${items[0].testCaseId}`,
      analytics: '/analytics',
      'analytics of a project': `/analytics?project=${projectId}&days=7&suite=full&branch=${encodeURIComponent(`feature/${LONG}`)}`,
      'analytics between two days': `/analytics?from=${isoDay(-20)}&to=${isoDay(0)}`,
      settings: '/settings',
      tags: '/settings/tags',
      'projects in the settings': '/settings/projects',
      'projects in the settings, nothing found': `/settings/projects?q=${randomUUID()}`,
      'source control': '/settings/source-control',
      flakiness: '/settings/flakiness',
      timeouts: '/settings/timeouts',
      'diagnosis settings': '/settings/diagnosis',
      'flakiness of a project': `/settings/flakiness?project=${projectId}`,
      storage: '/settings/storage',
      retention: '/settings/retention',
      users: '/settings/users',
      audit: '/settings/audit',
      mcp: '/mcp',
    };
    const clusters = (await getJson(`/api/projects/${projectId}/failure-clusters`)).items;
    const cluster = clusters.find(({ signature }) => signature.includes('expected'));
    pages.cluster = `/failure-clusters/${cluster.id}`;
    pages['fix plan'] = `/failure-clusters/${cluster.id}?tab=plan`;
    pages.diagnosis = `/failure-clusters/${cluster.id}?tab=diagnosis`;
    browser = await chromium.launch({
      executablePath: process.env.CHROMIUM_PATH ?? '/usr/bin/chromium',
      args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
    });
  });

  after(() => browser?.close());

  /** Opens addresses one after another, and collects what a visitor would complain about. */
  async function visit(options, addresses, look) {
    const context = await browser.newContext(options);
    await watchJumps(context);
    const complaints = [];
    let isRefused = false;
    try {
      const page = await context.newPage();
      const origin = new URL(serviceUrl).origin;
      page.on('console', (message) => {
        // Chromium itself notes that a page was answered with 404.
        if (isRefused && message.text().startsWith('Failed to load resource')) return;
        if (['error', 'warning'].includes(message.type())) complaints.push(`${page.url()} wrote ${message.text()}`);
      });
      page.on('pageerror', (error) => {
        // The browser's own remark that a page was shown before it could be blended in; nobody sees it.
        if (error.message.startsWith('Transition was ')) return;
        complaints.push(`${page.url()} threw ${error.message}`);
      });
      page.on('request', (request) => {
        if (new URL(request.url()).origin !== origin) complaints.push(`${page.url()} asked for ${request.url()}`);
      });
      for (const [name, wanted] of Object.entries(addresses)) {
        const [address, status] = Array.isArray(wanted) ? wanted : [wanted, 200];
        isRefused = status !== 200;
        const response = await page.goto(new URL(address, serviceUrl).href);
        if (response.status() !== status) complaints.push(`${name} answered ${response.status()}`);
        complaints.push(...(await look(page, name)));
      }
    } finally {
      await context.close();
    }
    assert.deepEqual(complaints, []);
  }

  for (const theme of THEMES) {
    for (const [device, width] of Object.entries(WIDTHS)) {
      test(`are in order on a ${device}, ${theme}`, async () => {
        const options = { viewport: { width, height: 844 }, colorScheme: theme, reducedMotion: 'reduce' };
        await visit(options, { ...pages, ...REFUSED }, async (page, name) => {
          const rules = theme === THEMES[0] ? undefined : COLOUR_RULES;
          let about = await complaintsAbout(page, name, rules);
          // A busy machine may paint half of a page before it has read the rest. What jumps for a reason jumps again.
          if (about.some((complaint) => complaint.includes(' jumps: '))) {
            await page.reload();
            about = await complaintsAbout(page, name, rules);
          }
          const complaints = [...about, ...(await movingParts(page, name))];
          if (await page.evaluate(() => window.wasRun)) complaints.push(`${name} ran markup out of a name`);
          return complaints;
        });
      });
    }
  }

  test('fit a window that is zoomed to 200 and to 400 percent', async () => {
    for (const width of ZOOMED) {
      await visit({ viewport: { width, height: 512 } }, { ...pages, docs: '/docs' }, tooWide);
    }
  });

  test('leave room for the names in their tables at every width', async () => {
    for (const width of BETWEEN) {
      await visit({ viewport: { width, height: 800 } }, pages, cramped);
    }
  });

  test('are walked through with the tab key, and show where it is', async () => {
    const some = Object.fromEntries(['home', 'project', 'run', 'execution', 'test grid', 'analytics', 'tags', 'users', 'mcp'].map((name) => [name, pages[name]]));
    for (const width of Object.values(WIDTHS)) {
      await visit({ viewport: { width, height: 700 } }, some, async (page, name) => {
        const complaints = await walkByKeys(page, name, 40);
        await page.reload();
        await page.keyboard.press('Tab');
        await page.keyboard.press('Enter');
        await page.keyboard.press('Tab');
        const isInside = await page.evaluate(() => document.querySelector('#content').contains(document.activeElement));
        return isInside ? complaints : [...complaints, `${name}: the first link does not skip to the content`];
      });
    }
  });

  test('explain the API in both themes, without a violation', async () => {
    for (const [colorScheme, width, rules] of [['light', WIDTHS.desktop], ['dark', WIDTHS.phone, COLOUR_RULES]]) {
      await visit({ viewport: { width, height: 844 }, colorScheme, reducedMotion: 'reduce' }, { docs: '/docs' }, async (page, name) => {
        await page.getByRole('button', { name: /GET \/api\/health/ }).click();
        await page.getByText('Responses').first().waitFor();
        return (await complaintsAbout(page, name, rules)).filter((complaint) => !complaint.includes(' jumps: '));
      });
    }
  });

  test('are light: 100 KB on the first visit, 30 KB on the next page, 40 KB of HTML', async () => {
    const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
    try {
      const page = await context.newPage();
      const first = await weigh(page, new URL('/', serviceUrl).href);
      assert.ok(first.bytes <= 100 * KIB, `the first visit to home took ${first.bytes} bytes`);
      const next = await weigh(page, new URL(pages.project, serviceUrl).href);
      assert.ok(next.bytes <= 30 * KIB, `the next page took ${next.bytes} bytes`);
      for (const [name, address] of Object.entries(pages)) {
        const { html } = await weigh(page, new URL(address, serviceUrl).href);
        assert.ok(html <= 40 * KIB, `${name} has ${html} bytes of HTML`);
      }
    } finally {
      await context.close();
    }
  });

  test('work without scripts', async () => {
    await visit({ javaScriptEnabled: false, viewport: { width: 390, height: 844 } }, { run: pages.run }, async (page) => {
      await page.getByRole('button', { name: 'Menu' }).click();
      await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Projects' }).waitFor();
      await page.keyboard.press('Escape');
      await page.getByRole('searchbox').fill('works 7');
      await page.getByRole('button', { name: 'Apply' }).click();
      assert.equal(await page.locator('[data-row]').count(), 1);
      await page.getByRole('link', { name: /works 7.*remove this filter/ }).click();
      await page.getByRole('link', { name: 'Next page' }).click();
      await page.getByText('End of the list').waitFor();
      return [];
    });
  });

  test('answer to the keyboard', async () => {
    await visit({ viewport: { width: 1440, height: 900 } }, { run: pages.run }, async (page) => {
      await page.keyboard.press('/');
      assert.equal(await page.evaluate(() => document.activeElement.getAttribute('name')), 'q');
      await page.keyboard.press('Escape');
      await page.keyboard.press('j');
      await page.keyboard.press('Enter');
      await page.waitForURL('**/test-run-cases/*');
      await page.keyboard.press('t');
      assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'light');
      await page.reload();
      assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'light');
      await page.keyboard.press('g');
      await page.keyboard.press('p');
      await page.waitForURL('**/projects');
      return [];
    });
  });

  test('find what one types, from anywhere', async () => {
    await visit({ viewport: { width: 1440, height: 900 } }, { settings: pages.settings }, async (page) => {
      await page.keyboard.press('Control+k');
      const field = page.getByRole('combobox', { name: 'Search projects, runs, tests and clusters' });
      await field.waitFor();
      await page.getByRole('option', { name: 'Home' }).waitFor();
      await field.fill('coupon');
      await page.getByRole('option', { name: /applies a coupon/ }).first().waitFor();
      await page.keyboard.press('Enter');
      await page.waitForURL('**/test-cases/*');
      return [];
    });
  });

  test('say that they search until there is an answer, and list nothing else meanwhile', async () => {
    // The execution is what was opened lately.
    await visit({ viewport: { width: 1440, height: 900 } }, { execution: pages.execution, settings: pages.settings }, async (page, name) => {
      if (name === 'execution') return [];
      let answerIt;
      const hold = () => new Promise((resolve) => { answerIt = resolve; });
      let held = hold();
      await page.route('**/api/search?*', async (route) => {
        await held;
        await route.continue().catch(() => undefined);
      });
      await page.keyboard.press('Control+k');
      const palette = page.getByRole('dialog', { name: 'Search' });
      const field = palette.getByRole('combobox');
      const note = palette.getByRole('status');
      await palette.getByRole('group', { name: 'Recently opened' }).waitFor();
      await note.waitFor({ state: 'attached' });
      await note.evaluate((element) => {
        window.said = [];
        const hear = () => { if (element.textContent && element.ariaLive !== 'off') window.said.push(element.textContent); };
        new MutationObserver(hear).observe(element, { childList: true, characterData: true, subtree: true });
      });
      const { height } = await palette.boundingBox();
      await field.pressSequentially('coupon');
      await note.getByText('Searching…').waitFor();
      assert.deepEqual(await palette.getByRole('option').allInnerTexts(), [], 'nothing is listed that does not match');
      assert.equal((await palette.boundingBox()).height, height, 'nothing moves');
      const complaints = await complaintsAbout(page, 'the search under way');
      answerIt();
      const found = palette.getByRole('option', { name: /applies a coupon/ });
      await found.first().waitFor();
      await note.getByText('Searching…').waitFor({ state: 'detached' });
      held = hold();
      await field.pressSequentially(' app');
      await note.getByText('Searching…').waitFor();
      assert.ok((await found.count()) > 0, 'what matches still stays');
      answerIt();
      await palette.locator('[role="listbox"]:not([aria-busy])').waitFor();
      assert.ok((await found.count()) > 0);
      assert.deepEqual((await page.evaluate(() => window.said)).filter((text) => text.startsWith('Searching')), ['Searching…'], 'it is said once');
      // One letter asks nobody: what is listed begins with it.
      await field.fill('h');
      assert.deepEqual((await palette.getByRole('option').allInnerTexts()).filter((text) => !/\bh/i.test(text)), []);
      return complaints;
    });
  });

  test('walk through the grid with arrows', async () => {
    await visit({ viewport: { width: 1440, height: 900 } }, { grid: pages['test grid'] }, async (page) => {
      const grid = page.getByRole('region', { name: /Outcome of each test/ });
      await grid.locator('tbody a[tabindex="-1"]').first().waitFor({ state: 'attached' });
      await grid.locator('tbody td a:not([tabindex="-1"])').first().focus();
      await page.keyboard.press('ArrowDown');
      const label = await page.evaluate(() => document.activeElement.getAttribute('aria-label'));
      assert.match(label, /in run \d+/);
      await page.keyboard.press('Enter');
      await page.waitForURL('**/test-run-cases/*');
      return [];
    });
  });

  test('read a chart where the pointer is, and look closer at the part that is drawn across', async () => {
    const key = reporterEnvironment().SERVICE_API_KEY;
    const headers = { 'content-type': 'application/json', ...(key ? { authorization: `Bearer ${key}` } : {}) };
    const chartProject = `charts ${randomUUID().slice(0, 8)}`;
    let sent;
    for (let at = 0; at < 16; at += 1) {
      const testCase = { title: 'pays', location: 'tests/pay.spec.ts:3:1', status: 'passed', duration: 100 + at };
      const testCases = at % 4 === 3 ? [{ ...testCase, status: 'failed', error: 'Error: once' }, { ...testCase, retries: 1 }] : [testCase];
      const startTime = new Date(Date.now() - (16 - at) * 3_600_000).toISOString();
      const body = JSON.stringify({ projectName: chartProject, status: 'passed', startTime, duration: 1_000 * (at + 1), testCases });
      const response = await fetch(new URL('/api/test-runs/submit', serviceUrl), { method: 'POST', headers, body });
      assert.equal(response.status, 200);
      sent = await response.json();
    }
    const [testCase] = (await getJson(`/api/projects/${sent.projectId}/test-cases`)).items;
    const addresses = { performance: `/projects/${sent.projectId}?tab=performance`, 'test case': `/test-cases/${testCase.id}` };
    await visit({ viewport: { width: 1440, height: 900 } }, addresses, async (page, name) => {
      const figure = page.locator('figure.chart').filter({ has: page.locator('.plot-lines') }).first();
      if (name === 'test case') await page.getByRole('heading', { name: 'Flaky score' }).waitFor();
      await figure.scrollIntoViewIfNeeded();
      const { x, y, width, height } = await figure.locator('.plot-lines').boundingBox();
      const at = (part) => page.mouse.move(x + part * width, y + height / 2, { steps: 4 });
      const readout = figure.locator('.readout');
      await at(0.02);
      const first = await readout.innerText();
      await at(0.98);
      const last = await readout.innerText();
      assert.notEqual(first, last);
      const rows = figure.locator('.chart-data tbody tr');
      for (const cell of await rows.first().locator('td').allTextContents()) assert.ok(last.includes(cell.trim()), `${last} tells ${cell}`);
      const ends = figure.locator('.plot-axis');
      const whole = await ends.innerText();
      await at(0.3);
      await page.mouse.down();
      await at(0.7);
      await page.mouse.up();
      assert.notEqual(await ends.innerText(), whole);
      assert.equal(new URL(page.url()).pathname + new URL(page.url()).search, addresses[name], 'what is drawn across is not followed');
      await figure.getByRole('button', { name: 'Show all' }).click();
      assert.equal(await ends.innerText(), whole);
      return [];
    });
  });

  test('save a list whole, page after page, for a spreadsheet', async () => {
    const context = await browser.newContext({ baseURL: serviceUrl, acceptDownloads: true });
    const page = await context.newPage();
    await page.goto(pages['test cases']);
    const shown = await page.locator('table.cases tbody tr').count();
    assert.ok(shown < 64, 'there is a second page');
    const arrives = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Save this list as a CSV file' }).click();
    const file = await arrives;
    assert.match(file.suggestedFilename(), /\.csv$/);
    const lines = readFileSync(await file.path(), 'utf8').trimEnd().split('\r\n');
    assert.equal(lines[0], '\ufeffLast result,Test,Test (more),Pass rate,Executions,Failed,Flaky,Flaky (more),Mean,Latest run');
    assert.equal(lines.length, 1 + 64);
    const found = lines.find((line) => line.includes('applies a coupon'));
    assert.match(found, /^Flaky,Cart › .* › applies a coupon,tests\/cart\.spec\.ts.*,100\.0%,1,0,1,score \d+,\S+ \S+,\d{4}-\d\d-\d\dT[\d:.]+Z$/);
    await page.getByText('64 rows are saved.').waitFor();
    await context.close();
  });

  test('save the test grid with a head for every column', async () => {
    const context = await browser.newContext({ baseURL: serviceUrl, acceptDownloads: true });
    const page = await context.newPage();
    await page.goto(pages['test grid']);
    const runs = await page.locator('table.grid thead tr').last().locator('th').count() - 1;
    const arrives = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Save this list as a CSV file' }).click();
    const [heads, first] = readFileSync(await (await arrives).path(), 'utf8').split('\r\n');
    assert.match(heads, /^\ufeffTest /);
    assert.equal(heads.split(',"Run ').length - 1, runs, heads);
    assert.match(first, /,"?(Passed|Failed|Flaky|Timed out|Skipped) in run \d+/);
    await context.close();
  });

  test('stay at the field that narrows a list, whatever else is chosen above it', async () => {
    await visit({ viewport: { width: 1440, height: 900 } }, { case: pages['test case'] }, async (page) => {
      const status = page.getByRole('combobox', { name: 'Status' });
      await status.focus();
      await status.press('ArrowDown');
      await status.press('Enter');
      await page.waitForURL(/status=/);
      await page.waitForFunction(() => document.activeElement?.getAttribute('name') === 'status');
      return complaintsAbout(page, 'the narrowed history');
    });
  });

  test('show the screenshot of the failed attempt', async () => {
    await visit({ viewport: { width: 1440, height: 900 } }, { execution: pages.execution }, async (page) => {
      const image = page.getByRole('img', { name: 'screenshot, attempt 1' });
      await image.scrollIntoViewIfNeeded();
      const isLoaded = (element) => element.complete && element.naturalWidth > 0;
      await page.waitForFunction(isLoaded, await image.elementHandle());
      await image.click();
      const dialog = page.getByRole('dialog', { name: 'Picture' });
      await page.waitForFunction(isLoaded, await dialog.getByRole('img').elementHandle());
      const complaints = await complaintsAbout(page, 'the picture over the page');
      assert.equal(page.context().pages().length, 1, 'it opens in its place');
      await page.keyboard.press('Escape');
      await dialog.waitFor({ state: 'hidden' });
      assert.equal(await page.evaluate(() => document.activeElement.matches('.shots a')), true, 'one is where one was');
      return complaints;
    });
  });

  test('show the page on which a test of a cluster failed last', async () => {
    await visit({ viewport: { width: 1440, height: 900 } }, { cluster: pages.cluster }, async (page) => {
      const row = page.getByRole('row').filter({ hasText: 'Error: expected' });
      await row.getByRole('img', { name: /when it failed last$/ }).click();
      const dialog = page.getByRole('dialog', { name: 'Picture' });
      await page.waitForFunction((element) => element.naturalWidth > 0, await dialog.getByRole('img').elementHandle());
      const complaints = await complaintsAbout(page, 'the picture over the cluster');
      await page.keyboard.press('Escape');
      await dialog.waitFor({ state: 'hidden' });
      return complaints;
    });
  });

  test('lead back to the page of a list one came from', async () => {
    await visit({ viewport: { width: 1440, height: 900 } }, { run: `${pages.run}?limit=20` }, async (page) => {
      const second = () => page.getByRole('link', { name: 'Previous page' });
      assert.equal(await second().count(), 0);
      await page.getByRole('link', { name: 'Next page' }).click();
      await second().waitFor();
      await page.getByRole('link', { name: 'Next page' }).click();
      await page.waitForFunction(() => document.querySelectorAll('[data-row]').length > 0);
      const third = page.url();
      await second().click();
      await page.waitForURL((url) => url.href !== third);
      await second().click();
      await page.waitForURL(/limit=20$/);
      return [];
    });
  });

  test('copy the link to a list where the browser keeps its clipboard to itself', async () => {
    // As on an address without https.
    const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
    await context.addInitScript(() => Object.defineProperty(Navigator.prototype, 'clipboard', { get: () => undefined }));
    const page = await context.newPage();
    await page.goto(new URL(pages.project, serviceUrl).href);
    await page.evaluate(() => document.addEventListener('copy', () => { window.copied = getSelection().toString() || document.activeElement.value; }));
    await page.getByRole('button', { name: 'Copy the link to this view' }).click();
    await page.getByText('Link copied.').waitFor();
    assert.equal(await page.evaluate(() => window.copied), page.url());
    await context.close();
  });

  test('say what is not there, with the id of the request', async () => {
    for (const address of ['/projects/999999999', '/test-runs/999999999', '/test-run-cases/999999999', '/test-cases/999999999']) {
      const response = await fetch(new URL(address, serviceUrl), { headers: { accept: 'text/html' } });
      const html = await response.text();
      assert.equal(response.status, 404, address);
      assert.match(html, /There is no .* 999999999/);
      assert.ok(html.includes(response.headers.get('x-request-id')), address);
      assert.match(html, /aria-label="Main"/);
    }
  });
});
