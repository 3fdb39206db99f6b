/**
 * What pages cost the people who open them, as a table: bytes of a first visit and of the next
 * page, HTML of each page, how far it jumps while it loads, and how long a page of a run of 5,000
 * tests takes from a key or a click to the next picture. Needs `CALLBOARD_URL` of a service that
 * `tests/demo/demo.mjs` has filled; `CHROMIUM_PATH` when Chromium is not at /usr/bin/chromium.
 * Figures of a busy machine say nothing.
 */
import { chromium } from '@playwright/test';
import { demoPages } from './support/demo-pages.mjs';
import { watchJumps } from './support/look.mjs';
import { serviceUrl } from './support/service.mjs';
import { weigh } from './support/weight.mjs';

if (!serviceUrl) {
  throw new Error('CALLBOARD_URL must name the running service, for instance CALLBOARD_URL=http://127.0.0.1:3000');
}

const TESTS = 5_000;
const at = (path) => new URL(path, serviceUrl).href;
const kilobytes = (bytes) => `${(bytes / 1024).toFixed(1)} KB`;

/** A run whose page is as long as pages get. */
async function sendLargeRun() {
  const testCases = Array.from({ length: TESTS }, (_, index) => ({
    title: `works ${index}`, location: `tests/part-${index % 50}.spec.ts:${10 + Math.floor(index / 50)}:3`, suitePath: ['Large'], duration: 40 + (index % 90),
    status: index % 50 === 7 ? 'failed' : 'passed', ...(index % 50 === 7 ? { error: `Error: expected ${index} to be ready` } : {}),
    browser: { projectName: 'chromium', browserName: 'chromium' },
  }));
  const body = { projectName: 'large suite', status: 'failed', startTime: new Date().toISOString(), duration: 600_000, testCases };
  const answer = await fetch(at('/api/test-runs/submit'), { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`the run was answered ${answer.status}: ${await answer.text()}`);
  return (await answer.json()).testRunId;
}

/** The longest time from an input to the next picture, by the browser's own measure. */
async function slowestInteraction(page, interact) {
  await page.evaluate(() => {
    window.interactions = [];
    new PerformanceObserver((list) => {
      for (const { interactionId, duration, name } of list.getEntries()) if (interactionId) window.interactions.push({ duration, name });
    }).observe({ type: 'event', durationThreshold: 16, buffered: false });
  });
  await interact();
  await page.evaluate(() => new Promise((done) => { requestAnimationFrame(() => setTimeout(done, 200)); }));
  return page.evaluate(() => Math.max(0, ...window.interactions.map(({ duration }) => duration)));
}

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM_PATH ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
});
try {
  const pages = await demoPages();
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  await watchJumps(context);
  const page = await context.newPage();
  const rows = [];
  for (const [name, { address, act }] of Object.entries(pages)) {
    if (act) continue;
    const { bytes, html } = await weigh(page, at(address));
    const jumps = await page.evaluate(() => window.jumps.length);
    rows.push({ page: name, transferred: kilobytes(bytes), html: kilobytes(html), jumps });
  }
  console.table(rows);

  const run = `/test-runs/${await sendLargeRun()}`;
  const actions = {
    'move with j and k': async () => { for (const key of ['j', 'j', 'k', 'j']) await page.keyboard.press(key); },
    'open the search and type': async () => { await page.keyboard.press('Control+k'); await page.locator('#palette input').pressSequentially('works', { delay: 40 }); await page.keyboard.press('Escape'); },
    'open the shortcuts': async () => { await page.keyboard.press('?'); await page.keyboard.press('Escape'); },
    'change the theme': async () => { await page.keyboard.press('t'); },
    'type into the filter': async () => { await page.locator('[data-search]').pressSequentially('works 12', { delay: 40 }); },
  };
  const slow = [];
  for (const tab of ['', '?sort=file', '?tab=timeline']) {
    await page.goto(at(run + tab));
    for (const [action, interact] of Object.entries(actions)) {
      if (action === 'type into the filter' && (await page.locator('[data-search]').count()) === 0) continue;
      slow.push({ page: `run of ${TESTS} tests${tab}`, action, 'slowest, ms': await slowestInteraction(page, interact) });
    }
  }
  console.table(slow);
} finally {
  await browser.close();
}
