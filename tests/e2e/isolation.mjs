/**
 * Opens an uploaded report that attacks the dashboard, in a real browser that holds a
 * session cookie of the dashboard: the report works, and the attack gets nothing. Needs
 * `CALLBOARD_URL`; `CHROMIUM_PATH` when Chromium is not at /usr/bin/chromium. Where the service
 * asks who is calling and has no accounts yet, the browser is that of its first administrator.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { chromium } from '@playwright/test';
import { firstAdministrator } from './support/first-administrator.mjs';
import { reportArchive } from './support/report-archive.mjs';
import { get, getJson, serviceUrl, upload } from './support/service.mjs';

if (!serviceUrl) {
  throw new Error('CALLBOARD_URL must name the running service, for instance CALLBOARD_URL=http://127.0.0.1:3000');
}

const PIXEL = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==', 'base64');
const SECRET = 'session-of-the-user';

/** What the report tries; every answer but "nothing" is a hole. */
function attack(dashboard, stolenName) {
  const read = (request) => request.then((answer) => answer.text()).then((text) => `read ${text}`, () => 'nothing');
  const form = new FormData();
  form.set('projectName', stolenName);
  form.set('testRun', JSON.stringify({ status: 'passed', startTime: '2026-01-01T00:00:00Z', duration: 1 }));
  const json = (body) => ({ method: 'POST', credentials: 'include', headers: { 'content-type': 'text/plain' }, body: JSON.stringify(body) });
  const attempts = {
    cookie: () => document.cookie || 'nothing',
    projects: () => read(fetch(`${dashboard}/api/projects`, { credentials: 'include' })),
    mcp: () => read(fetch(`${dashboard}/mcp`, json({ jsonrpc: '2.0', id: 1, method: 'tools/list' }))),
    upload: () => read(fetch(`${dashboard}/api/test-runs/upload`, { method: 'POST', credentials: 'include', body: form })),
    uploadUnread: () => fetch(`${dashboard}/api/test-runs/upload`, { method: 'POST', credentials: 'include', mode: 'no-cors', body: form })
      .then(() => 'nothing', () => 'nothing'),
    script: () => new Promise((resolve) => {
      const script = document.createElement('script');
      script.onload = () => resolve('loaded');
      script.onerror = () => resolve('nothing');
      script.src = `${dashboard}/api/projects`;
      document.head.append(script);
    }),
    frame: () => new Promise((resolve) => {
      const frame = document.createElement('iframe');
      frame.onload = () => resolve(frame.contentDocument?.body?.textContent || 'nothing');
      frame.src = `${dashboard}/api/projects`;
      document.body.append(frame);
      setTimeout(() => resolve('nothing'), 2000);
    }),
    opener: () => (window.opener ? window.opener.document.cookie : 'nothing'),
    worker: () => navigator.serviceWorker.register('worker.js').then(() => 'registered', () => 'nothing'),
  };
  const outcomes = Object.entries(attempts).map(async ([name, attempt]) => {
    try {
      return [name, await attempt()];
    } catch {
      return [name, 'nothing'];
    }
  });
  Promise.all(outcomes).then((all) => { window.outcomes = Object.fromEntries(all); });
}

function reportPage(dashboard, stolenName) {
  return `<!doctype html><meta charset="utf-8"><title>report</title><body>
    <img src="data/pixel.png"><script src="data/part.js"></script>
    <script>localStorage.setItem('theme', 'dark'); window.theme = localStorage.getItem('theme');</script>
    <script>(${attack})(${JSON.stringify(dashboard)}, ${JSON.stringify(stolenName)})</script>`;
}

const DRAWING = `<svg xmlns="http://www.w3.org/2000/svg"><foreignObject width="9" height="9"><img xmlns="http://www.w3.org/1999/xhtml"
  src="x" onerror="document.cookie='drawn=1'"/></foreignObject><script>document.cookie = 'drawn=1'</script></svg>`;

