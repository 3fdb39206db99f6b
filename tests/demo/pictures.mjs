/**
 * What the tests saw when they failed, drawn by Chromium: `undefined` where there is none,
 * or where the packages of the end-to-end tests are not installed.
 */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';

const endToEnd = createRequire(new URL('../e2e/package.json', import.meta.url));
const chromiumPath = process.env.CHROMIUM_PATH ?? '/usr/bin/chromium';

const frame = (body) => `<!doctype html><meta charset="utf-8"><style>
  body { margin: 0; font: 16px/1.5 system-ui, sans-serif; color: #1f2430; background: #fbfaf8 }
  header { display: flex; gap: 32px; padding: 20px 48px; background: #fff; border-bottom: 1px solid #e5e1da; font-weight: 600 }
  header b { font-size: 20px; color: #7a4a1d } main { max-width: 920px; margin: 40px auto; padding: 0 24px }
  h1 { font-size: 30px; margin: 0 0 20px } .card { display: flex; justify-content: space-between; padding: 18px 20px; margin-bottom: 10px; background: #fff; border: 1px solid #e5e1da; border-radius: 10px }
  .button { display: inline-block; padding: 14px 28px; margin-top: 18px; border-radius: 10px; background: #7a4a1d; color: #fff; font-weight: 600 } .total { font-size: 22px; font-weight: 700; text-align: right }
  .gallery { display: grid; grid-template-columns: 1fr 1fr 1fr; gap: 16px } .gallery div { height: 220px; border-radius: 12px; background: linear-gradient(140deg, #e9d7c2, #b98f63) } nav.side a { margin-right: 20px; color: #7a4a1d }
  .bar { position: fixed; inset: auto 0 0 0; display: flex; justify-content: space-around; padding: 26px; background: #fff; border-top: 1px solid #e5e1da }
</style><header><b>Teapots &amp; Co</b><span>Catalogue</span><span>Offers</span><span>Account</span></header><main>${body}</main>`;

const line = (name, price) => `<div class="card"><span>${name}</span><span>${price}</span></div>`;

const PAGES = {
  checkout: [1280, frame(`<h1>Your order</h1>${line('Teapot', '30.00 €')}${line('Cup', '12.00 €')}<p class="total">42.00 €</p><p>☑ I accept the terms</p><span class="button">Place your order</span>`)],
  cart: [1280, frame(`<h1>Cart</h1>${line('Teapot', '29.99 €')}${line('Cup with saucer', '12.00 €')}${line('Tax', '7.90 €')}<p class="total">49.89 €</p><span class="button">Check out</span>`)],
  product: [1280, frame('<h1>Glass teapot</h1><div class="gallery"><div></div><div></div><div></div></div><p class="total">39.00 €</p>')],
  account: [1280, frame(`<nav class="side"><a>Orders</a><a>Addresses</a><a>Payment</a></nav><h1>Hello, Ada</h1>${line('Order 4711', 'on its way')}${line('Order 4698', 'delivered')}<p><a>Orders and returns</a></p>`)],
  mobile: [390, frame(`<h1>Checkout</h1>${line('Teapot', '30.00 €')}<p class="total">30.00 €</p><div class="bar"><span>Home</span><span>Cart</span><span>Account</span></div>`)],
};

export async function draw() {
  let chromium;
  try {
    ({ chromium } = endToEnd('@playwright/test'));
  } catch {
    return undefined;
  }
  if (!existsSync(chromiumPath)) return undefined;
  const browser = await chromium.launch({ executablePath: chromiumPath, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'] });
  try {
    const page = await browser.newPage();
    const drawn = {};
    for (const [name, [width, html]] of Object.entries(PAGES)) {
      await page.setViewportSize({ width, height: width < 500 ? 844 : 720 });
      await page.setContent(html);
      drawn[name] = await page.screenshot();
    }
    return drawn;
  } finally {
    await browser.close();
  }
}
