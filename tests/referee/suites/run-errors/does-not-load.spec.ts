import { test } from '@playwright/test';

throw new Error('the fixtures file is missing');
test('is never reached', () => {});
