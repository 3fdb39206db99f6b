/**
 * Opens stored traces from the dashboard in the service's own trace viewer, in a real browser
 * that holds a session of the dashboard: the viewer shows the trace, and has no way to what the
 * session may see. Needs `CALLBOARD_URL`; `CHROMIUM_PATH` when Chromium is not at
 * /usr/bin/chromium. Where the service asks who is calling and has no accounts yet, the browser
 * is that of its first administrator.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { chromium } from '@playwright/test';
import { firstAdministrator } from './support/first-administrator.mjs';
import { THEMES, complaintsAbout } from './support/look.mjs';
import { reportArchive } from './support/report-archive.mjs';
import { get, getAll, getJson, serviceUrl, upload } from './support/service.mjs';

if (!serviceUrl) {
  throw new Error('CALLBOARD_URL must name the running service, for instance CALLBOARD_URL=http://127.0.0.1:3000');
}

const TRACE = await readFile(new URL('../data/traces/playwright-1.65/renamed-button.zip', import.meta.url));
const LOCATION = 'tests/shop.spec.ts:12:5';

const LAUNCH = {
  executablePath: process.env.CHROMIUM_PATH ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
};

let browser;
let context;
let run;
let execution;
let elsewhere;
before(async () => {
  const { needsSetup } = await (await fetch(new URL('/api/auth/setup', serviceUrl))).json();
  const signedIn = needsSetup ? await firstAdministrator(serviceUrl) : undefined;
  if (signedIn) process.env.CALLBOARD_API_KEY = signedIn.apiKey;
  const tests = [{ title: 'buys tea', location: LOCATION, status: 'failed', duration: 900, error: 'Error: no such button' }];
  run = await upload({ projectName: `viewer ${randomUUID()}`, testCases: tests }, {
    trace_0: ['trace.zip', TRACE],
    report_html: ['report.gz', reportArchive({
      'index.html': `<!doctype html><title>report</title><a href="trace/index.html">trace</a>
        <script>document.querySelector('a').href += '?trace=' + encodeURIComponent(new URL('data/trace.zip', location.href))</script>`,
      'data/trace.zip': TRACE,
      'trace/index.html': '<!doctype html><title>a copy of the viewer</title>',
      'trace/sw.bundle.js': '/* a service worker */',
    })],
  });
  [execution] = await getAll(`/api/test-runs/${run.runId}/executions`);
  browser = await chromium.launch(LAUNCH);
  context = await browser.newContext();
  if (signedIn) await context.addCookies([{ ...signedIn.cookie, url: serviceUrl, sameSite: 'Lax', httpOnly: true }]);
  // A foreign host that says what it was asked for, and lets itself be read.
  const asked = [];
  const server = http.createServer((request, response) => {
    asked.push(request.url);
    response.writeHead(200, { 'access-control-allow-origin': '*', 'content-type': 'application/zip' }).end(TRACE);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  elsewhere = { server, asked, url: `http://127.0.0.1:${server.address().port}/trace.zip` };
});
after(async () => {
  await browser?.close();
  elsewhere?.server.closeAllConnections();
  elsewhere?.server.close();
});

/** Opens the trace as a person does, from the page of the execution, in a new tab. */
async function openFromDashboard() {
  const page = await context.newPage();
  await page.goto(new URL(`/test-run-cases/${execution.id}`, serviceUrl).href);
  const opened = page.waitForEvent('popup');
  await page.getByRole('listitem').filter({ hasText: 'show-trace' }).getByRole('link', { name: 'Open in a new tab' }).click();
  const viewer = await opened;
  await actionsOf(viewer);
  return { page, viewer };
}

async function actionsOf(viewer) {
  const actions = viewer.getByTestId('actions-tree').getByRole('treeitem');
  await actions.first().waitFor();
  return (await actions.allInnerTexts()).join('\n');
}

