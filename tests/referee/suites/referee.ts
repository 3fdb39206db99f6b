/** What all suites share: a run is sent live and as a batch, and Playwright's own report of it is beside them. */
import path from 'node:path';
import { defineConfig, type PlaywrightTestConfig } from '@playwright/test';

const output = process.env['REFEREE_OUTPUT'] ?? 'output';
const project = process.env['REFEREE_PROJECT'] ?? 'referee';
const blobs = process.env['REFEREE_BLOBS'];

/** Each way of sending has a project of its own, so that the histories do not mix. */
const WAYS = { live: { streaming: true }, batch: { streaming: false } };

export function withReferee(config: PlaywrightTestConfig): PlaywrightTestConfig {
  return defineConfig({
    workers: 2,
    timeout: 10_000,
    outputDir: process.env['REFEREE_RESULTS'] ?? path.join(output, 'results'),
    reporter: [
      ['dot'],
      ['json', { outputFile: path.join(output, 'report.json') }],
      ...(blobs ? [['blob', { outputDir: blobs }] as [string, object]] : []),
      ...Object.entries(WAYS).map(([way, options]) => ['callboard-reporter', {
        ...options,
        projectName: `${project}, ${way}`,
        streamingBatchDelay: 50,
        outputFile: path.join(output, `${way}.json`),
      }] as [string, object]),
    ],
    ...config,
  });
}
