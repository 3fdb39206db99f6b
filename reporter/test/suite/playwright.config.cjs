const { defineConfig } = require('@playwright/test');
const options = require('./options.json');

module.exports = defineConfig({
  testMatch: 'sample.spec.ts',
  retries: 1,
  workers: 1,
  reporter: [['callboard-reporter', options], ['html', { open: 'never', outputFolder: 'report' }], ['dot']],
  projects: [{ name: 'plain', use: { viewport: { width: 800, height: 600 }, httpCredentials: { username: 'u', password: 'secret' } } }],
});
