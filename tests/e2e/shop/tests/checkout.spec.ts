import { writeFile } from 'node:fs/promises';
import { expect, test } from '../shop-test';

test.describe('Checkout', () => {
  test.beforeEach(async ({ page }) => {
    await page.goto('/checkout');
  });

  test('confirms the payment', {
    annotation: { type: 'callboard:owner', description: 'payments' },
  }, async ({ page }) => {
    test.setTimeout(1_500);
    await page.getByRole('button', { name: 'Confirm payment' }).click();
  });

  test('pays with one click', async ({ page }) => {
    await page.getByTestId('pay-now').click({ timeout: 300 });
  });

  test('keeps the receipt', async ({ page }, testInfo) => {
    await page.waitForTimeout(50);
    await page.getByRole('button', { name: 'Pay', exact: true }).click();
    await expect(page.getByRole('status')).toHaveText('Thank you');
    await testInfo.attach('receipt', { body: 'Teapot 30.00 €\nTotal 30.00 €\n', contentType: 'text/plain' });
    const file = testInfo.outputPath('label.bin');
    await writeFile(file, Uint8Array.from({ length: 4_096 }, (_, index) => (index * 31) % 256));
    await testInfo.attach('shipping label', { path: file, contentType: 'application/octet-stream' });
  });

  test.skip('pays by invoice', async () => {});

  test('refuses an expired card', async ({ page }) => {
    test.fail(true, 'the shop accepts any card');
    await page.getByLabel('Card').fill('12/1999');
    await page.getByRole('button', { name: 'Pay', exact: true }).click();
    await expect(page.getByRole('status')).toHaveText('Card expired', { timeout: 300 });
  });
});
