/**
 * Watches runs in real Chromium while they go on: results arrive on the pages by themselves, in
 * every browser that looks, and go on arriving when the line to the service breaks. Needs
 * `CALLBOARD_URL`; `CHROMIUM_PATH` when Chromium is not at /usr/bin/chromium.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { chromium } from '@playwright/test';
import { cuttableLine } from './support/cuttable-line.mjs';
import { complaintsAbout, WIDTHS } from './support/look.mjs';
import { getJson, serviceUrl } from './support/service.mjs';

if (!serviceUrl) {
  throw new Error('CALLBOARD_URL must name the running service, for instance CALLBOARD_URL=http://127.0.0.1:3000');
}

let browser;
before(async () => {
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM_PATH ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
  });
});
after(() => browser?.close());

async function send(path, body) {
  const answer = await fetch(new URL(path, serviceUrl), {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body),
  });
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  return JSON.parse(text);
}

/** A run that is sent step by step, as a reporter does. */
async function startRun(plannedTests, projectName = `live ${randomUUID()}`) {
  const { runId, streamToken } = await send('/api/test-runs/start', {
    projectName, startTime: new Date().toISOString(), plannedTests,
  });
  const browser = { projectName: 'chromium', browserName: 'chromium' };
  const where = (title) => ({ title, location: `tests/${title.replaceAll(' ', '-')}.spec.ts:3:1`, suitePath: ['Shop'], browser });
  const events = (...testCases) => send(`/api/test-runs/${runId}/events`, { streamToken, testCases });
  return {
    path: `/test-runs/${runId}`,
    begin: (title, workerIndex = 0) => events({ type: 'begin', ...where(title), workerIndex, startedAt: Date.now() }),
    step: (title, parentTitle, workerIndex = 0) => events({
      type: 'step-begin', title, parentTitle, stepCategory: 'test.step', workerIndex, startedAt: Date.now(),
    }),
    end: (title, status, more = {}) => events({
      type: 'complete', ...where(title), status, duration: 120, retries: 0, workerIndex: 0, startedAt: Date.now(), ...more,
    }),
    finish: (status) => send(`/api/test-runs/${runId}/finish`, { streamToken, status, duration: 1000 }),
  };
}

/** A page that is never loaded again: reloading would lose the mark. */
async function look(path, origin = serviceUrl, options = {}) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const complaints = [];
  page.on('pageerror', (error) => complaints.push(String(error)));
  await page.goto(new URL(path, origin).href);
  await page.evaluate(() => { window.isSamePage = true; });
  return {
    page,
    row: (title) => page.locator('[data-row]').filter({ hasText: title }).first(),
    async close() {
      assert.equal(await page.evaluate(() => window.isSamePage), true, 'nothing was reloaded');
      assert.deepEqual(complaints, []);
      await context.close();
    },
  };
}

