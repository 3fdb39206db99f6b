/**
 * From an empty settings page to a message about a branch that went red, in real Chromium and with
 * a real recipient. Needs `CALLBOARD_URL` of a service that holds nothing yet, asks nobody to sign
 * in, can store secrets and may reach 127.0.0.1; or, for the bell in the header,
 * `CALLBOARD_ACCOUNTS_URL` of a service with authentication on and without accounts.
 * `CHROMIUM_PATH` when Chromium is not at /usr/bin/chromium.
 */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { chromium } from '@playwright/test';
import { firstAdministrator } from './support/first-administrator.mjs';
import { THEMES, WIDTHS, complaintsAbout } from './support/look.mjs';
import { getJson, serviceUrl } from './support/service.mjs';

const accountsUrl = process.env.CALLBOARD_ACCOUNTS_URL;
if (!serviceUrl && !accountsUrl) {
  throw new Error('CALLBOARD_URL or CALLBOARD_ACCOUNTS_URL must name the running service, for instance CALLBOARD_URL=http://127.0.0.1:3000');
}

const at = (path) => new URL(path, serviceUrl ?? accountsUrl).href;
const LONGEST_WAIT_MS = 60_000;

/** A finished full run of one test on main. */
async function sendRun(status, minutesAgo, headers = {}) {
  const body = {
    projectName: 'shop', status, startTime: new Date(Date.now() - minutesAgo * 60_000).toISOString(), duration: 1_000,
    branch: 'main', isFullRun: true, metadata: { scm: { defaultBranch: 'main' } },
    testCases: [{
      title: 'pays by card', location: 'tests/pay.spec.ts:3:1', status, duration: 900,
      ...(status === 'failed' ? { error: 'Error: expect(received).toBe(expected)\n\nExpected: 3\nReceived: 4' } : {}),
    }],
  };
  const answer = await fetch(at('/api/test-runs/submit'), {
    method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body),
  });
  assert.equal(answer.status, 200, await answer.clone().text());
  return answer.json();
}

/** Looks at a page as it stands on a wide screen and on a phone, in both themes. */
async function inspected(page, name) {
  const found = [];
  for (const width of Object.values(WIDTHS)) {
    for (const colorScheme of THEMES) {
      await page.setViewportSize({ width, height: 900 });
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      found.push(...(await complaintsAbout(page, `${name}, ${colorScheme} at ${width} px`)));
      if (process.env.CALLBOARD_PICTURES) {
        await page.screenshot({ path: `${process.env.CALLBOARD_PICTURES}/${name.replaceAll(' ', '-')}-${width}-${colorScheme}.png` });
      }
    }
  }
  await page.setViewportSize({ width: WIDTHS.desktop, height: 900 });
  assert.deepEqual(found.filter((complaint) => !complaint.includes(' jumps: ')), []);
}

const launched = () => chromium.launch({
  executablePath: process.env.CHROMIUM_PATH ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
});

