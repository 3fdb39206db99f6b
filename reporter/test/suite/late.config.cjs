const { defineConfig } = require('@playwright/test');

const customData = { team: 'core' };
customData.self = customData;

module.exports = defineConfig({
  testMatch: 'sample.spec.ts',
  workers: 1,
  reporter: [['callboard-reporter', { reports: [{ type: 'late' }], customData, colour: 'red' }], ['./late-reporter.cjs'], ['dot']],
});
