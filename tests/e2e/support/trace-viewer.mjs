/** Opens a trace in Playwright's own viewer, in a real browser, and reads the list of actions. */
import { readFile } from 'node:fs/promises';
import http from 'node:http';
import { createRequire } from 'node:module';
import path from 'node:path';
import { chromium } from '@playwright/test';

const require = createRequire(import.meta.url);
const viewerDir = path.join(
  path.dirname(createRequire(require.resolve('@playwright/test/package.json')).resolve('playwright-core/package.json')),
  'lib/vite/traceViewer');

const CONTENT_TYPES = {
  '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.ttf': 'font/ttf',
  '.webmanifest': 'application/manifest+json', '.zip': 'application/zip',
};

export async function actionsInViewer(trace) {
  const server = await serve(trace);
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM_PATH ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
  });
  try {
    const page = await browser.newPage();
    const origin = `http://127.0.0.1:${server.address().port}`;
    await page.goto(`${origin}/index.html?trace=${encodeURIComponent(`${origin}/trace.zip`)}`);
    const actions = page.getByTestId('actions-tree').getByRole('treeitem');
    await actions.first().waitFor();
    return await actions.allInnerTexts();
  } finally {
    await browser.close();
    server.closeAllConnections();
    server.close();
  }
}

async function serve(trace) {
  const server = http.createServer(async (request, response) => {
    const { pathname } = new URL(request.url, 'http://viewer');
    const file = path.join(viewerDir, path.normalize(pathname));
    const content = pathname === '/trace.zip' ? trace : await readFile(file).catch(() => undefined);
    const type = CONTENT_TYPES[path.extname(pathname)] ?? 'application/octet-stream';
    response.writeHead(content ? 200 : 404, { 'content-type': type });
    response.end(request.method === 'HEAD' ? undefined : content);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}