/** The service under each name of this machine that a browser may know it by. */
function dashboards() {
  const url = new URL(serviceUrl);
  const names = ['localhost', '127.0.0.1'];
  return names.includes(url.hostname) ? names.map((name) => `${url.protocol}//${name}:${url.port}`) : [url.origin];
}

/** What a browser records of a canvas, as a test runner records a page. */
async function recordedVideo(page) {
  const bytes = await page.evaluate(async () => {
    const canvas = Object.assign(document.createElement('canvas'), { width: 160, height: 90 });
    const pen = canvas.getContext('2d');
    const recorder = new MediaRecorder(canvas.captureStream(25), { mimeType: 'video/webm;codecs=vp8' });
    const parts = [];
    recorder.addEventListener('dataavailable', ({ data }) => parts.push(data));
    const ends = new Promise((resolve) => { recorder.addEventListener('stop', resolve, { once: true }); });
    recorder.start();
    for (let frame = 0; frame < 25; frame += 1) {
      pen.fillStyle = `hsl(${frame * 14} 80% 50%)`;
      pen.fillRect(0, 0, 160, 90);
      await new Promise((resolve) => { setTimeout(resolve, 40); });
    }
    recorder.stop();
    await ends;
    return [...new Uint8Array(await new Blob(parts).arrayBuffer())];
  });
  return Buffer.from(bytes);
}

let browser;
let signedIn;
before(async () => {
  const { needsSetup } = await (await fetch(new URL('/api/auth/setup', serviceUrl))).json();
  if (needsSetup) {
    signedIn = await firstAdministrator(serviceUrl);
    process.env.CALLBOARD_API_KEY = signedIn.apiKey;
  }
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM_PATH ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
  });
});
after(() => browser?.close());

