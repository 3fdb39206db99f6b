import { expect, test } from '../shop-test';

test('opens the start page', async ({ page }) => {
  await page.goto('/');
  await expect(page.getByRole('heading', { name: 'Shop' })).toBeVisible();
});

test.describe('Cart', () => {
  test.beforeEach(async ({ page }) => {
    await page.goto('/');
  });

  test('adds an item', { tag: ['@smoke', '@cart'] }, async ({ page }) => {
    await test.step('put a teapot into the cart', async () => {
      await page.getByRole('button', { name: 'Add teapot' }).click();
    });
    await expect(page.locator('#count')).toHaveText('1');
    console.log('one teapot in the cart');
  });

  test('shows the total with tax', async ({ page }) => {
    await page.getByRole('button', { name: 'Add teapot' }).click();
    await page.getByRole('button', { name: 'Add cup' }).click();
    await expect(page.locator('#total')).toHaveText('49.98', { timeout: 300 });
  });

  test.describe('Coupons', () => {
    test('applies a coupon', async ({ page }, testInfo) => {
      const stock = page.waitForResponse('**/stock*');
      await page.goto(`/coupon?attempt=${testInfo.retry}`);
      await (await stock).finished();
      await page.waitForFunction(() => performance.getEntriesByName('first-contentful-paint').length > 0);
      await expect(page.getByRole('status')).toHaveText('Coupon applied', { timeout: testInfo.retry === 0 ? 300 : 5_000 });
    });
  });
});