describe('the bell', { concurrency: false, skip: !accountsUrl }, () => {
  let browser;
  let page;
  let headers;
  const complaints = [];

  before(async () => {
    const { cookie, apiKey } = await firstAdministrator(accountsUrl);
    headers = { authorization: `Bearer ${apiKey}` };
    browser = await launched();
    const context = await browser.newContext({ viewport: { width: WIDTHS.desktop, height: 900 }, reducedMotion: 'reduce' });
    await context.addCookies([{ ...cookie, url: accountsUrl }]);
    page = await context.newPage();
    page.on('pageerror', (error) => complaints.push(error.message));
  });

  after(async () => {
    await browser?.close();
    assert.deepEqual(complaints, []);
  });

  test('Notify me on a project rings the bell of an open page, and asks for no permission', async () => {
    await page.addInitScript(() => {
      globalThis.permissionRequests = 0;
      Notification.requestPermission = async () => {
        globalThis.permissionRequests += 1;
        return 'default';
      };
    });
    const { projectId } = await sendRun('passed', 9, headers);
    await page.goto(at(`/projects/${projectId}`));
    const button = page.getByRole('button', { name: 'Notify me' });
    assert.equal(await button.getAttribute('aria-pressed'), 'false');
    await button.click();
    await page.getByText('You are notified from now on.').waitFor();
    assert.equal(await button.getAttribute('aria-pressed'), 'true');
    await page.goto(at('/settings'));
    await page.getByRole('link', { name: 'Notifications', exact: true }).first().waitFor();
    await sendRun('failed', 8, headers);
    await page.getByRole('link', { name: /^Notifications, \d+ unread$/ }).waitFor({ timeout: LONGEST_WAIT_MS });
    assert.equal(await page.evaluate(() => globalThis.permissionRequests), 0);
    await page.getByRole('link', { name: /^Notifications, \d+ unread$/ }).click();
    await page.getByRole('heading', { level: 1, name: 'Notifications' }).waitFor();
    await page.getByRole('link', { name: /main is red since run/ }).waitFor();
    await inspected(page, 'a list of notifications');
    await page.getByRole('link', { name: /main is red since run/ }).click();
    await page.waitForURL(/\/test-runs\/\d+$/);
    await inspected(page, 'a run under the bell');
  });

  test('what arrives while the list is open appears in it, and all can be marked as read', async () => {
    await page.goto(at('/notifications'));
    await sendRun('passed', 7, headers);
    await page.getByRole('link', { name: /main is green again/ }).waitFor({ timeout: LONGEST_WAIT_MS });
    await page.getByRole('button', { name: 'Mark all as read' }).click();
    await page.getByText('Marked as read.').waitFor();
    await page.locator('[data-bell][aria-label="Notifications"]').waitFor();
    await page.goto(at('/notifications?unread=true'));
    await page.getByRole('heading', { name: 'Nothing unread' }).waitFor();
    await inspected(page, 'nothing unread');
  });

  test('the settings show what one is notified about', async () => {
    await page.goto(at('/settings/notifications'));
    await page.getByRole('row', { name: /Branch went red/ }).getByText('shop').waitFor();
    await inspected(page, 'notifications of a person');
    await page.goto(at('/settings/mail'));
    await page.getByRole('heading', { level: 1, name: 'Mail' }).waitFor();
    await inspected(page, 'a mail server');
    await page.getByLabel('Host').fill('mail.example.org');
    await page.getByLabel('Sender').fill('nobody');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText(/must be a mail address such as/).waitFor();
  });

  test('the same button ends the notifications', async () => {
    const [project] = (await (await fetch(at('/api/projects'), { headers })).json()).items;
    await page.goto(at(`/projects/${project.id}`));
    await page.getByRole('button', { name: 'Notify me' }).click();
    await page.getByText('You are no longer notified.').waitFor();
    assert.deepEqual((await (await fetch(at('/api/subscriptions'), { headers })).json()).items, []);
  });
});