for (const dashboard of dashboards()) {
  describe(`a report that attacks ${dashboard}`, () => {
    const stolenName = `stolen ${randomUUID()}`;
    let folder;
    let runId;
    let context;

    before(async () => {
      const archive = reportArchive({
        'index.html': reportPage(dashboard, stolenName),
        'drawing.svg': DRAWING,
        'data/pixel.png': PIXEL,
        'data/part.js': 'window.partRan = true;',
        'worker.js': '/* a service worker */',
      });
      const answer = await upload({ projectName: `isolation ${randomUUID()}` }, { report_html: ['report.gz', archive] });
      runId = answer.runId;
      folder = answer.reports[0].path.replace(/index\.html$/, '');
      context = await browser.newContext();
      const real = signedIn ? [{ ...signedIn.cookie, url: dashboard, sameSite: 'Lax', httpOnly: true }] : [];
      await context.addCookies([{ name: 'session', value: SECRET, url: dashboard, sameSite: 'Lax' }, ...real]);
    });
    after(() => context?.close());

    /** Where the service sends a browser that asks the dashboard for an entry. */
    const openedAt = async (entry) => {
      const answer = await get(`${dashboard}/api/files/${folder}${entry}`, { redirect: 'manual' });
      assert.equal(answer.status, 302);
      return new URL(answer.headers.get('location'));
    };

    /** Opens the report and answers what its attack got. */
    const attackFrom = async (address) => {
      const page = await context.newPage();
      const sentCookies = [];
      page.on('request', async (request) => {
        const headers = await request.allHeaders().catch(() => ({}));
        // The page itself comes with it from the dashboard's own host, where it is not looked at.
        if (headers.cookie?.includes(SECRET) && request.url() !== address.href) sentCookies.push(request.url());
      });
      try {
        await page.goto(address.href);
        await page.waitForFunction(() => window.outcomes);
        const works = await page.evaluate(() => ({
          image: document.images[0].naturalWidth, part: window.partRan, theme: window.theme, layout: document.compatMode,
        }));
        assert.deepEqual(works, { image: 1, part: true, theme: 'dark', layout: 'CSS1Compat' }, 'the report works');
        return { outcomes: await page.evaluate(() => window.outcomes), sentCookies };
      } finally {
        await page.close();
      }
    };

    const getsNothing = async ({ outcomes, sentCookies }) => {
      assert.equal(Object.keys(outcomes).length, 9);
      assert.deepEqual(Object.entries(outcomes).filter(([, outcome]) => outcome !== 'nothing'), []);
      assert.deepEqual(sentCookies, [], 'the session is sent along with nothing the report asks for');
      const found = await getJson(`/api/projects?q=${encodeURIComponent(stolenName)}`);
      assert.deepEqual(found.items.filter((project) => project.name === stolenName), [], 'nothing was stored');
    };

    test('would get everything from a page of the dashboard', async () => {
      const page = await context.newPage();
      await page.goto(`${dashboard}/docs`);
      await page.evaluate(`(${attack})(${JSON.stringify(dashboard)}, ${JSON.stringify(`control ${stolenName}`)})`);
      await page.waitForFunction(() => window.outcomes);
      const { cookie, projects, upload: uploaded } = await page.evaluate(() => window.outcomes);
      assert.match(cookie, new RegExp(SECRET));
      assert.match(projects, /^read /);
      assert.match(uploaded, /^read .*"success":true/);
      await page.close();
    });

    test('gets nothing where the dashboard opens it', async () => {
      await getsNothing(await attackFrom(await openedAt('index.html')));
    });

    test('gets nothing inside of a page, and works where the browser keeps nothing for it there', async (t) => {
      const page = await context.newPage();
      await page.goto(`${dashboard}/test-runs/${runId}?tab=reports`);
      const link = page.getByRole('link', { name: 'HTML Report' });
      if ((await link.getAttribute('target')) === '_blank') {
        await page.close();
        t.skip('on an origin of its own it is shown only inside of pages whose address the service was told');
        return;
      }
      await link.click();
      const report = await (await page.locator('#report iframe').elementHandle()).contentFrame();
      await report.waitForFunction(() => window.outcomes);
      assert.equal(await report.evaluate(() => window.theme), 'dark');
      await getsNothing({ outcomes: await report.evaluate(() => window.outcomes), sentCookies: [] });
      await page.close();
    });

    test('gets nothing on the origin of the dashboard itself', async () => {
      const { pathname } = await openedAt('index.html');
      await getsNothing(await attackFrom(new URL(pathname, dashboard)));
    });

    test('draws nothing with the powers of the dashboard', async () => {
      const { pathname } = await openedAt('drawing.svg');
      for (const address of [`${dashboard}/api/files/${folder}drawing.svg`, `${dashboard}${pathname}`]) {
        const page = await context.newPage();
        // Through the main door a drawing is a download, which ends a navigation.
        await page.goto(address).catch((error) => assert.match(String(error), /Download is starting|ERR_ABORTED/));
        await page.waitForTimeout(200);
        await page.close();
      }
      const drawn = (await context.cookies(dashboard)).filter((cookie) => cookie.name === 'drawn');
      assert.deepEqual(drawn, []);
    });
  });
}

