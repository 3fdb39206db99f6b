import { expect, PRODUCTS, test } from '../shop-test.ts';

test.describe('Account', () => {
  for (const product of PRODUCTS.slice(0, 12)) {
    test(`lists ${product} among the orders`, async ({ page }) => {
      await page.request.post('/api/cart', { data: { id: product.toLowerCase() } });
      await page.request.post('/api/orders', { data: { name: 'Ada', card: '4242 4242 12/40' } });
      await test.step('sign in', async () => {
        await page.goto('/account');
        await page.getByLabel('Name').fill('Ada');
        await page.getByLabel('Password').fill('correct horse');
        await page.getByRole('button', { name: 'Sign in' }).click();
      });
      await expect(page.getByRole('cell', { name: product })).toBeVisible();
    });

    test(`asks the support about ${product}`, async ({ page }) => {
      await page.goto('/help');
      const chat = page.frameLocator('iframe[title="Support chat"]');
      await chat.getByLabel('Message').fill(`the ${product}`);
      await chat.getByRole('button', { name: 'Send' }).click();
      await expect(chat.getByRole('listitem')).toHaveText(`We will look into the ${product}`);
    });
  }
});
