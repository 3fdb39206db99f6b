/**
 * A read-only demo in real Chromium: every page says so, and offers nothing it would refuse.
 * Needs `CALLBOARD_URL` of a service with `SERVICE_DEMO=true`; `CHROMIUM_PATH` when Chromium is
 * not at /usr/bin/chromium.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { chromium } from '@playwright/test';
import { THEMES, WIDTHS, complaintsAbout } from './support/look.mjs';
import { serviceUrl } from './support/service.mjs';

if (!serviceUrl) {
  throw new Error('CALLBOARD_URL must name a running demo, for instance CALLBOARD_URL=http://127.0.0.1:3000');
}

const LINE = 'This is a demo: you can look at everything, nothing can be changed.';
const PAGES = ['/', '/projects', '/analytics', '/settings', '/settings/projects', '/settings/tags', '/settings/flakiness', '/settings/retention', '/settings/storage', '/settings/users'];

describe('a demo', () => {
  let browser;

  before(async () => {
    browser = await chromium.launch({
      executablePath: process.env.CHROMIUM_PATH ?? '/usr/bin/chromium',
      args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
    });
  });

  after(() => browser?.close());

  for (const [device, width] of Object.entries(WIDTHS)) {
    test(`says on every page that it is one, and offers no change, on a ${device}`, async () => {
      const complaints = [];
      for (const colorScheme of THEMES) {
        const context = await browser.newContext({ viewport: { width, height: 844 }, colorScheme, reducedMotion: 'reduce' });
        const page = await context.newPage();
        for (const address of PAGES) {
          await page.goto(new URL(address, serviceUrl).href);
          await page.getByText(LINE).waitFor();
          const offered = page.locator('form[data-api] button[type="submit"]:not(:disabled):visible, [data-opens]:visible');
          complaints.push(...(await offered.allInnerTexts()).map((text) => `${address} offers ${text}`));
          complaints.push(...(await complaintsAbout(page, `${address}, ${colorScheme}`)));
        }
        await context.close();
      }
      assert.deepEqual(complaints, []);
    });
  }

  test('refuses what is sent all the same, with the sentence of its pages', async () => {
    const page = await browser.newPage();
    await page.goto(new URL('/settings/retention', serviceUrl).href);
    const [status, body] = await page.evaluate(async () => {
      const headers = { 'content-type': 'application/json' };
      const answer = await fetch('/api/settings/retention', { method: 'PATCH', headers, body: '{"preset":"lean"}' });
      return [answer.status, await answer.json()];
    });
    assert.equal(status, 403);
    assert.equal(body.message, LINE);
    await page.close();
  });
});
