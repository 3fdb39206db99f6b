import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { addReporter } from '../src/commands/config-edit';
import { callboard, installedSuite } from './playwright-run';

const ENTRY = "['callboard-reporter']";

const EDITED: [string, string, string][] = [
  ['a configuration without reporters gets one that prints too',
    "export default defineConfig({\n  testDir: 'tests',\n});\n",
    "export default defineConfig({\n  reporter: [['list'], ['callboard-reporter']],\n  testDir: 'tests',\n});\n"],
  ['a single reporter becomes the first of a list',
    "module.exports = { reporter: 'html', retries: 1 };",
    "module.exports = { reporter: [['html'], ['callboard-reporter']], retries: 1 };"],
  ['a list on one line is continued',
    "export default { reporter: [['html', { open: 'never' }]], use: { reporter: 'x' } };",
    "export default { reporter: [['html', { open: 'never' }], ['callboard-reporter']], use: { reporter: 'x' } };"],
  ['a list over several lines keeps its form',
    "export default defineConfig({\n  // reporter: 'dot',\n  reporter: [\n    ['html'], // for people\n    ['json', { outputFile: 'a],b.json' }],\n  ],\n});\n",
    "export default defineConfig({\n  // reporter: 'dot',\n  reporter: [\n    ['html'], // for people\n    ['json', { outputFile: 'a],b.json' }],\n    ['callboard-reporter'],\n  ],\n});\n"],
  ['an empty list is filled', 'const config: PlaywrightTestConfig = { reporter: [] };', "const config: PlaywrightTestConfig = { reporter: [['callboard-reporter']] };"],
  ['a reporter in a comment is not there',
    "export default { /* ['callboard-reporter'], */ reporter: 'dot' }; // 'callboard-reporter'",
    "export default { /* ['callboard-reporter'], */ reporter: [['dot'], ['callboard-reporter']] }; // 'callboard-reporter'"],
  ['patterns and templates are not taken for code',
    "export default defineConfig({ grep: /[{'\"]/, name: `a ${x} {`, reporter: 'dot' });",
    "export default defineConfig({ grep: /[{'\"]/, name: `a ${x} {`, reporter: [['dot'], ['callboard-reporter']] });"],
];

for (const [title, before, after] of EDITED) {
  test(title, () => {
    assert.deepEqual(addReporter(before, ENTRY), { kind: 'edited', text: after });
    assert.deepEqual(addReporter(after, ENTRY), { kind: 'present' });
  });
}

for (const [title, text] of [
  ['chosen by an expression', "export default defineConfig({ reporter: process.env.CI ? 'dot' : 'list' });"],
  ['perhaps set elsewhere', 'export default defineConfig({ ...shared, retries: 1 });'],
  ['held in a variable', 'export default defineConfig({ reporter });'],
  ['not found at all', 'export default makeConfig();'],
] as const) {
  test(`reporters that are ${title} are left to a person`, () => {
    assert.equal(addReporter(text, ENTRY).kind, 'unclear');
  });
}

test('init changes the configuration so that Playwright reads it, and says what it changed', async () => {
  const dir = installedSuite('module');
  const config = path.join(dir, 'playwright.config.mjs');
  writeFileSync(config, "import { defineConfig } from '@playwright/test';\n\nexport default defineConfig({\n  workers: 1,\n});\n");
  const { exitCode, stdout } = await callboard(dir, ['init', '--url', 'https://callboard.example.com']);
  assert.equal(exitCode, 0);
  const line = "  reporter: [['list'], ['callboard-reporter', { serverUrl: 'https://callboard.example.com' }]],";
  assert.ok(stdout.includes(`+ ${line}`), stdout);
  assert.ok(readFileSync(config, 'utf8').includes(`{\n${line}\n  workers: 1,`));
  assert.match((await callboard(dir, ['init'])).stdout, /has the reporter already/);
});

test('init writes the name of the project, whatever characters it has', async () => {
  const dir = installedSuite('module');
  const config = path.join(dir, 'playwright.config.mjs');
  writeFileSync(config, 'export default { workers: 1 };\n');
  const { exitCode } = await callboard(dir, ['init', '--server-url', 'http://localhost:3000', '--project', "Ada's \\ shop"]);
  assert.equal(exitCode, 0);
  const entry = "['callboard-reporter', { serverUrl: 'http://localhost:3000', projectName: 'Ada\\'s \\\\ shop' }]";
  assert.ok(readFileSync(config, 'utf8').includes(entry), readFileSync(config, 'utf8'));
});

test('init leaves a configuration alone that Playwright cannot read', async () => {
  const dir = installedSuite('module');
  const broken = "throw new Error('not today');\nexport default { retries: 1 };\n";
  writeFileSync(path.join(dir, 'playwright.config.mjs'), broken);
  const { exitCode, stdout } = await callboard(dir, ['init']);
  assert.equal(exitCode, 1);
  assert.match(stdout, /was not changed: Playwright cannot read it, it says ".*not today/);
  assert.equal(readFileSync(path.join(dir, 'playwright.config.mjs'), 'utf8'), broken);
});

test('an unknown command is refused with a list of those there are', async () => {
  const { exitCode, stdout } = await callboard(installedSuite('module'), ['flash']);
  assert.equal(exitCode, 2);
  assert.match(stdout, /init \[--url <address>\]/);
});

test('an option a command does not have is refused by its name', async () => {
  const { exitCode, stdout } = await callboard(installedSuite('module'), ['flush', '--uri', 'http://a.example']);
  assert.equal(exitCode, 2);
  assert.match(stdout, /flush has no option "--uri"/);
});