describe('a stored trace', () => {
  test('opens in the viewer at a click and shows what the test did', async () => {
    const complaints = [];
    const { page, viewer } = await openFromDashboard();
    viewer.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
    const origin = new URL(viewer.url()).origin;
    assert.notEqual(origin, new URL(serviceUrl).origin, 'it opens on another origin');
    assert.match(await actionsOf(viewer), /Navigate|goto/i);
    await viewer.reload();
    assert.match(await actionsOf(viewer), /Click|click/, 'the worker that is there by now shows it too');
    await viewer.getByTestId('actions-tree').getByRole('treeitem').filter({ hasText: /click/i }).first().click();
    const snapshot = viewer.frameLocator('iframe.snapshot-visible');
    await snapshot.locator('button').first().waitFor();
    assert.deepEqual(complaints, []);
    await viewer.close();
    await page.close();
  });

  test('opens inside of the page of its execution', async (t) => {
    // Private windows, and some distributions' browsers anywhere, do what the next test is about.
    const profile = await mkdtemp(join(tmpdir(), 'profile-'));
    await mkdir(join(profile, 'Default'));
    const preferences = { profile: { cookie_controls_mode: 0, block_third_party_cookies: false } };
    await writeFile(join(profile, 'Default', 'Preferences'), JSON.stringify(preferences));
    const own = await chromium.launchPersistentContext(profile, LAUNCH);
    // A browser that is left open keeps these checks from ending.
    t.after(async () => {
      await own.close();
      await rm(profile, { recursive: true, force: true });
    });
    await own.addCookies(await context.cookies());
    const page = await own.newPage();
    await page.goto(new URL(`/test-run-cases/${execution.id}`, serviceUrl).href);
    await page.getByRole('link', { name: 'Open trace' }).click();
    const place = page.getByRole('region', { name: 'Trace of attempt 1' });
    const viewer = await (await place.locator('iframe').elementHandle()).contentFrame();
    assert.match(await actionsOf(viewer), /Navigate|goto/i);
    assert.notEqual(new URL(viewer.url()).origin, new URL(serviceUrl).origin, 'it is on another origin');
    const reach = await viewer.evaluate(() => {
      try {
        return String(window.parent.document.title);
      } catch (error) {
        return error.name;
      }
    });
    assert.equal(reach, 'SecurityError', 'it has no way to the page around it');
    for (const theme of THEMES) {
      await page.emulateMedia({ colorScheme: theme, reducedMotion: 'reduce' });
      assert.deepEqual(await complaintsAbout(page, `an open trace, ${theme}`), []);
    }
    await place.getByRole('link', { name: 'Close' }).click();
    await page.getByRole('heading', { name: 'Traces' }).waitFor();
    assert.equal(await place.count(), 0);
  });

  test('says where it opens when the browser keeps nothing for it inside of a page', async () => {
    const page = await context.newPage();
    await page.goto(new URL(`/test-run-cases/${execution.id}`, serviceUrl).href);
    await page.getByRole('link', { name: 'Open trace' }).click();
    await page.frameLocator('#trace iframe').getByText('Open the trace in a new tab').waitFor();
    const opened = page.waitForEvent('popup');
    await page.locator('#trace').getByRole('link', { name: 'Open in a new tab' }).click();
    assert.match(await actionsOf(await opened), /Navigate|goto/i);
    await (await opened).close();
    await page.close();
  });

  test('tells its requests and its page where somebody comes near them', async () => {
    const page = await context.newPage();
    let answer;
    const answered = new Promise((resolve) => { answer = resolve; });
    await page.route(/evidence=trace/, async (route) => {
      await answered;
      await route.continue();
    });
    await page.goto(new URL(`/test-run-cases/${execution.id}`, serviceUrl).href);
    const told = page.getByRole('region', { name: 'From the trace' });
    await told.scrollIntoViewIfNeeded();
    await page.locator('#told[aria-busy="true"]').waitFor();
    // A large trace takes its time, and the page is looked at until then.
    for (const theme of THEMES) {
      await page.emulateMedia({ colorScheme: theme, reducedMotion: 'reduce' });
      assert.deepEqual(await complaintsAbout(page, `a trace that is being read, ${theme}`), []);
    }
    answer();
    await told.getByRole('heading', { name: 'Page at the failure' }).waitFor();
    const plain = await (await browser.newContext({ javaScriptEnabled: false, storageState: await context.storageState() })).newPage();
    await plain.goto(new URL(`/test-run-cases/${execution.id}`, serviceUrl).href);
    await plain.getByRole('link', { name: /^Show requests/ }).click();
    await plain.getByRole('heading', { name: 'Page at the failure' }).waitFor();
    await plain.context().close();
    await page.close();
  });

  test('is named with its viewer by REST', async () => {
    const { items: [trace] } = await getJson(`/api/test-run-cases/${execution.id}/traces`);
    const answer = await get(trace.viewerUrl, { redirect: 'manual' });
    assert.equal(answer.status, 302);
    const viewer = new URL(answer.headers.get('location'));
    assert.equal(viewer.pathname, '/viewer/index.html');
    assert.ok(viewer.searchParams.get('trace').startsWith(`${viewer.origin}/f/`), 'it opens a grant of its own origin');
  });

  test('opens from inside of a report, which may bring no worker of its own', async () => {
    const page = await context.newPage();
    const { path } = run.reports[0];
    await page.goto(new URL(`/api/files/${path}`, serviceUrl).href);
    await page.getByRole('link', { name: 'trace' }).click();
    await page.waitForURL(/\/viewer\/index\.html/);
    assert.match(await actionsOf(page), /Navigate|goto/i);
    await page.close();
  });
});

