/** A form of some size, used the way tests use forms. */
import { expect, test as base } from '@playwright/test';
import { extendCallboard } from 'callboard-reporter';

const test = process.env['CAPTURED'] === 'true' ? extendCallboard(base) : base;
const ADDRESS = process.env['COST_URL'] ?? 'http://127.0.0.1:1';
const TESTS = Number(process.env['COST_TESTS'] ?? 30);

for (let number = 1; number <= TESTS; number++) {
  test(`order ${number}`, async ({ page }) => {
    await page.goto(ADDRESS);
    await expect(page.getByRole('heading', { name: 'Orders' })).toBeVisible();
    await page.getByLabel('Customer').fill('Ada Lovelace');
    await page.getByPlaceholder('Street and number').fill('St James Square 12');
    await page.getByTestId('express').check();
    await page.getByRole('button', { name: 'Add line' }).click();
    await page.getByRole('button', { name: 'Add line' }).click();
    await expect(page.getByRole('listitem')).toHaveCount(202);
    await page.locator('#note').fill('Please ring twice');
    await page.getByRole('button', { name: 'Order now' }).click();
    await expect(page.getByRole('status')).toHaveText('Ordered by Ada Lovelace');
    await page.getByRole('link', { name: 'All orders' }).click();
    await expect(page.getByRole('heading', { name: 'Order 17' })).toBeVisible();
  });
}
