import { test } from '@playwright/test';

test('needs the data', () => {});
test.skip('is skipped in any case', () => {});
