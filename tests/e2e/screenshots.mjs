/**
 * Writes every page in both themes and on two widths to target/screenshots/, from a service
 * that `tests/demo/demo.mjs` has filled. Needs `CALLBOARD_URL`; `CHROMIUM_PATH` when Chromium
 * is not at /usr/bin/chromium. With `CALLBOARD_EMPTY_URL`, a service that holds nothing, and
 * `CALLBOARD_ACCOUNTS_URL`, one that asks who is calling and has no accounts yet, also the pages
 * of those. Arguments name the pages to write; none means all.
 */
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from '@playwright/test';
import { startLiveRun } from '../demo/live.mjs';
import { beforeAccounts, makeAccounts } from './support/account-pages.mjs';
import { demoPages } from './support/demo-pages.mjs';
import { THEMES, WIDTHS } from './support/look.mjs';
import { serviceUrl } from './support/service.mjs';

if (!serviceUrl) {
  throw new Error('CALLBOARD_URL must name the running service, for instance CALLBOARD_URL=http://127.0.0.1:3000');
}

const folder = fileURLToPath(new URL('../../target/screenshots/', import.meta.url));
const HEIGHTS = { desktop: 900, phone: 844 };
/** Pages are longer than the screen; no picture is taller than this. */
const MAX_HEIGHT = 2_600;

const { CALLBOARD_EMPTY_URL: emptyUrl, CALLBOARD_ACCOUNTS_URL: accountsUrl } = process.env;
const wanted = process.argv.slice(2);
let count = 0;

/** Pictures of some pages of one service; `cookie` is the session of who looks. */
async function picture(browser, origin, all, cookie) {
  const pages = Object.entries(all).filter(([name]) => wanted.length === 0 || wanted.includes(name));
  for (const theme of THEMES) {
    for (const [device, width] of Object.entries(WIDTHS)) {
      const context = await browser.newContext({ viewport: { width, height: HEIGHTS[device] }, colorScheme: theme, reducedMotion: 'reduce' });
      if (cookie) await context.addCookies([{ ...cookie, url: origin }]);
      const page = await context.newPage();
      for (const [name, { address, act, part, status = 200 }] of pages) {
        await page.setViewportSize({ width, height: HEIGHTS[device] });
        const response = await page.goto(new URL(address, origin).href, { waitUntil: 'load' });
        if (response && response.status() !== status) throw new Error(`${name} answered ${response.status()}: ${address}`);
        await act?.(page);
        const whole = await page.evaluate(() => document.documentElement.scrollHeight);
        if (!act) await page.setViewportSize({ width, height: Math.min(Math.max(whole, HEIGHTS[device]), MAX_HEIGHT) });
        // Pictures below the first screen are fetched when they come near.
        await page.evaluate(() => Promise.all([...document.images].map((image) => {
          image.loading = 'eager';
          return image.decode().catch(() => undefined);
        })));
        await (part ? page.locator(part) : page).screenshot({ path: path.join(folder, `${name}-${device}-${theme}.png`) });
        count += 1;
      }
      await context.close();
    }
  }
}

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM_PATH ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
});
try {
  await mkdir(folder, { recursive: true });
  if (emptyUrl) await picture(browser, emptyUrl, { welcome: { address: '/' } });
  if (accountsUrl) {
    await picture(browser, accountsUrl, beforeAccounts);
    const { cookie, entrance, pages } = await makeAccounts(accountsUrl);
    await picture(browser, accountsUrl, entrance);
    await picture(browser, accountsUrl, pages, cookie);
  }
  // Slowly enough to go on until its last picture.
  const live = await startLiveRun(9_000);
  await picture(browser, serviceUrl, { ...(await demoPages()), 'run-live': { address: `/test-runs/${live.runId}` } });
  console.log(`${count} pictures in ${path.relative(process.cwd(), folder)}`);
} finally {
  await browser.close();
}
// The live run has been looked at: it need not come to its end.
process.exit();