describe('notifications', { concurrency: false, skip: !serviceUrl }, () => {
  let browser;
  let page;
  let server;
  const received = [];
  const complaints = [];

  before(async () => {
    server = createServer((request, response) => {
      const parts = [];
      request.on('data', (part) => parts.push(part));
      request.on('end', () => {
        received.push(JSON.parse(Buffer.concat(parts).toString()));
        response.end('ok');
      });
    });
    await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
    browser = await launched();
    page = await (await browser.newContext({ viewport: { width: WIDTHS.desktop, height: 900 }, reducedMotion: 'reduce' })).newPage();
    page.on('pageerror', (error) => complaints.push(error.message));
  });

  after(async () => {
    await browser?.close();
    server?.close();
    assert.deepEqual(complaints, []);
  });

  /** The messages of an event, once there are some. */
  async function messages(event) {
    const until = Date.now() + LONGEST_WAIT_MS;
    for (;;) {
      const found = received.filter((message) => message.event === event);
      if (found.length > 0 || Date.now() > until) return found;
      await pause(200);
    }
  }

  const inspect = (name) => inspected(page, name);

  test('a channel is added and tested', async () => {
    await page.goto(at('/settings/notifications'));
    await page.getByText('No channels yet').waitFor();
    await inspect('no channels');
    await page.getByLabel('Name', { exact: true }).fill('Our receiver');
    await page.getByLabel('Type').selectOption('webhook');
    await page.getByLabel('Webhook address').fill(`http://127.0.0.1:${server.address().port}/hook`);
    await page.getByLabel('Signing secret').fill('a-secret-of-the-test');
    await page.getByRole('button', { name: 'Create channel' }).click();
    await page.getByRole('button', { name: 'Test Our receiver' }).click();
    await page.getByRole('heading', { name: 'Our receiver' }).waitFor();
    const [tested] = await messages('test');
    assert.equal(tested.payload.headline, 'Test message from Callboard');
    await page.getByRole('row', { name: /Test message/ }).waitFor();
    const sent = page.getByRole('row', { name: /Test message/ }).getByText('sent', { exact: true });
    for (const until = Date.now() + LONGEST_WAIT_MS; (await sent.count()) === 0 && Date.now() < until;) await page.reload();
    await sent.waitFor();
    await inspect('a delivery log');
  });

  test('a branch that goes red is reported once, with what broke', async () => {
    await page.goto(at('/settings/notifications'));
    await page.getByRole('button', { name: 'Create subscription' }).click();
    await page.getByRole('row', { name: /Branch went red, Branch is green again/ }).waitFor();
    // What is said stands at the form; its row may be half under the header of the page then.
    await page.evaluate(() => scrollTo(0, 0));
    await inspect('a subscription');
    await sendRun('passed', 3);
    const { runId } = await sendRun('failed', 2);
    const told = await messages('run.failed.default_branch');
    assert.deepEqual(told.map((message) => message.payload.runId), [runId]);
    assert.match(told[0].payload.facts.join('\n'), /1 failed/);
    // The recipient has the message before its answer is written down.
    const sent = async () => (await getJson('/api/channels/1/deliveries?state=sent')).items.length;
    for (const until = Date.now() + LONGEST_WAIT_MS; (await sent()) < 2 && Date.now() < until;) await pause(200);
    assert.equal(await sent(), 2, 'the test message and this one');
    // The message leads to the run.
    await page.goto(told[0].payload.url);
    await page.getByRole('heading', { level: 1 }).waitFor();
    assert.match(page.url(), new RegExp(`/test-runs/${runId}$`));
  });

  test('a subscription becomes a weekly digest with quiet hours', async () => {
    await page.goto(at('/settings/notifications'));
    await page.getByRole('link', { name: /^Edit Branch went red/ }).click();
    await page.getByRole('heading', { name: 'Edit subscription' }).waitFor();
    assert.equal(await page.getByLabel('Digest at').isVisible(), false);
    await page.getByLabel('Send', { exact: true }).selectOption({ label: 'One digest' });
    await page.getByLabel('Digest on').selectOption({ label: 'Monday' });
    await page.getByLabel('Digest at').fill('09:30');
    await page.getByLabel('Quiet hours').selectOption({ label: 'Send nothing from … to …' });
    await page.getByLabel('Quiet from').fill('20:00');
    await page.getByLabel('Quiet until').fill('07:30');
    await page.getByLabel('Time zone').fill('Mars/Base');
    await inspect('the form of a digest');
    await page.getByRole('button', { name: 'Save subscription' }).click();
    await page.getByText(/must be an IANA time zone such as Europe\/Berlin/).waitFor();
    await page.getByLabel('Time zone').fill('Europe/Berlin');
    await page.getByRole('button', { name: 'Save subscription' }).click();
    await page.getByText('Every Monday at 09:30, not from 20:00 to 07:30 (Europe/Berlin)').waitFor();
    await inspect('a digest');
    const [subscription] = (await getJson('/api/subscriptions')).items;
    assert.deepEqual(subscription.quietHours, { from: '20:00', to: '07:30' });
    assert.equal(subscription.filters.defaultBranchOnly, true, 'what was not changed is as before');
  });

  test('a channel is renamed, and its limit is lowered', async () => {
    await page.goto(at('/settings/notifications/channels/1'));
    await page.getByLabel('Name', { exact: true }).fill('Receiver of ours');
    await page.getByLabel('Messages per hour').fill('5');
    await page.getByRole('button', { name: 'Save channel' }).click();
    await page.getByRole('heading', { name: 'Receiver of ours', level: 1 }).waitFor();
    const [channel] = (await getJson('/api/channels')).items;
    assert.equal(channel.hourlyLimit, 5);
    await page.getByLabel('Name', { exact: true }).fill('Our receiver');
    await page.getByRole('button', { name: 'Save channel' }).click();
    await page.getByRole('heading', { name: 'Our receiver', level: 1 }).waitFor();
  });

  test('a suggestion fills the form in, conditions are kept, and a subscription is muted', async () => {
    await page.goto(at('/settings/notifications'));
    await page.getByRole('link', { name: 'A daily digest of new failures' }).click();
    assert.equal(await page.getByLabel('Send', { exact: true }).inputValue(), 'digest');
    assert.equal(await page.getByLabel('New failure', { exact: true }).isChecked(), true);
    assert.equal((await getJson('/api/subscriptions')).items.length, 1, 'a suggestion alone turns nothing on');
    await page.getByText('More conditions').click();
    await page.getByLabel('Owners').fill('@team\n@other');
    await page.getByLabel('Test tags').fill('smoke');
    await page.getByLabel('Failed', { exact: true }).check();
    await inspect('the form with all conditions');
    await page.getByRole('button', { name: 'Create subscription' }).click();
    const row = page.getByRole('row', { name: /New failure, Fixed failure is back/ });
    await row.getByText('default branch, failed, tests of @team, tests of @other, tests with @smoke').waitFor();
    const [, made] = (await getJson('/api/subscriptions')).items;
    assert.deepEqual([made.filters.owners, made.filters.tags, made.filters.statuses], [['@team', '@other'], ['smoke'], ['failed']]);
    await row.getByRole('link', { name: /^Edit/ }).click();
    await page.getByLabel('Mute', { exact: true }).selectOption({ label: 'For 3 days' });
    await page.getByRole('button', { name: 'Save subscription' }).click();
    await page.getByText(/^muted, ends in/).waitFor();
    await inspect('a muted subscription');
  });

  test('a channel can be paused and deleted', async () => {
    await page.goto(at('/settings/notifications'));
    await page.getByRole('button', { name: 'Pause Our receiver' }).click();
    await page.getByText('paused', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Delete Our receiver' }).click();
    const question = page.getByRole('dialog', { name: /^Delete “Our receiver”/ });
    await question.getByRole('button', { name: 'Delete channel' }).click();
    await page.getByText('No channels yet').waitFor();
    assert.deepEqual((await getJson('/api/subscriptions')).items, []);
  });

  test('a channel of Slack is written to by a bot, whose token is not shown again', async () => {
    await page.getByLabel('Name', { exact: true }).fill('#releases');
    await page.getByLabel('Connect by').selectOption('bot');
    assert.equal(await page.getByLabel('Incoming webhook').isVisible(), false);
    await page.getByLabel('Channel ID').fill('#releases');
    await page.getByLabel('Bot token', { exact: true }).fill('xoxb-1-2-not-a-real-token');
    await inspect('the form of a bot');
    await page.getByRole('button', { name: 'Create channel' }).click();
    await page.getByText(/must be the id of a channel of Slack/).waitFor();
    await page.getByLabel('Channel ID').fill('C0123456789');
    await page.getByRole('button', { name: 'Create channel' }).click();
    await page.getByRole('link', { name: '#releases' }).click();
    await page.getByLabel('New bot token', { exact: true }).waitFor();
    await inspect('a channel of a bot');
    const [channel] = (await getJson('/api/channels')).items;
    assert.deepEqual([channel.type, channel.target], ['slack', 'channel C0123456789']);
    assert.doesNotMatch(await page.content(), /not-a-real-token/);
  });
});
