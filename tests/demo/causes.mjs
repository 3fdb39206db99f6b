/**
 * Why tests fail, told as Playwright tells it: each cause gives the line of the test that
 * failed and the error. Ids, counts and timings differ from one failure to the next.
 */

const red = (text) => `\u001b[31m${text}\u001b[39m`;
const green = (text) => `\u001b[32m${text}\u001b[39m`;
const dim = (text) => `\u001b[2m${text}\u001b[22m`;

function matcher(subject, name) {
  return `Error: ${dim('expect(')}${red(subject)}${dim(').')}${name}${dim('(')}${green('expected')}${dim(')')} failed`;
}

const calls = (...lines) => `Call log:\n${lines.map((line) => dim(`  - ${line}`)).join('\n')}\n`;

/** The button was renamed: the locator of the tests finds nothing any more. */
export const renamedButton = () => ({
  code: "await page.getByRole('button', { name: 'Place order' }).click();",
  locator: { method: 'getByRole', args: ['button', { name: 'Place order' }] },
  took: 15_000,
  picture: 'checkout',
  aria: ['- banner:', '  - link "Shop"', '- main:', '  - heading "Your order" [level=1]', '  - list:', '    - listitem: Teapot 30.00 €',
    '    - listitem: Cup 12.00 €', '  - form "Checkout":', '    - text: Total 42.00 €', '    - checkbox "I accept the terms" [checked]', '    - button "Place your order"'].join('\n'),
  error: (at) => `TimeoutError: locator.click: Timeout 15000ms exceeded.\n${calls("waiting for getByRole('button', { name: 'Place order' })")}\n    at ${at}`,
  console: [{ type: 'warning', text: 'checkout: form rendered with variant B' }],
});

/** What the button looked like while the tests passed. */
export const orderButton = {
  element: { tagName: 'button', attributes: { id: 'submit-order', class: 'button button-primary', type: 'submit', 'data-testid': 'place-order' }, textContent: 'Place order',
    accessibleName: 'Place order', center: { x: 1012, y: 588 }, rolePosition: { role: 'button', count: 1, index: 0 }, ancestors: [{ tag: 'form', depth: 1, testId: 'checkout-form', id: 'checkout', role: 'form', ariaLabel: 'Checkout' }] },
  alternatives: [
    { locator: "getByTestId('place-order')", method: 'getByTestId', args: ['place-order'], score: 100 },
    { locator: "getByRole('button', { name: 'Place order' })", method: 'getByRole', args: ['button', { name: 'Place order' }], score: 90 },
    { locator: "locator('#submit-order')", method: 'locator', args: ['#submit-order'], score: 65 },
  ],
};

export const wrongTotal = (random) => {
  const cents = random.between(82, 89);
  return {
    code: "await expect(page.getByTestId('total')).toHaveText('49.98 €');",
    took: 5_000,
    picture: 'cart',
    error: (at) => `${matcher('locator', 'toHaveText')}\n\nLocator:  getByTestId('total')\nExpected: ${green('"49.98 €"')}\nReceived: ${red(`"49.${cents} €"`)}\nTimeout:  5000ms\n\n`
      + `${calls('Expect "toHaveText" with timeout 5000ms', "waiting for getByTestId('total')", `  ${random.between(7, 11)} × locator resolved to <output data-testid="total">49.${cents} €</output>`)}\n    at ${at}`,
    aria: `- main:\n  - heading "Cart" [level=1]\n  - status: 49.${cents} €`,
  };
};

export const upstreamError = (random) => {
  const id = random.hex(8);
  return {
    code: 'expect(response.status()).toBe(200);',
    took: random.between(700, 2_800),
    error: (at) => `Error: ${dim('expect(')}${red('received')}${dim(').')}toBe${dim('(')}${green('expected')}${dim(') // Object.is equality')}\n\nExpected: ${green('200')}\nReceived: ${red('503')}\n\n    at ${at}`,
    network: [{ method: 'GET', url: `https://staging.shop.example/api/recommendations/${random.between(1_000, 9_999)}?request=${id}`, status: 503, duration: random.between(600, 2_500), resourceType: 'fetch',
      serverLogs: [{ level: 'error', message: `upstream "recommender" did not answer within 500 ms (request ${id})` }] }],
    console: [{ type: 'error', text: 'Failed to load resource: the server responded with a status of 503 (Service Unavailable)' }],
  };
};

