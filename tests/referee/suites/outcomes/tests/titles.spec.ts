import { test } from '@playwright/test';

const long = 'goes on '.repeat(200);

for (const [number, title] of ['opens', 'Opens', 'opens ', 'opens  twice', 'opens twice', 'opens #2', 'öffnet 🚪', '"opens"', '<b>opens</b>', '', `${long}left`, `${long}right`].entries()) {
  test(title, () => {
    test.skip(number % 2 === 1);
  });
}

test.describe('opens', () => {
  test('shuts', () => {});
  test('opens', () => {});
});

test.describe(() => {
  test('closes', () => {
    test.skip();
  });
});

for (const [name, number] of [['one', 1], ['two', 2]] as const) {
  test.describe(`the door ${name}`, () => {
    test('opens', () => {
      test.skip(number === 2);
    });
  });
}
