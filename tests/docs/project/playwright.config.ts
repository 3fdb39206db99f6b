import { defineConfig } from '@playwright/test';

export default defineConfig({
  testDir: 'tests',
  retries: 1,
  projects: [{ name: 'chromium' }],
  reporter: [['json', { outputFile: 'report.json' }], ['callboard-reporter', { projectName: 'shop' }]],
});
