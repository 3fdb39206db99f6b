import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test as base } from '@playwright/test';
import { extendCallboard } from 'callboard-reporter';

/** Answers pages, a script and a style sheet; other paths get 404, and `/never` gets nothing. */
async function listen(): Promise<http.Server> {
  const server = http.createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://app');
    if (pathname === '/never') return;
    const types: Record<string, string> = { '/': 'text/html', '/other': 'text/html', '/app.js': 'text/javascript', '/app.css': 'text/css' };
    response.writeHead(types[pathname] ? 200 : 404, { 'content-type': types[pathname] ?? 'text/plain' });
    const refused = searchParams.get('refused');
    response.end(pathname !== '/' ? '' : `<!doctype html><title>App</title>
      <link rel="stylesheet" href="/app.css"><link rel="stylesheet" href="http://127.0.0.1:${refused}/theme.css?key=QUERY-SECRET">
      <script src="/app.js"></script><script src="/gone.js"></script><script src="http://127.0.0.1:${refused}/vendor.js"></script>
      <img src="/gone.png" alt="">
      <h1>App</h1><p role="status">Loading</p>
      <script>
        fetch('/never?token=QUERY-SECRET').then(() => { document.querySelector('[role=status]').textContent = 'Ready'; });
        fetch('http://127.0.0.1:${refused}/orders?token=QUERY-SECRET', { method: 'POST' }).catch(() => undefined);
      </script>`);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}

const portOf = (server: http.Server): number => (server.address() as AddressInfo).port;

function closed(server: http.Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

const test = extendCallboard(base).extend<object, { address: string }>({
  address: [async ({}, use) => {
    const unused = await listen();
    const refused = portOf(unused);
    await closed(unused);
    const server = await listen();
    await use(`http://127.0.0.1:${portOf(server)}/?refused=${refused}`);
    await closed(server);
  }, { scope: 'worker' }],
});

test('waits for an answer in vain', async ({ page, address }) => {
  await page.goto(address);
  await expect(page.getByRole('status')).toHaveText('Ready', { timeout: 1_200 });
});

test('passes without the answer', async ({ page, address }) => {
  await page.goto(address);
  await expect(page.getByRole('heading')).toHaveText('App');
});

test('leaves pages that wait', async ({ page, context, address }) => {
  await page.goto(address);
  await page.goto(new URL('/other', address).href);
  const popup = await context.newPage();
  await popup.goto(new URL('/other', address).href);
  const asked = popup.waitForRequest('**/never?popup=1');
  await popup.evaluate(() => void fetch('/never?popup=1').catch(() => undefined));
  await asked;
  await popup.close();
});

test('waits for a page in vain', async ({ page, address }) => {
  await page.goto(new URL('/never', address).href, { timeout: 700 });
});
