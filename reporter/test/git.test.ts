import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { collectScm } from '../src/git';

function repository(): { dir: string; git(...args: string[]): string } {
  const dir = mkdtempSync(path.join(tmpdir(), 'callboard-git-'));
  const git = (...args: string[]): string => execFileSync('git', args, { cwd: dir, encoding: 'utf8' }).trim();
  git('init', '-q', '-b', 'topic');
  git('config', 'user.name', 'Ada');
  git('config', 'user.email', 'ada@example.com');
  git('remote', 'add', 'origin', 'https://user:token@git.example/o/r.git');
  writeFileSync(path.join(dir, 'file'), 'one');
  git('add', '.');
  git('commit', '-q', '-m', 'Add a file\n\nBecause.');
  return { dir, git };
}

test('commit, branch, author and remote come from git, without credentials', async () => {
  const { dir, git } = repository();
  assert.deepEqual(await collectScm(dir, undefined), {
    commit: git('rev-parse', 'HEAD'),
    branch: 'topic',
    author: 'Ada',
    commitMessage: 'Add a file\n\nBecause.',
    remoteUrl: 'https://git.example/o/r.git',
    dirty: false,
  });
});

test('a password with any characters is cut from the remote', async () => {
  const { dir, git } = repository();
  git('remote', 'set-url', 'origin', 'https://user:to@k:en@git.example/o/r.git');
  assert.equal((await collectScm(dir, undefined))?.remoteUrl, 'https://git.example/o/r.git');
});

test('a changed file makes the working copy dirty, an untracked one does not', async () => {
  const { dir } = repository();
  writeFileSync(path.join(dir, 'untracked'), '');
  assert.equal((await collectScm(dir, undefined))?.dirty, false);
  writeFileSync(path.join(dir, 'file'), 'two');
  assert.equal((await collectScm(dir, undefined))?.dirty, true);
});

test('on a detached checkout the CI system knows branch and commit', async () => {
  const { dir, git } = repository();
  git('checkout', '-q', '--detach');
  const scm = await collectScm(dir, { provider: 'any', branch: 'from-ci', commit: 'head' });
  assert.equal(scm?.branch, 'from-ci');
  assert.equal(scm?.commit, 'head');
});

test('the default branch is that of the remote, and what the CI system says where git was not told', async () => {
  const { dir, git } = repository();
  const ci = { provider: 'any', defaultBranch: 'trunk' };
  assert.equal((await collectScm(dir, ci))?.defaultBranch, 'trunk');
  git('symbolic-ref', 'refs/remotes/origin/HEAD', 'refs/remotes/origin/main');
  assert.equal((await collectScm(dir, ci))?.defaultBranch, 'main');
});

test('outside a repository there is nothing to tell', async () => {
  assert.equal(await collectScm(mkdtempSync(path.join(tmpdir(), 'callboard-nogit-')), undefined), undefined);
});
