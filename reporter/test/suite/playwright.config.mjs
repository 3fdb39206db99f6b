import { defineConfig } from '@playwright/test';

export default defineConfig({
  workers: 1,
  reporter: [['json'], ['callboard-reporter', {}]],
});
