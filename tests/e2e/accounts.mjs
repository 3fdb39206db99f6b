/**
 * Accounts in real Chromium, from an empty installation on: the first administrator, another
 * account with one project, what that account sees and does not see, an API key, signing out;
 * and every page of accounts in both themes and on two widths.
 * Needs `CALLBOARD_ACCOUNTS_URL`: a service with authentication on and without accounts.
 * `CHROMIUM_PATH` when Chromium is not at /usr/bin/chromium.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { chromium } from '@playwright/test';
import { THEMES, WIDTHS, complaintsAbout } from './support/look.mjs';

const serviceUrl = process.env.CALLBOARD_ACCOUNTS_URL;
if (!serviceUrl) {
  throw new Error('CALLBOARD_ACCOUNTS_URL must name a service with authentication on that has no accounts yet');
}

const at = (path) => new URL(path, serviceUrl).href;
const secret = () => randomBytes(12).toString('base64url');
const ADMINISTRATOR = { username: 'ada', password: secret() };
/** Markup in a name: shown, never run. */
const READER = { username: 'rosa <img src=x onerror="window.wasRun=1">', password: secret() };

describe('accounts', { concurrency: false }, () => {
  let browser;
  let ada;
  let rosa;
  const projects = {};
  let userPage;

  before(async () => {
    browser = await chromium.launch({
      executablePath: process.env.CHROMIUM_PATH ?? '/usr/bin/chromium',
      args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
    });
    const visitor = async () => (await browser.newContext({ viewport: { width: 1440, height: 900 }, reducedMotion: 'reduce' })).newPage();
    [ada, rosa] = [await visitor(), await visitor()];
  });

  after(() => browser?.close());

  async function signIn(page, { username, password }) {
    await page.getByLabel('Username').fill(username);
    await page.getByLabel('Password', { exact: true }).fill(password);
    await page.getByRole('button', { name: 'Sign in' }).click();
  }

  test('the first visit creates the administrator and shows the page that was asked for', async () => {
    const response = await ada.goto(at('/projects'));
    assert.equal(response.status(), 401);
    await ada.getByRole('heading', { name: 'Welcome to Callboard' }).waitFor();
    await ada.getByLabel('Username').fill(ADMINISTRATOR.username);
    await ada.getByLabel('Password', { exact: true }).fill('short');
    await ada.getByRole('button', { name: 'Create the administrator' }).click();
    const password = ada.getByLabel('Password', { exact: true });
    await ada.waitForFunction(() => document.activeElement?.getAttribute('aria-invalid') === 'true');
    const described = (await password.getAttribute('aria-describedby')).split(' ');
    assert.match(await ada.locator(`#${described.at(-1)}`).textContent(), /at least \d+ characters/);
    await password.fill(ADMINISTRATOR.password);
    await ada.getByRole('button', { name: 'Create the administrator' }).click();
    await ada.getByRole('heading', { name: 'Projects', level: 1 }).waitFor();
    assert.equal(new URL(ada.url()).pathname, '/projects');
    for (const name of ['shop', 'bank']) {
      const sent = await ada.request.post(at('/api/test-runs/submit'), {
        data: {
          projectName: name, status: 'passed', startTime: new Date().toISOString(), duration: 5,
          testCases: [{ title: 'works', status: 'passed', duration: 5, location: 'tests/a.spec.ts:1:1' }],
        },
      });
      assert.equal(sent.status(), 200, await sent.text());
      projects[name] = (await sent.json()).projectId;
    }
  });

  test('an administrator creates an account and assigns one project', async () => {
    await ada.goto(at('/settings/users'));
    await ada.getByRole('button', { name: 'New user' }).click();
    const dialog = ada.getByRole('dialog', { name: 'New user' });
    await dialog.getByLabel('Username').fill(ADMINISTRATOR.username.toUpperCase());
    await dialog.getByLabel('Password (optional)').fill(READER.password);
    await dialog.getByRole('button', { name: 'Create user' }).click();
    await dialog.getByText('Another account has this username').waitFor();
    await dialog.getByLabel('Username').fill(READER.username);
    await dialog.getByRole('button', { name: 'Create user' }).click();
    await ada.getByRole('heading', { name: READER.username, level: 1 }).waitFor();
    userPage = new URL(ada.url()).pathname;
    assert.match(userPage, /^\/settings\/users\/\d+$/);
    const access = ada.getByRole('region', { name: 'Projects' });
    await access.getByPlaceholder('Search').fill('sho');
    await access.getByRole('checkbox', { name: 'shop' }).check();
    await access.getByRole('button', { name: 'Save projects' }).click();
    await ada.getByText('Projects saved.').waitFor();
    assert.equal(await access.getByRole('checkbox', { name: 'shop' }).isChecked(), true);
    await ada.goto(at(`/projects/${projects.shop}?tab=members`));
    assert.equal(await ada.getByRole('checkbox', { name: READER.username }).isChecked(), true);
    await ada.goto(at(`/projects/${projects.bank}?tab=members`));
    assert.equal(await ada.getByRole('checkbox', { name: READER.username }).isChecked(), false);
  });

  test('somebody signs in where they are, and sees their project only', async () => {
    const response = await rosa.goto(at(`/projects/${projects.bank}`));
    assert.equal(response.status(), 401);
    await signIn(rosa, { ...READER, password: 'a wrong one' });
    await rosa.getByRole('alert').filter({ hasText: /password/ }).waitFor();
    await signIn(rosa, READER);
    await rosa.getByRole('heading', { name: 'No access' }).waitFor();
    assert.equal(new URL(rosa.url()).pathname, `/projects/${projects.bank}`);
    await rosa.getByText('assigned').first().waitFor();
    await rosa.goto(at('/projects'));
    await rosa.getByRole('main').getByRole('link', { name: 'shop' }).waitFor();
    assert.equal(await rosa.getByText('bank', { exact: true }).count(), 0);
    const user = await rosa.goto(at(userPage));
    assert.equal(user.status(), 403);
    await rosa.getByRole('heading', { name: 'No access' }).waitFor();
    const members = await rosa.goto(at(`/projects/${projects.shop}?tab=members`));
    assert.equal(members.status(), 403);
  });

  test('the key icon in the list of users leads to the keys of an account', async () => {
    await rosa.goto(at('/settings/users'));
    assert.deepEqual(await rosa.locator('table.users tbody .row-link').allTextContents(), [READER.username]);
    assert.equal(await rosa.getByRole('button', { name: 'New user' }).count(), 0);
    await rosa.getByRole('link', { name: `API keys of ${READER.username}` }).click();
    await rosa.getByRole('heading', { name: `API keys of ${READER.username}`, level: 1 }).waitFor();
    await rosa.getByRole('button', { name: 'New key' }).click();
    const dialog = rosa.getByRole('dialog', { name: 'New API key' });
    await dialog.getByLabel('Name', { exact: true }).fill('laptop');
    await dialog.getByLabel('Expires after').selectOption('');
    await dialog.getByRole('button', { name: 'Create key' }).click();
    await dialog.locator('#created-key-value', { hasText: 'pd_' }).waitFor();
    const key = (await dialog.locator('#created-key-value').textContent()).trim();
    await dialog.getByRole('button', { name: 'Done' }).click();
    await rosa.getByRole('cell', { name: /^laptop/ }).getByText(key.slice(0, 11)).waitFor();
    const answered = async () => (await fetch(at('/api/projects'), { headers: { authorization: `Bearer ${key}` } })).status;
    assert.equal(await answered(), 200);
    // An administrator revokes the keys of others the same way.
    await ada.goto(at('/settings/users'));
    await ada.getByRole('link', { name: `API keys of ${READER.username}` }).click();
    await ada.getByRole('button', { name: 'Revoke laptop' }).click();
    await ada.getByRole('dialog').getByRole('button', { name: 'Revoke key' }).click();
    await ada.getByText('Key revoked.').waitFor();
    assert.equal(await answered(), 401);
  });

  test('an API key is shown once and opens what its owner reaches', async () => {
    await rosa.goto(at('/settings/account'));
    await rosa.getByRole('button', { name: 'New key' }).click();
    const dialog = rosa.getByRole('dialog', { name: 'New API key' });
    await dialog.getByLabel('Name', { exact: true }).fill('nightly');
    await dialog.getByLabel('Permissions').selectOption('read');
    await dialog.getByRole('button', { name: 'Create key' }).click();
    await dialog.getByRole('heading', { name: 'Copy the key now' }).waitFor();
    const key = (await dialog.locator('#created-key-value').textContent()).trim();
    assert.match(key, /^pd_[0-9a-f]{64}$/);
    await dialog.getByRole('button', { name: 'Done' }).click();
    await rosa.getByRole('cell', { name: /^nightly/ }).waitFor();
    assert.equal((await rosa.content()).includes(key), false);
    const list = () => fetch(at('/api/projects'), { headers: { authorization: `Bearer ${key}` } });
    assert.deepEqual((await (await list()).json()).items.map(({ name }) => name), ['shop']);
    await rosa.getByRole('button', { name: 'Revoke nightly' }).click();
    await rosa.getByRole('dialog').getByRole('button', { name: 'Revoke key' }).click();
    await rosa.getByText('Key revoked.').waitFor();
    assert.equal((await list()).status, 401);
  });

  test('an invited person chooses a password, and ends the session they do not know', async () => {
    const invited = { username: 'grace@example.org', password: secret() };
    await ada.goto(at('/settings/users'));
    await ada.getByRole('button', { name: 'Invite', exact: true }).click();
    const dialog = ada.getByRole('dialog', { name: 'Invite user' });
    await dialog.getByLabel('E-mail address').fill(invited.username);
    await dialog.getByRole('button', { name: 'Invite', exact: true }).click();
    await dialog.getByRole('heading', { name: 'Invitation ready' }).waitFor();
    const link = new URL((await dialog.locator('#invited-url').textContent()).trim());
    await dialog.getByRole('button', { name: 'Done' }).click();
    await ada.getByRole('cell', { name: invited.username }).first().waitFor();

    const [grace, elsewhere] = [await (await browser.newContext()).newPage(), await (await browser.newContext()).newPage()];
    await grace.goto(at(`${link.pathname}${link.hash}`));
    await grace.getByRole('heading', { name: 'Welcome to Callboard' }).waitFor();
    await grace.getByLabel('New password').fill(invited.password);
    await grace.getByRole('button', { name: 'Set the password' }).click();
    await grace.getByText('Password set.').waitFor();
    for (const page of [grace, elsewhere]) {
      await page.goto(at('/settings/account'));
      await signIn(page, invited);
      await page.getByRole('heading', { name: 'Account', level: 1 }).waitFor();
    }
    await grace.reload();
    const sessions = grace.getByRole('region', { name: 'Sessions' });
    assert.equal(await sessions.getByRole('row').count(), 3);
    await sessions.getByRole('button', { name: /^End/ }).click();
    await grace.getByRole('dialog').getByRole('button', { name: 'End session' }).click();
    await grace.getByText('Session ended.').waitFor();
    assert.equal((await elsewhere.goto(at('/projects'))).status(), 401);
    assert.equal((await grace.goto(at('/projects'))).status(), 200);
    await grace.goto(at(`${link.pathname}${link.hash}`));
    await grace.getByLabel('New password').fill(invited.password);
    await grace.getByRole('button', { name: 'Set the password' }).click();
    await grace.getByRole('alert').filter({ hasText: /not valid any more/ }).waitFor();
    await Promise.all([grace.context().close(), elsewhere.context().close()]);
  });

  test('a key for one project ends on its day and is not more than its owner', async () => {
    await ada.goto(at('/settings/account'));
    await ada.getByRole('button', { name: 'New key' }).click();
    const dialog = ada.getByRole('dialog', { name: 'New API key' });
    await dialog.getByLabel('Name', { exact: true }).fill('one project');
    await dialog.getByLabel('Expires after').selectOption('30');
    await dialog.getByRole('radio', { name: /^Selected projects/ }).check();
    await dialog.getByRole('checkbox', { name: 'bank' }).check();
    await dialog.getByRole('button', { name: 'Create key' }).click();
    await dialog.getByRole('heading', { name: 'Copy the key now' }).waitFor();
    const key = (await dialog.locator('#created-key-value').textContent()).trim();
    await dialog.getByRole('button', { name: 'Done' }).click();
    const row = ada.getByRole('row').filter({ hasText: 'one project' });
    const ends = await row.getByRole('cell').nth(3).textContent();
    assert.match(ends, /\d/);
    const headers = { authorization: `Bearer ${key}` };
    const list = await (await fetch(at('/api/projects'), { headers })).json();
    assert.deepEqual(list.items.map(({ name }) => name), ['bank']);
    assert.equal((await fetch(at(`/api/projects/${projects.shop}`), { headers })).status, 403);
    assert.equal((await fetch(at('/api/audit'), { headers })).status, 403);
  });

  test('the keyboard opens and leaves a dialog', async () => {
    const opener = rosa.getByRole('button', { name: 'New key' });
    await opener.focus();
    await rosa.keyboard.press('Enter');
    await rosa.getByRole('dialog', { name: 'New API key' }).waitFor();
    await rosa.keyboard.press('Escape');
    await rosa.getByRole('dialog', { name: 'New API key' }).waitFor({ state: 'hidden' });
    assert.equal(await opener.evaluate((button) => document.activeElement === button), true);
  });

  test('on a phone an administrator adds an account and narrows what it reaches', async () => {
    const phone = { viewport: { width: WIDTHS.phone, height: 844 }, reducedMotion: 'reduce', hasTouch: true, isMobile: true };
    const context = await browser.newContext({ ...phone, storageState: await ada.context().storageState() });
    const page = await context.newPage();
    const newcomer = { username: 'pim', password: secret() };
    await page.goto(at('/'));
    await page.getByRole('button', { name: 'Menu' }).click();
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Settings' }).click();
    await page.getByRole('navigation', { name: 'Settings' }).getByRole('link', { name: 'Users' }).click();
    await page.getByRole('button', { name: 'New user' }).click();
    const dialog = page.getByRole('dialog', { name: 'New user' });
    await dialog.getByLabel('Username').fill(newcomer.username);
    await dialog.getByLabel('Password (optional)').fill(newcomer.password);
    await dialog.getByRole('radio', { name: /^All projects/ }).check();
    await dialog.getByRole('button', { name: 'Create user' }).click();
    await page.getByRole('heading', { name: newcomer.username, level: 1 }).waitFor();

    const pim = await (await browser.newContext(phone)).newPage();
    await pim.goto(at('/projects'));
    await signIn(pim, newcomer);
    await pim.getByRole('main').getByRole('link', { name: 'shop', exact: true }).waitFor();
    await pim.getByRole('main').getByRole('link', { name: 'bank', exact: true }).waitFor();

    const access = page.getByRole('region', { name: 'Projects' });
    await access.getByRole('radio', { name: /^Selected projects/ }).check();
    await access.getByRole('checkbox', { name: 'bank' }).check();
    await access.getByRole('button', { name: 'Save projects' }).click();
    await page.getByText('Projects saved.').waitFor();

    await pim.goto(at('/projects'));
    await pim.getByRole('main').getByRole('link', { name: 'bank', exact: true }).waitFor();
    assert.equal(await pim.getByRole('main').getByRole('link', { name: 'shop', exact: true }).count(), 0);
    const refused = await pim.goto(at(`/projects/${projects.shop}`));
    assert.equal(refused.status(), 403);
    await pim.getByRole('heading', { name: 'No access' }).waitFor();
    await pim.context().close();
    await context.close();
  });

  test('what was done stands in the audit log', async () => {
    await ada.goto(at('/settings/audit'));
    await ada.getByRole('cell', { name: /^Created account/ }).first().waitFor();
    await ada.getByRole('combobox', { name: 'What' }).selectOption('key');
    await ada.getByRole('cell', { name: /^Revoked API key/ }).first().waitFor();
    assert.equal(await ada.getByRole('cell', { name: /^Created account/ }).count(), 0);
    assert.match(ada.url(), /action=key/);
  });

  for (const theme of THEMES) {
    for (const [device, width] of Object.entries(WIDTHS)) {
      test(`the pages are in order on a ${device}, ${theme}`, async () => {
        const complaints = [];
        const look = async (storageState, pages) => {
          const context = await browser.newContext({ storageState, viewport: { width, height: 844 }, colorScheme: theme, reducedMotion: 'reduce' });
          const page = await context.newPage();
          page.on('pageerror', (error) => complaints.push(`${page.url()} threw ${error.message}`));
          page.on('request', (request) => {
            if (request.url() !== 'about:blank' && new URL(request.url()).origin !== new URL(serviceUrl).origin) complaints.push(`${page.url()} asked for ${request.url()}`);
          });
          for (const [name, [address, status, open, heading]] of Object.entries(pages)) {
            // What stands behind a # alone does not load a page.
            await page.goto('about:blank');
            const response = await page.goto(at(address));
            if (response.status() !== status) complaints.push(`${name} answered ${response.status()}`);
            if (open) await page.getByRole('button', { name: open }).first().click();
            if (heading) await page.getByRole('heading', { name: heading, level: 1 }).waitFor();
            if (await page.evaluate(() => window.wasRun)) complaints.push(`${name} ran markup out of a name`);
            complaints.push(...(await complaintsAbout(page, name)));
          }
          await context.close();
        };
        await look(undefined, {
          'sign-in in place': ['/projects', 401],
          'sign-in': ['/login', 200],
          'refused sign-in': ['/login?error=account-exists', 200],
          'set-up, done': ['/setup', 200],
          'reset without token': ['/reset', 200, null, 'This link is not complete'],
          reset: [`/reset#token=srp_${'a'.repeat(37)}`, 200, null, 'Set a new password'],
          invitation: [`/reset#token=siv_${'a'.repeat(37)}`, 200, null, 'Welcome to Callboard'],
          unsubscribe: [`/unsubscribe#token=sun1.${'a'.repeat(37)}`, 200, null, 'Unsubscribe from these emails?'],
          'verify without token': ['/verify', 200],
          'verify, used up': [`/verify#token=sve_${'a'.repeat(37)}`, 200, null, 'This link no longer works'],
          'refused by form': ['/login?error=invalid_credentials&next=/projects', 200],
        });
        await look(await ada.context().storageState(), {
          instance: ['/settings', 200],
          mcp: ['/mcp', 200],
          'projects in the settings': ['/settings/projects', 200],
          'source control': ['/settings/source-control', 200],
          account: ['/settings/account', 200],
          'new key': ['/settings/account', 200, 'New key'],
          users: ['/settings/users', 200],
          'users, none found': ['/settings/users?q=nobody&role=reporter&state=disabled', 200],
          'new user': ['/settings/users', 200, 'New user'],
          invite: ['/settings/users', 200, 'Invite'],
          user: [userPage, 200],
          'keys of a user': [`${userPage}/keys`, 200],
          'delete user': [userPage, 200, 'Delete account…'],
          members: [`/projects/${projects.shop}?tab=members`, 200],
          audit: ['/settings/audit', 200],
        });
        await look(await rosa.context().storageState(), {
          'no access': [`/projects/${projects.bank}`, 403],
          'account of a reader': ['/settings/account', 200],
          'users of a reader': ['/settings/users', 200],
        });
        assert.deepEqual(complaints, []);
      });
    }
  }

  test('a link of a mail that is used up leads to where one asks for another', async () => {
    const context = await browser.newContext();
    const page = await context.newPage();
    let answer;
    const answered = new Promise((resolve) => { answer = resolve; });
    await page.route('**/api/auth/verify-email?*', async (route) => {
      await answered;
      await route.continue();
    });
    await page.goto(at(`/verify#token=sve_${'a'.repeat(37)}`));
    await page.locator('form[aria-busy="true"]').waitFor();
    for (const theme of THEMES) {
      await page.emulateMedia({ colorScheme: theme, reducedMotion: 'reduce' });
      assert.deepEqual(await complaintsAbout(page, `a form that waits for its answer, ${theme}`), []);
    }
    answer();
    await page.getByRole('alert').filter({ hasText: 'not valid any more' }).waitFor();
    await page.getByRole('button', { name: 'Confirm' }).waitFor({ state: 'hidden' });
    assert.equal(await page.getByRole('link', { name: 'account page' }).getAttribute('href'), '/settings/account');
    await context.close();
  });

  test('signing in and out work where no script runs', async () => {
    const context = await browser.newContext({ javaScriptEnabled: false });
    const page = await context.newPage();
    const asked = `/projects/${projects.shop}?tab=cases&q=works`;
    assert.equal((await page.goto(at(asked))).status(), 401);
    await signIn(page, { ...READER, password: 'a wrong one' });
    await page.getByRole('alert').filter({ hasText: 'The username or the password is wrong.' }).waitFor();
    assert.ok(!page.url().includes('wrong%20one'));
    await signIn(page, READER);
    await page.getByRole('heading', { name: 'shop', level: 1 }).waitFor();
    assert.equal(page.url(), at(asked));
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.waitForURL(at('/login'));
    assert.equal((await page.goto(at('/projects'))).status(), 401);
    for (const path of ['/reset#token=srp_x', '/verify#token=sve_x']) {
      await page.goto(at(path));
      // Searching for text leaves out what stands in a noscript.
      await page.locator('noscript h1').waitFor();
      assert.equal(await page.getByText('This link is not complete').isVisible(), false, `${path}: it may well be complete`);
    }
    await context.close();
  });

  test('signing out closes the door', async () => {
    await rosa.goto(at('/'));
    await rosa.getByRole('button', { name: 'Sign out' }).click();
    await rosa.waitForURL('**/login');
    const response = await rosa.goto(at('/projects'));
    assert.equal(response.status(), 401);
    await rosa.getByRole('heading', { name: 'Sign in' }).waitFor();
    const api = await rosa.request.get(at('/api/projects'));
    assert.equal(api.status(), 401);
    assert.match(api.headers()['content-type'], /^application\/json/);
  });
});
