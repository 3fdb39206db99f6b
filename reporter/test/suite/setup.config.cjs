const { defineConfig } = require('@playwright/test');

module.exports = defineConfig({
  globalSetup: './globalsetup.cjs',
  workers: 1,
  reporter: [['dot'], ['callboard-reporter', {}]],
});