describe('a video of a failed test', () => {
  const SCRIPT = `<!doctype html><script>document.cookie = 'played=1'</script>`;
  let context;
  let execution;
  let files;
  let video;

  before(async () => {
    context = await browser.newContext();
    const real = signedIn ? [{ ...signedIn.cookie, url: serviceUrl, sameSite: 'Lax', httpOnly: true }] : [];
    await context.addCookies([{ name: 'session', value: SECRET, url: serviceUrl, sameSite: 'Lax' }, ...real]);
    const studio = await context.newPage();
    video = await recordedVideo(studio);
    await studio.close();
    const meta = (name) => ({ name, contentType: 'video/webm', originalName: `${name}.webm` });
    const form = new FormData();
    form.set('projectName', `video ${randomUUID()}`);
    form.set('testRun', JSON.stringify({ status: 'failed', startTime: new Date().toISOString(), duration: 900 }));
    form.set('testCases', JSON.stringify([{ title: 'pays', location: 'tests/pay.spec.ts:3:1', status: 'failed', duration: 900, error: 'Error: expected 200' }]));
    // The second one only says that it is a video.
    form.set('attach_meta_0', JSON.stringify([meta('video'), meta('disguised')]));
    form.append('attach_file_0', new Blob([video], { type: 'video/webm' }), 'video.webm');
    form.append('attach_file_0', new Blob([SCRIPT], { type: 'video/webm' }), 'disguised.webm');
    const headers = signedIn ? { authorization: `Bearer ${signedIn.apiKey}` } : {};
    const answer = await fetch(new URL('/api/test-runs/upload', serviceUrl), { method: 'POST', headers, body: form });
    assert.equal(answer.status, 200, await answer.clone().text());
    const { runId } = await answer.json();
    [execution] = (await getJson(`/api/test-runs/${runId}/executions`)).items;
    files = (await getJson(`/api/test-run-cases/${execution.id}/files`)).items;
  });
  after(() => context?.close());

  const named = (name) => files.find((file) => file.name === name);

  test('plays on the page of its test, from any moment of it', async () => {
    const page = await context.newPage();
    const asked = [];
    page.on('response', (response) => {
      if (response.url().endsWith(`/api/files/${named('video').id}`)) asked.push(response);
    });
    await page.goto(new URL(`/test-run-cases/${execution.id}`, serviceUrl).href);
    const player = page.getByLabel('video, attempt 1');
    await player.scrollIntoViewIfNeeded();
    const shown = await player.evaluate(async (element) => {
      element.muted = true;
      await element.play();
      await new Promise((resolve) => { element.addEventListener('timeupdate', resolve, { once: true }); });
      return { width: element.videoWidth, height: element.videoHeight, isAhead: element.currentTime > 0, error: element.error };
    });
    assert.deepEqual(shown, { width: 160, height: 90, isAhead: true, error: null });
    assert.equal(context.pages().length, 1, 'it plays in its place');
    for (const response of asked) {
      const headers = await response.allHeaders();
      assert.equal(response.status(), 206, 'the player asks for parts');
      assert.deepEqual([headers['content-type'], headers['x-content-type-options']], ['video/webm', 'nosniff']);
    }
    assert.ok(asked.length > 0);
    const saved = page.waitForEvent('download');
    await page.getByRole('listitem').filter({ has: player }).getByRole('link', { name: 'Download' }).click();
    assert.equal((await saved).suggestedFilename(), 'video.webm');
    await page.close();
  });

  test('is answered in parts, byte by byte', async () => {
    const path = `/api/files/${named('video').id}`;
    const headers = { range: 'bytes=10-19', ...(signedIn ? { authorization: `Bearer ${signedIn.apiKey}` } : {}) };
    const part = await fetch(new URL(path, serviceUrl), { headers });
    assert.deepEqual([part.status, part.headers.get('content-range')], [206, `bytes 10-19/${video.length}`]);
    assert.deepEqual(Buffer.from(await part.arrayBuffer()), video.subarray(10, 20));
    const whole = await get(path);
    assert.deepEqual([whole.status, whole.headers.get('accept-ranges')], [200, 'bytes']);
    assert.match(whole.headers.get('content-security-policy'), /default-src 'none'/);
    assert.deepEqual(Buffer.from(await whole.arrayBuffer()), video);
  });

  test('that is none runs nothing, wherever it is opened', async () => {
    const page = await context.newPage();
    await page.goto(new URL(`/test-run-cases/${execution.id}`, serviceUrl).href);
    for (const address of [`/api/files/${named('disguised').id}`, `/api/files/${named('disguised').id}?redirect=never`]) {
      await page.goto(new URL(address, serviceUrl).href).catch((error) => assert.match(String(error), /Download is starting|ERR_ABORTED/));
      await page.waitForTimeout(200);
    }
    const played = (await context.cookies(serviceUrl)).filter((cookie) => cookie.name === 'played');
    assert.deepEqual(played, []);
    await page.close();
  });
});
