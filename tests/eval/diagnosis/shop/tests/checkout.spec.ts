import { readFile } from 'node:fs/promises';
import { expect, PRODUCTS, test } from '../shop-test.ts';

test.describe('Checkout', () => {
  for (const product of PRODUCTS) {
    test(`buys ${product}`, async ({ page }) => {
      await page.request.post('/api/cart', { data: { id: product.toLowerCase() } });
      await page.goto('/checkout');
      await page.getByLabel('Name').fill('Ada');
      await page.getByLabel('Card').fill('4242 4242 12/40');
      await page.getByRole('button', { name: 'Pay' }).click();
      await expect(page.getByRole('heading', { name: 'Thank you' })).toBeVisible();
    });

    test(`downloads the receipt of ${product}`, async ({ page }, testInfo) => {
      await page.request.post('/api/cart', { data: { id: product.toLowerCase() } });
      const order = await (await page.request.post('/api/orders', { data: { name: 'Ada', card: '4242 4242 12/40' } })).json();
      await page.goto(`/thanks?order=${order.number}`);
      const started = page.waitForEvent('download');
      await page.getByRole('link', { name: 'Receipt' }).click();
      const download = await started;
      expect(download.suggestedFilename()).toBe('receipt-1001.txt');
      const file = testInfo.outputPath('receipt.txt');
      await download.saveAs(file);
      expect(await readFile(file, 'utf8')).toContain(`1 x ${product}`);
    });
  }
});
