/**
 * The shop under test: three small pages, one of which misbehaves on purpose.
 * Each worker starts its own on a free port.
 */
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';

const STYLE = 'body{font:16px sans-serif;margin:2rem} button{padding:.5rem 1rem}';

const START = page('Shop', `
  <h1>Shop</h1>
  <ul aria-label="Products">
    <li>Teapot <button data-price="30">Add teapot</button></li>
    <li>Cup <button data-price="12">Add cup</button></li>
  </ul>
  <p>Items: <output id="count">0</output></p>
  <p>Total: <output id="total">0.00</output></p>
  <script>
    const [count, total] = [document.querySelector('#count'), document.querySelector('#total')];
    for (const button of document.querySelectorAll('button')) button.onclick = () => {
      count.value = Number(count.value) + 1;
      total.value = (Number(total.value) + Number(button.dataset.price)).toFixed(2);
    };
  </script>`);

const CHECKOUT = page('Checkout', `
  <h1>Checkout</h1>
  <label>Card <input name="card"></label>
  <button disabled>Confirm payment</button>
  <button id="pay">Pay</button>
  <p role="status"></p>
  <script>
    document.querySelector('#pay').onclick = () => {
      const expired = document.querySelector('input').value.endsWith('1999');
      document.querySelector('[role=status]').textContent = expired ? 'Paid anyway' : 'Thank you';
    };
  </script>`);

/** The coupon service needs waking up: the first attempt is always refused. */
function coupon(attempt: string | null): string {
  return page('Coupon', `<h1>Coupon</h1><p role="status">${attempt === '0' ? 'Try again later' : 'Coupon applied'}</p>
    <script>
      sessionStorage.setItem('coupon', 'SUMMER-SECRET');
      document.cookie = 'visitor=COOKIE-SECRET';
      console.warn('coupons are slow today');
      fetch('/stock?token=QUERY-SECRET');
    </script>`);
}

/** What the shop says about a request in its headers, as a backend in test mode does. */
function backendHeaders(): Record<string, string> {
  const packed = (value: unknown): string => gzipSync(JSON.stringify(value)).toString('base64');
  return {
    'x-service-logs': packed([{ timestamp: 1767261600123, level: 'Warning', category: 'Stock', message: 'the stock is low' }]),
    'x-service-trace': packed([{ id: 'a1', name: 'GET /stock', startMs: 0, durMs: 12, status: 'ok', attrs: { 'http.route': '/stock' } }]),
  };
}

function page(title: string, body: string): string {
  return `<!doctype html><html lang="en"><title>${title}</title><style>${STYLE}</style>${body}</html>`;
}

export async function startShop(): Promise<{ url: string; stop(): Promise<void> }> {
  const server = http.createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://shop');
    const pages: Record<string, () => string> = {
      '/': () => START,
      '/checkout': () => CHECKOUT,
      '/coupon': () => coupon(searchParams.get('attempt')),
      '/stock': () => '{}',
    };
    const content = pages[pathname]?.();
    response.writeHead(content === undefined ? 404 : 200, {
      'content-type': 'text/html; charset=utf-8', ...(pathname === '/stock' ? backendHeaders() : {}),
    });
    response.end(content ?? 'Not found');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    stop: () => new Promise((resolve) => {
      server.closeAllConnections();
      server.close(() => resolve());
    }),
  };
}
