/**
 * From the settings of a project without a repository to the commit that broke its test, in real Chromium and with a code
 * host over a real git repository. Needs `CALLBOARD_URL` of a service that asks nobody to sign in, can store secrets and
 * may reach 127.0.0.1. `CHROMIUM_PATH` when Chromium is not at /usr/bin/chromium.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { chromium } from '@playwright/test';
import { startCodeHost } from './support/code-host.mjs';
import { THEMES, WIDTHS, complaintsAbout } from './support/look.mjs';
import { getJson, serviceUrl } from './support/service.mjs';

if (!serviceUrl) throw new Error('CALLBOARD_URL must name the running service, for instance CALLBOARD_URL=http://127.0.0.1:3000');

const TOKEN = 'a-token-of-the-code-host';
const FORM = 'export function Form() {\n  return <button>Place order</button>;\n}\n';
const ERROR = `TimeoutError: locator.click: Timeout 30000ms exceeded.
Call log:
  - waiting for getByRole('button', { name: 'Place order' })

    at /ci/shop/tests/shop.spec.ts:9:3`;
const at = (path) => new URL(path, serviceUrl).href;

/** A finished full run of one test on main, at a commit. */
async function sendRun(status, minutesAgo, commit) {
  const body = {
    projectName: 'shop', status, startTime: new Date(Date.now() - minutesAgo * 60_000).toISOString(), duration: 1_000,
    branch: 'main', commit, isFullRun: true, metadata: { scm: { defaultBranch: 'main' } },
    testCases: [{
      title: 'pays by card', location: 'tests/shop.spec.ts:3:1', status, duration: 900,
      ...(status === 'failed' ? { error: ERROR } : {}),
    }],
  };
  const answer = await fetch(at('/api/test-runs/submit'), {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body),
  });
  assert.equal(answer.status, 200, await answer.clone().text());
  return answer.json();
}

describe('source control', { concurrency: false }, () => {
  let browser;
  let page;
  let host;
  let culprit;
  let projectId;
  const complaints = [];

  before(async () => {
    host = await startCodeHost(TOKEN);
    const green = host.commit('Open the shop', { 'src/form.tsx': FORM, 'src/other.tsx': 'a\n' });
    host.commit('Describe it', { 'README.md': 'Words\n' });
    culprit = host.commit('Shorten labels', { 'src/form.tsx': FORM.replace('Place order', 'Buy') });
    const red = host.commit('Other things', { 'src/other.tsx': 'b\n' });
    ({ projectId } = await sendRun('passed', 9, green));
    await sendRun('failed', 8, red);
    browser = await chromium.launch({
      executablePath: process.env.CHROMIUM_PATH ?? '/usr/bin/chromium',
      args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
    });
    page = await (await browser.newContext({ viewport: { width: WIDTHS.desktop, height: 900 }, reducedMotion: 'reduce' })).newPage();
    page.on('pageerror', (error) => complaints.push(error.message));
  });

  after(async () => {
    await browser?.close();
    host?.stop();
    assert.deepEqual(complaints, []);
  });

  /** Looks at a page as it stands on a wide screen and on a phone, in both themes. */
  async function inspect(name) {
    const found = [];
    for (const width of Object.values(WIDTHS)) {
      for (const colorScheme of THEMES) {
        await page.setViewportSize({ width, height: 900 });
        await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
        found.push(...(await complaintsAbout(page, `${name}, ${colorScheme} at ${width} px`)));
        if (process.env.CALLBOARD_PICTURES) {
          await page.screenshot({ path: `${process.env.CALLBOARD_PICTURES}/${name.replaceAll(' ', '-')}-${width}-${colorScheme}.png`, fullPage: true });
        }
      }
    }
    await page.setViewportSize({ width: WIDTHS.desktop, height: 900 });
    assert.deepEqual(found.filter((complaint) => !complaint.includes(' jumps: ')), []);
  }

  test('a wrong token is named, and the right one connects', async () => {
    await page.goto(at('/settings/source-control'));
    await page.getByRole('link', { name: 'Change the repository of shop' }).click();
    const repository = page.getByRole('region', { name: 'Repository', exact: true });
    await repository.getByLabel('Address').fill(host.address);
    await repository.getByLabel('Provider').selectOption('github');
    await repository.getByLabel('Access token').fill('another-token');
    await repository.getByRole('button', { name: 'Save repository' }).click();
    await repository.getByText('A token is stored.').waitFor();
    await repository.getByRole('button', { name: 'Test connection' }).click();
    await repository.getByText(/rejected the access token/).waitFor();
    await repository.getByLabel('Access token').fill(TOKEN);
    await repository.getByRole('button', { name: 'Save repository' }).click();
    await page.waitForLoadState('networkidle');
    await repository.getByRole('button', { name: 'Test connection' }).click();
    await repository.getByText(/^Connected to acme\/shop on GitHub\. Newest commit on main: [0-9a-f]{8}\.$/).waitFor();
  });

  test('the cluster names the commit that broke the test', async () => {
    const [cluster] = (await getJson(`/api/projects/${projectId}/failure-clusters`)).items;
    await page.goto(at(`/failure-clusters/${cluster.id}`));
    const suspects = page.getByRole('region', { name: 'Suspects' });
    const first = suspects.getByRole('row').nth(1);
    await first.getByText('top suspect').waitFor();
    await first.getByRole('link', { name: 'Shorten labels' }).waitFor();
    await first.getByText('removes “Place order”, which the test looks for').waitFor();
    assert.equal(await first.getByRole('link').getAttribute('href'), `${host.address}/commit/${culprit}`);
    await inspect('a cluster with suspects');
    // The next visitor is answered from what is stored.
    const asked = host.requests.length;
    await page.reload();
    await first.getByText('top suspect').waitFor();
    assert.equal(host.requests.slice(asked).filter((path) => path.includes('/compare/') || /\/commits\/[0-9a-f]{40}$/.test(path)).length, 0);
  });

  test('the shared token serves a project without one', async () => {
    await fetch(at(`/api/projects/${projectId}`), {
      method: 'PATCH', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ scmToken: null }),
    });
    await page.goto(at('/settings/source-control'));
    await page.getByRole('row', { name: /shop/ }).getByText('none', { exact: true }).waitFor();
    const shared = page.getByRole('region', { name: 'Shared access token' });
    await shared.getByLabel('Repositories').fill('acme');
    await shared.getByLabel('Access token').fill(TOKEN);
    await shared.getByRole('button', { name: 'Save shared token' }).click();
    await shared.getByText(/each entry must be the address of a repository/).waitFor();
    await shared.getByLabel('Repositories').fill(`${new URL(host.address).origin}/acme/*`);
    await shared.getByRole('button', { name: 'Save shared token' }).click();
    await page.getByRole('row', { name: /shop/ }).getByText('shared', { exact: true }).waitFor();
    await inspect('source control settings');
    await page.getByRole('link', { name: 'Change the repository of shop' }).click();
    const repository = page.getByRole('region', { name: 'Repository', exact: true });
    await repository.getByRole('button', { name: 'Test connection' }).click();
    await repository.getByText(/^Connected to acme\/shop on GitHub\./).waitFor();
  });
});
