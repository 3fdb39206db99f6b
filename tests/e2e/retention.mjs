/**
 * How data is deleted, by age and by hand, and how one takes that back, in real Chromium: the
 * question before retention is shortened, the change that waits and is undone, runs and projects
 * that are deleted and restored. Needs `CALLBOARD_URL` of a service that holds nothing yet and
 * asks nobody to sign in; `CHROMIUM_PATH` when Chromium is not at /usr/bin/chromium.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { chromium } from '@playwright/test';
import { THEMES, WIDTHS, complaintsAbout } from './support/look.mjs';
import { getJson, serviceUrl } from './support/service.mjs';

if (!serviceUrl) {
  throw new Error('CALLBOARD_URL must name the running service, for instance CALLBOARD_URL=http://127.0.0.1:3000');
}

const DAY_MS = 86_400_000;
/** Over the ten runs that are deleted without a typed word. */
const OLD_RUNS = 12;
const at = (path) => new URL(path, serviceUrl).href;

/** A finished run of one test, some days old. */
async function sendRun(projectName, days) {
  const body = {
    projectName, status: 'passed', startTime: new Date(Date.now() - days * DAY_MS).toISOString(), duration: 1_000,
    testCases: [{ title: 'pays by card', location: 'tests/pay.spec.ts:3:1', status: 'passed', duration: 900 }],
  };
  const answer = await fetch(at('/api/test-runs/submit'), {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body),
  });
  assert.equal(answer.status, 200, await answer.clone().text());
  return answer.json();
}