export const slowList = (random) => ({
  code: "await expect(page.getByRole('option')).toHaveCount(5);",
  took: 5_000,
  error: (at) => `${matcher('locator', 'toHaveCount')}\n\nLocator:  getByRole('option')\nExpected: ${green('5')}\nReceived: ${red(String(random.between(0, 3)))}\nTimeout:  5000ms\n\n`
    + `${calls('Expect "toHaveCount" with timeout 5000ms', "waiting for getByRole('option')")}\n    at ${at}`,
  network: [{ method: 'GET', url: `https://staging.shop.example/api/suggest?q=tea${random.between(1, 99)}`, status: 200, duration: random.between(4_200, 6_100), resourceType: 'fetch' }],
  aria: '- combobox "Search" [expanded]: tea\n- listbox:\n  - option "teapot"',
});

export const detachedElement = (random) => ({
  code: "await page.getByRole('button', { name: 'Merge' }).click();",
  took: 5_000,
  error: (at) => `Error: locator.click: Element was detached from the DOM, retrying\n${calls("waiting for getByRole('button', { name: 'Merge' })",
    `  - locator resolved to <button id="merge-${random.between(100, 999)}">Merge</button>`, 'attempting click action', '  - element was detached from the DOM, retrying')}\n    at ${at}`,
});

export const pictureDiffers = (random) => {
  const pixels = random.between(2_100, 9_800);
  return {
    code: "await expect(page).toHaveScreenshot('gallery.png');",
    took: 2_400,
    picture: 'product',
    error: (at) => `${matcher('page', 'toHaveScreenshot')}\n\n  ${pixels} pixels (ratio 0.0${Math.round(pixels / 920)} of all image pixels) are different.\n\n  Snapshot: gallery.png\n\n`
      + `${calls('Expect "toHaveScreenshot(gallery.png)" with timeout 5000ms', '  - verifying given screenshot expectation')}\n    at ${at}`,
  };
};

export const twoLinks = (random) => ({
  code: "await page.getByRole('link', { name: 'Orders' }).click();",
  took: random.between(300, 900),
  picture: 'account',
  error: (at) => `Error: locator.click: Error: strict mode violation: getByRole('link', { name: 'Orders' }) resolved to 2 elements:\n`
    + `    1) <a href="/account/orders">Orders</a> aka getByRole('navigation').getByRole('link', { name: 'Orders' })\n`
    + `    2) <a href="/help/orders-${random.between(10, 99)}">Orders and returns</a> aka getByText('Orders and returns')\n\n${calls("waiting for getByRole('link', { name: 'Orders' })")}\n    at ${at}`,
  aria: '- navigation:\n  - link "Orders"\n  - link "Addresses"\n- contentinfo:\n  - link "Orders and returns"',
});

export const connectionRefused = () => ({
  code: "await page.goto('/');",
  took: 90,
  error: (at) => `Error: page.goto: net::ERR_CONNECTION_REFUSED at https://staging.shop.example/\n${calls('navigating to "https://staging.shop.example/", waiting until "load"')}\n    at ${at}`,
});

export const slowDownload = (random) => ({
  code: "const download = await page.waitForEvent('download');",
  took: 15_000,
  error: (at) => `TimeoutError: page.waitForEvent: Timeout 15000ms exceeded while waiting for event "download"\n\n    at ${at}`,
  network: [{ method: 'POST', url: 'https://admin.shop.example/api/exports', status: 202, duration: random.between(11_000, 16_000), resourceType: 'fetch' }],
});

export const coveredButton = (random) => ({
  code: "await page.getByRole('button', { name: 'Pay' }).tap();",
  took: 15_000,
  picture: 'mobile',
  error: (at) => `TimeoutError: locator.tap: Timeout 15000ms exceeded.\n${calls("waiting for getByRole('button', { name: 'Pay' })", '  - locator resolved to <button class="pay">Pay</button>',
    'attempting tap action', `  ${random.between(20, 31)} × waiting for element to be visible, enabled and stable`, '    - <nav class="bottom-bar">…</nav> intercepts pointer events', '    - retrying tap action')}\n    at ${at}`,
  aria: '- main:\n  - heading "Checkout" [level=1]\n  - button "Pay"\n- navigation "Bottom bar":\n  - link "Home"\n  - link "Cart"',
});

export const testTimeout = () => ({
  code: 'await page.evaluate(() => navigator.serviceWorker.ready);',
  took: 30_000,
  status: 'timedOut',
  error: (at) => `${red('Test timeout of 30000ms exceeded.')}\n\nError: page.evaluate: Test timeout of 30000ms exceeded.\n    at ${at}`,
});

export const wrongStatus = () => ({
  code: 'expect(response.status()).toBe(422);',
  took: 240,
  error: (at) => `Error: ${dim('expect(')}${red('received')}${dim(').')}toBe${dim('(')}${green('expected')}${dim(') // Object.is equality')}\n\nExpected: ${green('422')}\nReceived: ${red('500')}\n\n    at ${at}`,
  network: [{ method: 'POST', url: 'https://payments.example/v1/payments', status: 500, duration: 190, resourceType: 'fetch' }],
});
