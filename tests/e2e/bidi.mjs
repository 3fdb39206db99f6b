/**
 * Names that hold invisible characters which reorder text ("Trojan Source", CVE-2021-42574), in
 * real Chromium: every page, and everything that scripts write into one, shows them as marks.
 * Needs `CALLBOARD_ACCOUNTS_URL`: a service with authentication on and without accounts.
 * `CHROMIUM_PATH` when Chromium is not at /usr/bin/chromium.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { chromium } from '@playwright/test';
import { firstAdministrator } from './support/first-administrator.mjs';

const serviceUrl = process.env.CALLBOARD_ACCOUNTS_URL;
if (!serviceUrl) {
  throw new Error('CALLBOARD_ACCOUNTS_URL must name a service with authentication on that has no accounts yet');
}

const at = (path) => new URL(path, serviceUrl).href;
/** A right-to-left override and a left-to-right isolate, and how they are shown. */
const CONTROLS = '\u202e\u2066';
const MARKS = '⟦U+202E⟧⟦U+2066⟧';
const named = (name) => `${name} ${CONTROLS}gpj.exe`;
const shown = (name) => `${name} ${MARKS}gpj.exe`;

describe('characters that reorder text', { concurrency: false }, () => {
  let browser;
  let context;
  let page;
  let headers;
  let projectId;
  const complaints = [];

  before(async () => {
    const { cookie, apiKey } = await firstAdministrator(serviceUrl);
    headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
    browser = await chromium.launch({
      executablePath: process.env.CHROMIUM_PATH ?? '/usr/bin/chromium',
      args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
    });
    context = await browser.newContext({ viewport: { width: 1440, height: 900 }, reducedMotion: 'reduce' });
    await context.addCookies([{ ...cookie, url: serviceUrl }]);
    page = await context.newPage();
    page.on('pageerror', (error) => complaints.push(error.message));
  });

  after(async () => {
    await browser?.close();
    assert.deepEqual(complaints, []);
  });

  async function send(path, body, method = 'POST') {
    const answer = await fetch(at(path), { method, headers, body: JSON.stringify(body) });
    const text = await answer.text();
    assert.ok(answer.ok, `${method} ${path} answered ${answer.status}: ${text}`);
    return JSON.parse(text);
  }

  const getJson = async (path) => (await fetch(at(path), { headers })).json();

  const testCase = (title, more = {}) => ({
    title: named(title), location: `tests/${named('pay')}.spec.ts:3:1`, suitePath: [named('Shop')],
    browser: { projectName: named('desktop'), browserName: 'chromium' }, status: 'passed', duration: 90, startedAt: Date.now() - 9_000, ...more,
  });

  const failed = () => testCase('pays', {
    status: 'failed', error: `Error: ${named('refused')}\n  at ${named('file')}.ts:1:1`,
    testSource: `> 9 | await ${named('expect')}(page)`, stdout: named('printed'), ariaSnapshot: `- heading "${named('Cart')}"`,
    steps: [{ title: named('click'), startTime: Date.now() - 8_000, duration: 20, category: 'action', failed: true, error: { message: named('no button') } }],
    consoleLogs: [{ type: 'error', text: named('logged'), timestamp: Date.now() - 8_000 }],
    networkRequests: [{ method: 'GET', url: `https://shop.example/${named('x')}`, normalizedUrl: '/', status: 500, duration: 40 }],
    testAnnotations: [{ type: 'issue', description: named('known') }], tags: [named('smoke')],
  });

  /** What people see or hear with a raw character; what is typed into fields is sent back and stays as it is. */
  async function rawTexts(name) {
    const found = await page.evaluate(() => {
      const raw = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f]/;
      const texts = [];
      const walker = document.createTreeWalker(document, NodeFilter.SHOW_TEXT);
      while (walker.nextNode()) {
        const node = walker.currentNode;
        if (raw.test(node.data) && !node.parentElement.closest('textarea')) texts.push(node.parentElement.outerHTML);
      }
      for (const element of document.querySelectorAll('*')) {
        for (const attribute of ['title', 'aria-label', 'alt', 'placeholder', 'aria-description', 'aria-valuetext']) {
          if (raw.test(element.getAttribute(attribute) ?? '')) texts.push(`${attribute} of ${element.outerHTML}`);
        }
      }
      return texts.map((text) => text.slice(0, 200));
    });
    return found.map((text) => `${name}: ${text}`);
  }

  async function expectMarks(name, locator) {
    await (locator ?? page.getByText(MARKS).first()).waitFor({ state: 'attached' });
    assert.deepEqual(await rawTexts(name), []);
  }

  test('are marks on the pages of what holds them', async () => {
    const { testRunId, projectId: id } = await send('/api/test-runs/submit', {
      projectName: named('shop'), status: 'failed', startTime: new Date(Date.now() - 60_000).toISOString(), duration: 4_000,
      label: named('Nightly'), branch: `feature/${CONTROLS}x`, author: named('Mira'), environment: named('staging'),
      metadata: { globalErrors: [named('global')], customData: { [named('key')]: named('value') } },
      testCases: [failed(), { ...failed(), retries: 1 }, testCase('leaves')],
    });
    projectId = id;
    const [execution] = (await getJson(`/api/test-runs/${testRunId}/executions?limit=1`)).items;
    const [cluster] = (await getJson(`/api/projects/${projectId}/failure-clusters`)).items;
    const project = `/projects/${projectId}`;
    const addresses = [
      '/', '/projects', project, `${project}?tab=grid`, `${project}?tab=clusters`, `${project}?tab=cases`, `${project}?tab=settings`,
      `${project}?tab=performance`, `${project}?tab=health`, `/test-runs/${testRunId}`, `/test-runs/${testRunId}?tab=groups`,
      `/test-runs/${testRunId}?tab=insights`, `/test-runs/${testRunId}?tab=timeline`, `/test-runs/${testRunId}?tab=details`,
      `/test-run-cases/${execution.id}`, `/test-cases/${execution.testCaseId}`, `/failure-clusters/${cluster.id}`,
      `/failure-clusters/${cluster.id}?tab=plan`, '/analytics', '/settings/projects', '/settings/audit',
    ];
    for (const address of addresses) {
      await page.goto(at(address));
      await expectMarks(address);
    }
  });

  test('are marks in what a run tells while it goes on', async () => {
    const { runId, streamToken } = await send('/api/test-runs/start', { projectName: named('shop'), startTime: new Date().toISOString(), plannedTests: 2 });
    const tell = (event) => send(`/api/test-runs/${runId}/events`, { streamToken, testCases: [event] });
    await page.goto(at(`/test-runs/${runId}`));
    const workers = page.locator('[data-live-workers]');
    await page.getByText('Live', { exact: true }).waitFor();
    await tell({ ...testCase('adds tea'), type: 'begin', workerIndex: 0, startedAt: Date.now() });
    await workers.getByText(shown('adds tea')).waitFor();
    await tell({ type: 'step-begin', title: named('fill in'), parentTitle: named('adds tea'), stepCategory: 'test.step', workerIndex: 0, startedAt: Date.now() });
    await expectMarks('the workers', workers.getByText(shown('fill in')));
    await tell({ ...failed(), type: 'complete', retries: 0, workerIndex: 0 });
    await expectMarks('the rows that arrive', page.locator('[data-row]').getByText(shown('pays')));
    await send(`/api/test-runs/${runId}/finish`, { streamToken, status: 'failed', duration: 1000 });
    await page.locator('[data-live-run]').waitFor({ state: 'detached' });
    assert.deepEqual(await rawTexts('the run that is over'), []);
  });

  test('are marks in the search', async () => {
    const palette = page.getByRole('dialog', { name: 'Search' });
    await page.keyboard.press('Control+k');
    await expectMarks('what was opened', palette.getByRole('option').filter({ hasText: MARKS }).first());
    const field = palette.getByRole('combobox');
    for (const [wanted, group] of [['shop', 'Projects'], ['nightly', 'Runs'], ['pays', 'Tests'], ['refused', 'Failure clusters']]) {
      await field.fill(wanted);
      await expectMarks(`the search for ${wanted}`, palette.getByRole('group', { name: group }).getByRole('option').filter({ hasText: MARKS }).first());
    }
    await field.fill(`zzz${CONTROLS}`);
    await expectMarks('a search without results', palette.getByRole('status').filter({ hasText: `zzz${MARKS}` }));
    await page.keyboard.press('Escape');
  });

  test('are marks among projects that the service finds for a chooser', async () => {
    const { user } = await send('/api/users', { username: 'rosa', name: named('Rosa'), role: 'user' });
    await page.goto(at(`/settings/users/${user.id}`));
    assert.deepEqual(await rawTexts('the page of a user'), []);
    // Nothing the page knew when it was loaded.
    await send('/api/projects', { name: named('bakery') });
    const access = page.getByRole('region', { name: 'Projects' });
    await access.getByPlaceholder('Search').fill('bakery');
    await expectMarks('the chooser', access.getByText(shown('bakery')));
  });

  test('are marks in dialogs', async () => {
    await page.goto(at('/settings/account'));
    await page.getByRole('button', { name: 'New key' }).click();
    const dialog = page.getByRole('dialog', { name: 'New API key' });
    await dialog.getByLabel('Name', { exact: true }).fill(named('laptop'));
    await dialog.getByRole('button', { name: 'Create key' }).click();
    await dialog.getByRole('button', { name: 'Done' }).click();
    await page.getByRole('button', { name: `Revoke ${shown('laptop')}` }).click();
    await expectMarks('the question whether to revoke a key', page.getByRole('dialog').getByText(shown('laptop')));
    await page.keyboard.press('Escape');
  });

  test('are marks in what the service refuses, beside the field and below the form', async () => {
    await page.goto(at(`/projects/${projectId}?tab=settings`));
    const refusals = [
      [{ code: 'invalid_field', message: `label must be shorter, got ${named('this')}.`, data: { field: 'label' } }, '.field-error'],
      [{ code: 'conflict', message: `Another project is called ${named('this')}.` }, '[data-message]'],
    ];
    const form = page.locator('form[data-api^="PATCH"]:has([name="label"])');
    for (const [body, place] of refusals) {
      await page.route(`**/api/projects/${projectId}`, (route) => route.fulfill({ status: 400, json: body }), { times: 1 });
      await form.getByRole('button', { name: 'Save' }).click();
      await expectMarks(`an error in ${place}`, form.locator(place).filter({ hasText: shown('this') }));
    }
  });

  test('are marks in what is said after a project is deleted and restored', async () => {
    await page.goto(at(`/projects/${projectId}?tab=settings`));
    await page.locator('#project-confirm').fill(named('shop'));
    await page.getByRole('button', { name: 'Delete project' }).click();
    const said = page.locator('#said');
    await expectMarks('what is said of a deletion', said.getByText(shown('shop')));
    await page.goto(at('/settings/storage'));
    await expectMarks('the deletions', page.getByRole('row').filter({ hasText: shown('shop') }).first());
    await page.getByRole('button', { name: `Restore ${shown('shop')}` }).click();
    await expectMarks('what is said of a restoration', said.or(page.locator('[data-message]')).filter({ hasText: shown('shop') }).first());
  });
});