describe('the viewer', () => {
  test('has nothing of the session that opened it', async () => {
    const { page, viewer } = await openFromDashboard();
    const got = await viewer.evaluate(async (dashboard) => {
      const read = (path, options) => fetch(`${dashboard}${path}`, { credentials: 'include', ...options })
        .then(async (answer) => `read ${await answer.text()}`, () => 'nothing');
      const form = new FormData();
      form.set('projectName', 'stolen by a viewer');
      form.set('testRun', JSON.stringify({ status: 'passed', startTime: '2026-01-01T00:00:00Z', duration: 1 }));
      return {
        cookie: document.cookie || 'nothing',
        opener: String(window.opener),
        projects: await read('/api/projects'),
        upload: await read('/api/test-runs/upload', { method: 'POST', body: form }),
        ownOrigin: (await fetch('/api/projects', { credentials: 'include' })).status,
      };
    }, new URL(serviceUrl).origin);
    assert.deepEqual(got, { cookie: 'nothing', opener: 'null', projects: 'nothing', upload: 'nothing', ownOrigin: 404 });
    const { items } = await getJson('/api/projects?q=stolen%20by%20a%20viewer');
    assert.deepEqual(items, []);
    await viewer.close();
    await page.close();
  });

  test('opens no trace but those of this service', async () => {
    const { page, viewer } = await openFromDashboard();
    for (const foreign of [elsewhere.url, new URL('/api/projects', serviceUrl).href]) {
      const address = new URL(viewer.url());
      address.searchParams.set('trace', foreign);
      const answer = await viewer.evaluate((url) => fetch(url).then((got) => got.status), address.href);
      assert.equal(answer, 400, foreign);
      // What the page itself would ask its worker for.
      const loaded = await viewer.evaluate((url) => fetch(`contexts?trace=${encodeURIComponent(url)}`).then((got) => got.ok), foreign);
      assert.equal(loaded, false, foreign);
    }
    assert.deepEqual(elsewhere.asked, [], 'not even the worker asks a foreign host');
    await viewer.close();
    await page.close();
  });

  test('is not on the origin of the dashboard', async () => {
    assert.equal((await get('/viewer/index.html')).status, 404);
  });
});