describe('data that is deleted', { concurrency: false }, () => {
  let browser;
  let page;
  let shop;
  const complaints = [];

  before(async () => {
    browser = await chromium.launch({
      executablePath: process.env.CHROMIUM_PATH ?? '/usr/bin/chromium',
      args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
    });
    page = await (await browser.newContext({ viewport: { width: WIDTHS.desktop, height: 900 }, reducedMotion: 'reduce' })).newPage();
    page.on('pageerror', (error) => complaints.push(error.message));
    for (let run = 0; run < OLD_RUNS; run += 1) await sendRun('shop', 400);
    shop = (await sendRun('shop', 1)).projectId;
  });

  after(async () => {
    await browser?.close();
    assert.deepEqual(complaints, []);
  });

  const question = () => page.getByRole('dialog', { name: 'Keep data for less time?' });
  const banner = () => page.getByRole('region', { name: 'Pending change of retention' });
  const runDays = () => page.getByLabel('Delete runs after (days)');
  const save = () => page.locator('.retention-form').getByRole('button', { name: 'Save' }).click();

  /** Looks at the page as it stands on a wide screen and on a phone, in both themes. */
  async function inspect(name) {
    const found = [];
    for (const width of Object.values(WIDTHS)) {
      for (const colorScheme of THEMES) {
        await page.setViewportSize({ width, height: 900 });
        await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
        found.push(...(await complaintsAbout(page, `${name}, ${colorScheme} at ${width} px`)));
      }
    }
    await page.setViewportSize({ width: WIDTHS.desktop, height: 900 });
    // Another width moves what is on the page.
    assert.deepEqual(found.filter((complaint) => !complaint.includes(' jumps: ')), []);
  }

  for (const [where, address, setting] of [
    ['of a project', () => `/projects/${shop}?tab=settings`, () => `/api/projects/${shop}/retention`],
    ['of the instance', () => '/settings/retention', () => '/api/settings/retention'],
  ]) {
    test(`by a shorter retention ${where} is counted first, waits, and can be undone`, async () => {
      await page.goto(at(address()));
      const stored = await getJson(setting());
      await runDays().fill('365');
      await save();
      await question().getByText(`${OLD_RUNS} runs`).waitFor();
      await question().getByText('This takes effect in 24 hours. You can undo it until then').waitFor();
      await inspect(`the question ${where}`);

      // Without the word nothing is saved, and one can leave.
      await question().getByRole('button', { name: 'Shorten retention' }).click();
      assert.equal(await question().isVisible(), true, 'the word is asked for');
      await question().getByLabel('Type delete to confirm').fill('no');
      await question().getByRole('button', { name: 'Shorten retention' }).click();
      assert.equal(await question().getByLabel('Type delete to confirm').evaluate((field) => field.validity.customError), true);
      await question().getByRole('button', { name: 'Cancel' }).click();
      await question().waitFor({ state: 'hidden' });
      assert.deepEqual(await getJson(setting()), stored);

      await save();
      await question().getByLabel('Type delete to confirm').fill('delete');
      await question().getByRole('button', { name: 'Shorten retention' }).click();
      await page.getByText(/^Saved\. 12 runs.* will be deleted in 24 hours\. You can undo this above\.$/).waitFor();
      await banner().getByText(/^12\sruns.* will be deleted in 2[34]\sh\.$/).waitFor();
      assert.equal(await runDays().inputValue(), '365');
      await inspect(`the change ${where} that waits`);
      // It is still there for whoever comes next, and nothing is deleted yet.
      await page.reload();
      await banner().waitFor();
      assert.equal((await getJson(`/api/projects/${shop}`)).keptRuns, OLD_RUNS + 1);

      await banner().getByRole('button', { name: 'Undo' }).click();
      await banner().waitFor({ state: 'detached' });
      assert.equal(await runDays().inputValue(), '');
      assert.equal((await getJson(setting())).pending ?? null, null);
    });
  }

  test('by a shorter retention needs no word for a few runs', async () => {
    const { projectId } = await sendRun('bakery', 400);
    // The latest green run of a branch is kept.
    await sendRun('bakery', 3);
    await page.goto(at(`/projects/${projectId}?tab=settings`));
    await runDays().fill('365');
    await save();
    await question().getByText('1 run').first().waitFor();
    assert.equal(await question().getByLabel('Type delete to confirm').isVisible(), false);
    await question().getByRole('button', { name: 'Shorten retention' }).click();
    await banner().getByRole('button', { name: 'Undo' }).click();
    await banner().waitFor({ state: 'detached' });
  });

  test('by a retention that reaches no stored data is nothing, and keeping more asks nothing', async () => {
    await page.goto(at('/settings/retention'));
    await page.getByLabel('Delete runs after (days)').fill('3650');
    await save();
    // Keeping runs for ten years is less than keeping them forever: that is asked, and deletes nothing.
    await question().getByText('No stored data will be deleted yet.').waitFor();
    await question().getByRole('button', { name: 'Shorten retention' }).click();
    await banner().getByRole('button', { name: 'Undo' }).click();
    await banner().waitFor({ state: 'detached' });
    await page.getByLabel('Always keep the latest').fill('500');
    await save();
    await page.getByText('Saved. Existing data will be re-evaluated.').waitFor();
    assert.equal(await banner().count(), 0);
  });

  test('by hand is a run that is restored where it is said that it is deleted, and from the list', async () => {
    const { testRunId } = await sendRun('bakery', 2);
    const remove = async () => {
      await page.goto(at(`/test-runs/${testRunId}?tab=details`));
      await page.getByRole('button', { name: 'Delete run…' }).click();
      const dialog = page.getByRole('dialog', { name: `Delete run ${testRunId}?` });
      await dialog.getByText('An administrator can restore it until').waitFor();
      await inspect('the question whether to delete a run');
      await dialog.getByRole('button', { name: 'Delete run', exact: true }).click();
      await page.getByText(`Run ${testRunId} is deleted.`).waitFor();
      assert.equal((await fetch(at(`/test-runs/${testRunId}`))).status, 404);
    };
    const isBack = async () => {
      for (let tries = 0; tries < 100; tries += 1) {
        if ((await fetch(at(`/api/test-runs/${testRunId}`))).status === 200) return;
        await page.waitForTimeout(100);
      }
      assert.fail(`run ${testRunId} did not come back`);
    };
    await remove();
    await page.locator('#said').getByRole('button', { name: 'Restore' }).click();
    await isBack();
    await page.waitForURL(`**/test-runs/${testRunId}`);
    await remove();
    await page.goto(at('/settings/storage'));
    const row = page.getByRole('row').filter({ hasText: 'Restorable' });
    await inspect('the deletions');
    // The page reads itself anew when it has its answer.
    const read = page.waitForEvent('load');
    await row.getByRole('button', { name: /^Restore / }).click();
    await read;
    await isBack();
    await page.goto(at('/settings/storage'));
    await page.getByRole('row').filter({ hasText: 'Restored' }).first().waitFor();
    assert.equal(await row.count(), 0);
  });

  test('by hand is a project that comes back under another name where its own is taken', async () => {
    await page.goto(at(`/projects/${shop}?tab=settings`));
    const removal = page.getByRole('region', { name: 'Delete this project' });
    await removal.getByText(`${OLD_RUNS + 1} runs`).waitFor();
    await removal.getByLabel('Name of the project').fill('shopp');
    await removal.getByRole('button', { name: 'Delete project' }).click();
    await removal.locator('.field-error, [data-message]').filter({ hasText: /shop|name/ }).first().waitFor();
    assert.equal((await fetch(at(`/projects/${shop}`))).status, 200, 'another name deletes nothing');
    await removal.getByLabel('Name of the project').fill('shop');
    await removal.getByRole('button', { name: 'Delete project' }).click();
    await page.getByText('shop is deleted.').waitFor();
    assert.equal((await fetch(at(`/projects/${shop}`))).status, 404);

    const { projectId: namesake } = await sendRun('shop', 0);
    assert.notEqual(namesake, shop);
    await page.goto(at('/settings/storage'));
    const row = page.getByRole('row').filter({ hasText: 'Project' }).filter({ hasText: 'Restorable' });
    await row.getByRole('button', { name: 'Restore shop' }).click();
    await page.getByText(/shop.* is restored\./).first().waitFor();
    await page.goto(at(`/projects/${shop}`));
    await page.getByRole('heading', { level: 1, name: 'shop (restored)' }).waitFor();
    assert.equal((await getJson(`/api/projects/${shop}`)).keptRuns, OLD_RUNS + 1);
    assert.equal((await getJson(`/api/projects/${namesake}`)).name, 'shop');
  });
});
