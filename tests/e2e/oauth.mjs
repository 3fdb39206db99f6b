/**
 * Signing in at a provider in real Chromium: the button, the way there and back, an account that
 * sees nothing yet, and linking refused for an identity of somebody else.
 * Needs `CALLBOARD_URL`: a service with authentication on, a provider and no accounts yet.
 * `CHROMIUM_PATH` when Chromium is not at /usr/bin/chromium.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { chromium } from '@playwright/test';
import { firstAdministrator } from './support/first-administrator.mjs';
import { serviceUrl } from './support/service.mjs';

let browser;
before(async () => {
  await firstAdministrator(serviceUrl);
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM_PATH ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
  });
});
after(() => browser?.close());

test('somebody new signs in at the provider and sees nothing yet', async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(new URL('/login', serviceUrl).href);
  await page.locator('a[href^="/api/auth/oauth/idp/login"]').click();
  await page.waitForURL((url) => url.pathname === '/' && url.origin === new URL(serviceUrl).origin);
  const me = await page.evaluate(() => fetch('/api/auth/me').then((answer) => answer.json()));
  assert.equal(me.authenticated, true);
  assert.deepEqual([me.user.username, me.user.name, me.user.role], ['grace@corp.example', 'Grace Hopper', 'user']);
  const projects = await page.evaluate(() => fetch('/api/projects').then((answer) => answer.json()));
  assert.deepEqual(projects.items, []);
  const [session] = (await context.cookies()).filter((cookie) => cookie.name.endsWith('svc_session'));
  assert.deepEqual([session.httpOnly, session.sameSite, session.path], [true, 'Lax', '/']);
  assert.equal((await context.cookies()).some((cookie) => cookie.name.endsWith('svc_oauth')), false);
  await context.close();
});

test('a way back that was not begun in this browser is explained on the sign-in page', async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(new URL('/api/auth/oauth/idp/callback?code=x&state=y', serviceUrl).href);
  assert.equal(new URL(page.url()).searchParams.get('error'), 'invalid-state');
  await page.getByText('took too long or was not begun in this browser').waitFor();
  await context.close();
});