describe('the page of a run that goes on', () => {
  test('fills in by itself in every browser that looks, and says when it is over', async () => {
    const run = await startRun(3);
    const first = await look(run.path);
    await first.page.getByText('No results yet').waitFor();
    await run.begin('adds tea');
    await run.step('fill in the amount', 'adds tea');
    await first.page.locator('[data-live-workers]').getByText('fill in the amount').waitFor();

    const second = await look(run.path, serviceUrl, { colorScheme: 'dark', viewport: { width: WIDTHS.phone, height: 844 } });
    await second.page.locator('[data-live-workers]').getByText('adds tea').waitFor();
    await second.page.locator('[data-live-workers]').getByText('fill in the amount').waitFor();
    for (const { page } of [first, second]) assert.deepEqual(await complaintsAbout(page, 'a run that goes on'), []);

    await run.end('adds tea', 'passed');
    for (const { page, row } of [first, second]) {
      await row('adds tea').waitFor();
      await page.locator('[data-live-workers]').getByText('adds tea').waitFor({ state: 'detached' });
    }
    await run.end('pays', 'failed', { error: 'Error: the card was refused' });
    for (const { page, row } of [first, second]) {
      await row('the card was refused').waitFor();
      assert.match(await page.locator('[data-row]').first().innerText(), /pays/, 'trouble stands at the top');
      assert.equal(await page.locator('[data-live-bar]').getAttribute('value'), '2');
      assert.equal(await page.locator('[data-live-bar]').getAttribute('max'), '3');
    }
    await run.end('leaves', 'passed');
    await run.finish('failed');
    for (const { page, row, close } of [first, second]) {
      await page.locator('[data-live-run]').waitFor({ state: 'detached' });
      await page.locator('.page-head .badge.failed').waitFor();
      await row('leaves').waitFor();
      await close();
    }
  });

  test('shares one stream with the other pages of its browser, and hands it on', async () => {
    const run = await startRun(4);
    const context = await browser.newContext();
    const opened = [];
    context.on('request', (request) => {
      if (request.url().includes('/stream')) opened.push(request);
    });
    const pages = [];
    for (let n = 0; n < 4; n += 1) {
      const page = await context.newPage();
      await page.goto(new URL(run.path, serviceUrl).href);
      await page.getByText('Live', { exact: true }).waitFor();
      pages.push(page);
      await run.end(`result ${n}`, 'passed');
      for (const each of pages) await each.locator('[data-row]').filter({ hasText: `result ${n}` }).first().waitFor();
    }
    assert.equal(opened.length, 1, 'one stream for four pages');
    await pages.shift().close();
    await run.end('after the first page was closed', 'passed');
    for (const page of pages) await page.locator('[data-row]').filter({ hasText: 'after the first page' }).first().waitFor();
    assert.equal(opened.length, 2, 'one of the others went on');
    await run.finish('passed');
    for (const page of pages) await page.locator('[data-live-run]').waitFor({ state: 'detached' });
    await context.close();
  });

  test('keeps what is filtered, and the row that is being read', async () => {
    const run = await startRun(3);
    await run.end('pays by card', 'failed', { error: 'Error: refused' });
    const seen = await look(`${run.path}?outcome=failing`);
    await seen.row('pays by card').getByRole('link').first().focus();
    await run.end('pays by invoice', 'passed');
    await run.end('pays by cheque', 'failed', { error: 'Error: no cheques' });
    await seen.row('pays by cheque').waitFor();
    assert.equal(await seen.row('pays by invoice').count(), 0);
    assert.match(await seen.page.evaluate(() => document.activeElement.textContent), /pays by card/);
    await run.finish('failed');
    await seen.page.locator('[data-live-run]').waitFor({ state: 'detached' });
    await seen.close();
  });

  test('goes on after the line was cut, without a gap', async () => {
    const run = await startRun(4);
    const line = await cuttableLine(serviceUrl);
    const seen = await look(run.path, line.url);
    await run.end('before the cut', 'passed');
    await seen.row('before the cut').waitFor();
    line.cut();
    await seen.page.getByText('Reconnecting').waitFor();
    await run.end('during the cut', 'failed', { error: 'Error: nobody saw this' });
    await run.begin('still running', 3);
    line.mend();
    await seen.row('during the cut').waitFor();
    await seen.page.locator('[data-live-workers]').getByText('still running').waitFor();
    await seen.page.getByText('Live', { exact: true }).waitFor();
    await run.finish('failed');
    await seen.page.locator('[data-live-run]').waitFor({ state: 'detached' });
    await seen.close();
    await line.close();
  });

  test('asks again when the last question was not answered', async () => {
    const run = await startRun(2);
    const seen = await look(run.path);
    await run.end('adds tea', 'passed');
    await seen.row('adds tea').waitFor();
    let asked = 0;
    await seen.page.route((url) => url.pathname === run.path, (route) => {
      asked += 1;
      return asked > 2 ? route.continue() : route.fulfill({ status: 503, body: 'not now' });
    });
    await run.end('pays', 'failed', { error: 'Error: refused' });
    await run.finish('failed');
    await seen.page.locator('[data-live-run]').waitFor({ state: 'detached' });
    await seen.row('pays').waitFor();
    await seen.page.locator('.page-head .badge.failed').waitFor();
    assert.ok(asked > 2);
    await seen.close();
  });

  test('works without a script', async () => {
    const run = await startRun(2);
    await run.end('adds tea', 'passed');
    const context = await browser.newContext({ javaScriptEnabled: false });
    const page = await context.newPage();
    await page.goto(new URL(run.path, serviceUrl).href);
    await page.getByRole('link', { name: 'adds tea' }).waitFor();
    assert.equal(await page.locator('[data-live-bar]').getAttribute('value'), '1');
    await context.close();
    await run.finish('passed');
  });
});

describe('the home page', () => {
  test('shows runs as they begin, get on and end, in every browser that looks', async () => {
    // Somebody has to have sent something, or the page explains how to.
    await (await startRun(1)).finish('passed');
    const seen = [await look('/'), await look('/')];
    const run = await startRun(2);
    const rows = seen.map(({ page }) => page.locator(`[data-live-runs] [data-row]:has(a[href="${run.path}"])`));
    for (const row of rows) await row.waitFor();
    await run.end('adds tea', 'passed');
    for (const row of rows) await row.getByText('1 of 2 tests').waitFor();
    await run.finish('passed');
    for (const row of rows) await row.waitFor({ state: 'detached' });
    for (const { close } of seen) await close();
  });

  test('learns what happened while the line was cut', async () => {
    const line = await cuttableLine(serviceUrl);
    const seen = await look('/', line.url);
    line.cut();
    await seen.page.getByText('Reconnecting').waitFor();
    const run = await startRun(2);
    line.mend();
    await seen.page.locator(`[data-live-runs] [data-row]:has(a[href="${run.path}"])`).waitFor();
    await seen.page.getByText('Reconnecting').waitFor({ state: 'detached' });
    await run.finish('passed');
    await seen.close();
    await line.close();
  });
});

describe('the runs of a project', () => {
  test('come by themselves, and what is ticked stays ticked', async () => {
    const first = await startRun(1);
    await first.end('adds tea', 'passed');
    await first.finish('passed');
    const { projectId, projectName } = await getJson(`/api/test-runs/${first.path.split('/').at(-1)}`);
    const seen = await look(`/projects/${projectId}`);
    const row = (run) => seen.page.locator(`.runs [data-row]:has(a[href="${run.path}"])`);
    await row(first).getByRole('checkbox').check();
    const second = await startRun(2, projectName);
    await row(second).waitFor();
    await second.end('adds tea', 'failed', { error: 'Error: no tea' });
    await second.finish('failed');
    await row(second).locator('.failed-text').waitFor();
    assert.equal(await row(first).getByRole('checkbox').isChecked(), true);
    await seen.close();
  });
});
