import { expect, test } from '@playwright/test';

interface SkippableStep {
  skip(isSkipped?: boolean, reason?: string): void;
}
interface Steps {
  (title: string, body: (step: SkippableStep) => Promise<void>, options?: { subtitle: string }): Promise<void>;
  skip?(title: string, body: () => Promise<void>): Promise<void>;
}
/** Only newer Playwright skips steps. */
const step = test.step as unknown as Steps;

test('skips steps', async () => {
  test.skip(step.skip === undefined, 'needs a newer Playwright');
  await step.skip!('is declared as skipped', async () => {});
  await step('is skipped when it runs', async (own) => own.skip(true, 'needs a beta account'));
  await step('runs', async () => {}, { subtitle: 'with a card' });
});

test('fails in a step', async () => {
  await step('outer', async () => {
    await step('inner', async () => {
      expect('left').toBe('right');
    });
  });
});

test('catches a failed step', async () => {
  await step('fails', async () => {
    throw new Error('caught');
  }).catch(() => undefined);
});
