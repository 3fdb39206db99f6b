import { callboardTest as test } from 'callboard-reporter';

test('with a test of the package', () => {});
