/**
 * What people come for, from the first click to the answer, in real Chromium on a wide screen
 * and on a phone. Needs `CALLBOARD_URL` of a service that holds nothing yet and asks nobody to
 * sign in; the journeys fill it. `CHROMIUM_PATH` when Chromium is not at /usr/bin/chromium.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { chromium } from '@playwright/test';
import { runsOf } from '../demo/history.mjs';
import { PROJECTS } from '../demo/projects.mjs';
import { complaintsAbout, WIDTHS } from './support/look.mjs';
import { getJson, serviceUrl } from './support/service.mjs';

if (!serviceUrl) {
  throw new Error('CALLBOARD_URL must name the running service, for instance CALLBOARD_URL=http://127.0.0.1:3000');
}

const shop = PROJECTS[0];
/** The newest runs are enough for every journey. */
const RUNS = 24;

async function submit(body) {
  const response = await fetch(new URL('/api/test-runs/submit', serviceUrl), {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body),
  });
  assert.equal(response.status, 200, await response.clone().text());
  return response.json();
}

describe('somebody', () => {
  let browser;

  before(async () => {
    const { items } = await getJson('/api/projects?limit=1');
    assert.deepEqual(items, [], 'the journeys begin on a service that holds nothing');
    browser = await chromium.launch({
      executablePath: process.env.CHROMIUM_PATH ?? '/usr/bin/chromium',
      args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
    });
  });

  after(() => browser?.close());

  /** Goes on a journey on one width, on phones in the dark; nobody may meet an error or an unreadable page on the way. */
  async function travel(width, journey) {
    const colorScheme = width === WIDTHS.phone ? 'dark' : 'light';
    const context = await browser.newContext({ viewport: { width, height: 844 }, colorScheme, reducedMotion: 'reduce' });
    const complaints = [];
    try {
      const page = await context.newPage();
      page.on('console', (message) => {
        if (message.type() === 'error') complaints.push(`${page.url()} wrote ${message.text()}`);
      });
      page.on('pageerror', (error) => {
        if (!error.message.startsWith('Transition was ')) complaints.push(`${page.url()} threw ${error.message}`);
      });
      await page.goto(serviceUrl);
      await journey(page, async (name) => complaints.push(...(await complaintsAbout(page, name))));
    } finally {
      await context.close();
    }
    assert.deepEqual(complaints, []);
  }

  test('who comes first is told how to send a run, and finds it', async () => {
    await travel(WIDTHS.desktop, async (page, look) => {
      await page.getByRole('heading', { name: 'Run the tests' }).waitFor();
      await look('welcome');
      const command = await page.locator('#setup-curl').textContent();
      const body = JSON.parse(/-d '(.*)'\s*$/s.exec(command)[1]);
      assert.match(command, new RegExp(new URL(serviceUrl).port));
      await submit(body);
      await page.getByRole('row', { name: /my-project/ }).first().getByRole('link', { name: 'my-project' }).click();
      await page.getByRole('link', { name: /^Run \d+$/ }).first().click();
      await page.getByRole('link', { name: 'pays by card' }).click();
      await page.getByText('expected 200, got 500').first().waitFor();
      await look('first failure');
    });
  });

  test('who makes a project on a phone is told how to send its first run', async () => {
    await travel(WIDTHS.phone, async (page, look) => {
      await page.getByRole('button', { name: 'Menu' }).click();
      await look('menu');
      await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Settings' }).click();
      await page.getByRole('navigation', { name: 'Settings' }).getByRole('link', { name: 'Projects' }).click();
      await page.getByRole('button', { name: 'New project' }).click();
      const dialog = page.getByRole('dialog', { name: 'New project' });
      await look('new project');
      await dialog.getByLabel('Name').fill('made by hand');
      await dialog.getByRole('button', { name: 'Create project' }).click();
      await page.getByText('Project created.').waitFor();
      await look('settings of the new project');
      await page.getByRole('navigation', { name: 'Project' }).getByRole('link', { name: 'Runs' }).click();
      await page.getByRole('heading', { name: 'No runs yet' }).waitFor();
      await look('project without runs');
      const body = JSON.parse(/-d '(.*)'\s*$/s.exec(await page.locator('#setup-curl').textContent())[1]);
      await submit({ ...body, projectName: 'made by hand' });
      await page.locator('.runs [data-row] .row-link').first().click();
      await page.getByRole('link', { name: 'pays by card' }).click();
      await page.getByText('expected 200, got 500').first().waitFor();
    });
  });

  test('history arrives', async () => {
    const runs = [...runsOf(shop, Date.now())].slice(-RUNS);
    for (const { body } of runs) await submit(body);
  });

  test('sees in the grid of tests whether older runs lie below the names', async () => {
    const shadows = (page) => page.locator('.grid th').filter({ hasText: 'pays by card' }).first().evaluate((name) => getComputedStyle(name).boxShadow);
    const [{ id }] = (await getJson('/api/projects?q=shop')).items;
    for (const width of Object.values(WIDTHS)) {
      await travel(width, async (page) => {
        await page.goto(new URL(`/projects/${id}?tab=grid`, serviceUrl).href);
        const frame = page.locator('.grid-frame');
        await frame.locator('tbody a[tabindex="-1"]').first().waitFor({ state: 'attached' });
        const goesOn = await frame.evaluate((element) => element.scrollWidth > element.clientWidth);
        assert.equal(goesOn, width === WIDTHS.phone, 'the runs have room on a wide screen only');
        assert.equal((await shadows(page)) !== 'none', goesOn, 'it opens at its newest runs');
        await frame.evaluate((element) => element.scrollTo({ left: 0, behavior: 'instant' }));
        await page.locator('.grid-frame:not([data-scrolled])').waitFor();
        assert.equal(await shadows(page), 'none');
      });
    }
  });

  test('gets from a red build to its cause with the keyboard alone', async () => {
    await travel(WIDTHS.desktop, async (page) => {
      const focused = () => page.evaluate(() => document.activeElement?.textContent?.trim());
      const rowNamed = async (name) => {
        for (let step = 0; step < 12 && (await focused()) !== name; step += 1) await page.keyboard.press('j');
        assert.equal(await focused(), name);
      };
      const tabTo = async (name) => {
        for (let step = 0; step < 80 && (await focused()) !== name; step += 1) await page.keyboard.press('Tab');
        assert.equal(await focused(), name);
      };
      await page.getByRole('heading', { level: 1, name: /failing/ }).waitFor();
      await rowNamed('shop');
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { level: 1, name: 'shop' }).waitFor();
      await tabTo('Clusters');
      await page.keyboard.press('Enter');
      await page.waitForURL('**tab=clusters**');
      await page.goBack();
      await page.getByRole('heading', { level: 1, name: 'shop' }).waitFor();
      const red = page.locator('.runs [data-row]').filter({ has: page.getByLabel('Failed', { exact: true }) }).first().locator('.row-link');
      await rowNamed((await red.textContent()).trim());
      await page.keyboard.press('Enter');
      await page.waitForURL('**/test-runs/*');
      // On the way to a choice with the arrows nothing applies; with Enter it does, and the next page goes on there.
      const outcome = page.locator('select[name="outcome"]');
      const third = await outcome.locator('option').nth(2).getAttribute('value');
      await outcome.focus();
      await page.keyboard.press('ArrowDown');
      await page.keyboard.press('ArrowDown');
      await page.keyboard.press('Enter');
      await page.waitForURL(`**outcome=${third}*`);
      await page.waitForFunction(() => document.activeElement?.name === 'outcome');
      await page.goBack();
      await page.waitForURL(/test-runs\/\d+$/);
      await page.evaluate(() => document.activeElement?.blur());
      await page.keyboard.press('j');
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { name: /^Error|Timeout/ }).first().waitFor();
      await page.keyboard.press('Control+k');
      await page.getByRole('option', { name: /^shop/ }).first().waitFor();
      await page.keyboard.type('suggests');
      await page.getByRole('option', { name: /suggests while typing/ }).first().waitFor();
      await page.keyboard.press('ArrowDown');
      await page.keyboard.press('ArrowUp');
      await page.keyboard.press('Enter');
      await page.waitForURL('**/test-cases/*');
      await page.keyboard.press('g');
      await page.keyboard.press('h');
      await page.getByRole('heading', { level: 1, name: /failing/ }).waitFor();
      // What was opened is where the search begins the next time.
      await page.keyboard.press('Control+k');
      const lately = page.getByRole('group', { name: 'Recently opened' });
      await lately.getByRole('option', { name: /suggests while typing/ }).waitFor();
    });
  });

  test('snoozes several clusters with the keyboard', async () => {
    await travel(WIDTHS.desktop, async (page, look) => {
      await page.getByRole('main').getByRole('link', { name: 'shop', exact: true }).first().click();
      await page.getByRole('navigation', { name: 'Project' }).getByRole('link', { name: 'Clusters' }).click();
      await page.waitForURL('**tab=clusters**');
      await page.getByRole('columnheader', { name: 'Failures' }).getByRole('link').click();
      await page.waitForURL('**sort=often**');
      await page.locator('th[aria-sort="descending"]').getByText('Failures').waitFor();
      for (const key of ['j', 'x', 'j', 'x']) await page.keyboard.press(key);
      await page.getByText('2 selected').waitFor();
      await look('clusters, two chosen');
      await page.getByRole('combobox', { name: 'Snooze the selected clusters' }).selectOption('7');
      await page.getByRole('button', { name: 'Save', exact: true }).click();
      await page.getByText('Clusters saved.').waitFor();
      await page.getByRole('combobox', { name: 'Snoozed', exact: true }).selectOption('yes');
      await page.waitForURL('**snoozed=yes**');
      assert.equal(await page.locator('.clusters [data-row]').count(), 2);
    });
  });

  test('copies the change that repairs a test as a patch', async () => {
    const [project] = (await getJson('/api/projects?limit=1')).items;
    const clusters = await getJson(`/api/projects/${project.id}/failure-clusters?sort=occurrences`);
    const lost = clusters.items.find((cluster) => cluster.signature.includes('Place order'));
    await travel(WIDTHS.desktop, async (page) => {
      await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
      await page.goto(new URL(`/failure-clusters/${lost.id}?tab=plan`, serviceUrl).href);
      await page.getByRole('button', { name: /^Copy the change of .* as a patch$/ }).first().click();
      await page.getByRole('button', { name: 'Copied' }).waitFor();
      const patch = await page.evaluate(() => navigator.clipboard.readText());
      assert.match(patch, /^--- a\/tests\/checkout\/[^]*\n-.*Place order[^]*\n\+.*Place your order[^]*[^\n]\n$/);
    });
  });

  test('turns a list of runs round, and back', async () => {
    await travel(WIDTHS.desktop, async (page) => {
      await page.getByRole('main').getByRole('link', { name: 'shop', exact: true }).first().click();
      await page.locator('th[aria-sort="descending"]').getByText('Started').waitFor();
      const first = () => page.locator('.runs [data-row] .row-link').first().getAttribute('href');
      const newest = await first();
      await page.getByRole('columnheader', { name: 'Started' }).getByRole('link').press('Enter');
      await page.waitForURL('**order=asc**');
      await page.locator('th[aria-sort="ascending"]').getByText('Started').waitFor();
      assert.notEqual(await first(), newest);
      await page.goBack();
      await page.locator('th[aria-sort="descending"]').getByText('Started').waitFor();
      assert.equal(await first(), newest);
    });
  });

  test('moves the days of a list of runs', async () => {
    await travel(WIDTHS.desktop, async (page) => {
      await page.getByRole('main').getByRole('link', { name: 'shop', exact: true }).first().click();
      await page.getByRole('heading', { level: 1, name: 'shop' }).waitFor();
      const day = (ago) => new Date(Date.now() - ago * 86_400_000).toISOString().slice(0, 10);
      await page.getByLabel('From').fill(day(20));
      await page.waitForURL(`**from=${day(20)}**`);
      await page.getByLabel('Until').fill(day(15));
      await page.waitForURL(`**to=${day(15)}**`);
      await page.getByRole('link', { name: /^Until .* remove this filter$/ }).waitFor();
      // It would end before it begins, and waits for the other day.
      await page.getByLabel('From').fill(day(5));
      assert.equal(await page.getByLabel('Until').evaluate((field) => field.validity.customError), true);
      assert.ok(page.url().includes(`from=${day(20)}`));
      await page.getByLabel('Until').fill(day(1));
      await page.waitForURL(`**from=${day(5)}&to=${day(1)}**`);
      await page.getByText(/runs$/).first().waitFor();
    });
  });

  for (const [device, width] of Object.entries(WIDTHS)) {
    test(`gets from a red build to its cause on a ${device}`, async () => {
      await travel(width, async (page, look) => {
        await page.getByRole('heading', { level: 1, name: /failing/ }).waitFor();
        await page.getByRole('main').getByRole('link', { name: 'shop', exact: true }).first().click();
        await page.getByRole('heading', { level: 1, name: 'shop' }).waitFor();
        await look('project');
        await page.locator('.runs [data-row]').filter({ has: page.getByLabel('Failed', { exact: true }) }).first().locator('.row-link').click();
        await page.getByRole('navigation', { name: 'Run' }).getByRole('link', { name: 'Insights' }).click();
        await page.getByText('are compared with').or(page.getByText('No earlier green run')).waitFor();
        await look('insights');
        await page.getByRole('navigation', { name: 'Run' }).getByRole('link', { name: 'Failure groups' }).click();
        await page.getByRole('link', { name: /Place order/ }).first().waitFor();
        await look('failure groups');
        await page.getByRole('link', { name: /pays by card/ }).first().click();
        await page.getByRole('heading', { name: /^Error/ }).waitFor();
        await page.locator('.source-line.failing').first().getByText("getByRole('button', { name: 'Place order' })").waitFor();
        await page.getByText('npx playwright test').first().waitFor();
        await page.getByRole('heading', { name: 'Failure cluster' }).waitFor();
        await page.getByRole('heading', { name: 'Changes since last pass' }).waitFor();
        await look('execution');
      });
    });

    test(`sets what turns a run down on a ${device}`, async () => {
      await travel(width, async (page, look) => {
        await page.getByRole('main').getByRole('link', { name: 'shop', exact: true }).first().click();
        await page.getByRole('navigation', { name: 'Project' }).getByRole('link', { name: 'Settings' }).click();
        const gates = page.getByRole('region', { name: 'Gates' });
        await page.locator('#project-description').fill('typed, not saved yet');
        // Several forms call the same: it is said at the one that was sent.
        const branches = page.getByRole('region', { name: 'Branches' });
        await branches.getByRole('button', { name: 'Save branches' }).click();
        await branches.getByText(/saved/).waitFor();
        await gates.getByText('New policy').click();
        await look('new policy');
        const form = gates.locator('form').filter({ has: page.locator('#gate-name-new') });
        await form.getByLabel('Name', { exact: true }).fill(`release on a ${device}`);
        await form.getByLabel('Failed tests', { exact: true }).fill('2');
        await form.getByLabel('A pass rate below, percent').fill('97.5');
        await form.getByLabel('Any flaky test').check();
        await form.getByRole('button', { name: 'Add policy' }).click();
        await page.getByText('Policy saved.').waitFor();
        assert.equal(await page.locator('#project-description').inputValue(), 'typed, not saved yet', 'saving one form loses nothing of another');
        const stored = gates.getByRole('listitem').filter({ hasText: `release on a ${device}` });
        await stored.getByText(/more than 2 failed tests, any new failure, less than 97\.5% passed, any flaky test/).waitFor();
        await stored.getByText(`release on a ${device}`, { exact: true }).click();
        await look('stored policy');
        await stored.getByLabel('Failed tests', { exact: true }).fill('');
        await stored.getByRole('button', { name: 'Save policy' }).click();
        await gates.getByText(/Fails for: an error outside tests, any new failure, less than 97\.5/).first().waitFor();
        await gates.getByText(`release on a ${device}`, { exact: true }).click();
        await gates.getByRole('button', { name: `Remove release on a ${device}` }).click();
        await page.getByText('Policy removed').waitFor();
      });
    });

    test(`gets from a flaky test to its owner on a ${device}`, async () => {
      await travel(width, async (page, look) => {
        await page.getByRole('main').getByRole('link', { name: 'shop', exact: true }).first().click();
        await page.getByRole('navigation', { name: 'Project' }).getByRole('link', { name: 'Test grid' }).click();
        await page.getByRole('region', { name: /Outcome of each test/ }).waitFor();
        await look('test grid');
        await page.getByRole('link', { name: /suggests while typing/ }).click();
        await page.getByRole('heading', { level: 1, name: 'suggests while typing' }).waitFor();
        await page.getByText('discovery').first().waitFor();
        await look('test case');
        await page.goBack();
        await page.getByRole('region', { name: /Outcome of each test/ }).waitFor();
        // Filters say what the address says, also after one came back to it.
        const result = page.getByRole('combobox', { name: 'Result' });
        await result.selectOption('failed');
        await page.waitForURL('**result=failed**');
        await page.goBack();
        await page.waitForURL((url) => !url.searchParams.has('result'));
        assert.equal(await result.inputValue(), '');
        // Several values of a filter stay when another one is chosen.
        const several = new URL(page.url());
        for (const tag of ['cart', 'smoke']) several.searchParams.append('tag', tag);
        await page.goto(several.href);
        await page.getByRole('combobox', { name: 'Result' }).selectOption('passed');
        await page.waitForURL('**result=passed**');
        assert.deepEqual(new URL(page.url()).searchParams.getAll('tag').sort(), ['cart', 'smoke']);
      });
    });

    test(`decides about a cluster on a ${device}`, async () => {
      await travel(width, async (page, look) => {
        await page.getByRole('main').getByRole('link', { name: 'shop', exact: true }).first().click();
        await page.getByRole('navigation', { name: 'Project' }).getByRole('link', { name: 'Clusters' }).click();
        await page.waitForURL('**tab=clusters**');
        await look('clusters');
        const first = page.locator('.clusters [data-row] .row-link').first();
        const name = await first.textContent();
        await first.click();
        await page.getByRole('heading', { level: 1, name }).waitFor();
        await look('cluster');
        await page.getByRole('radio', { name: 'Ignored' }).check();
        await page.getByLabel('Note', { exact: true }).fill(`Known, on a ${device}`);
        await page.getByRole('button', { name: 'Save', exact: true }).click();
        await page.getByText('Cluster saved.').waitFor();
        assert.equal(await page.getByLabel('Note', { exact: true }).inputValue(), `Known, on a ${device}`);
        const history = page.getByRole('region', { name: 'History' });
        await history.getByText(`Known, on a ${device}`).waitFor();
        await history.getByText('First seen in run').waitFor();
        await page.getByRole('heading', { name: 'What changed when it appeared' }).waitFor();
        await page.getByRole('navigation', { name: 'Cluster' }).getByRole('link', { name: 'Fix plan' }).click();
        await page.getByRole('heading', { name: 'Verify the fix' }).waitFor();
        await look('fix plan');
        await page.getByRole('navigation', { name: 'You are here' }).getByRole('link', { name: 'Clusters' }).click();
        await page.getByRole('combobox', { name: 'Status' }).selectOption('ignored');
        await page.getByRole('link', { name }).first().waitFor();
      });
    });
  }
});
