/**
 * Commit, branch and author of the tested working copy, asked from git.
 * Every question has five seconds; an unanswered one is simply left out.
 */
import { execFile } from 'node:child_process';
import type { CiInfo } from './ci';
import { earlierPath, type SourceRoot } from './source-root';

export interface ScmInfo {
  commit?: string;
  branch?: string;
  author?: string;
  commitMessage?: string;
  remoteUrl?: string;
  defaultBranch?: string;
  dirty?: boolean;
}

const GIT_TIMEOUT_MS = 5_000;
const MESSAGE_MAX_CHARS = 500;
const SHARED_PATHS_MAX = 500;
const DETACHED = 'HEAD';

export async function collectScm(dir: string, ci: CiInfo | undefined): Promise<ScmInfo | undefined> {
  const [head, branch, subject, remote, originHead, changes] = await Promise.all([
    git(dir, 'rev-parse', 'HEAD'),
    git(dir, 'rev-parse', '--abbrev-ref', 'HEAD'),
    git(dir, 'log', '-1', '--format=%an%x00%B'),
    git(dir, 'config', '--get', 'remote.origin.url'),
    git(dir, 'symbolic-ref', '--short', 'refs/remotes/origin/HEAD'),
    git(dir, 'status', '--porcelain', '--untracked-files=no'),
  ]);
  const [author, message] = (subject ?? '').split('\0');
  // A detached checkout is how CI systems build pull requests: they know the real head.
  const detached = branch === undefined || branch === DETACHED;
  const info: ScmInfo = {
    ...present('commit', detached ? ci?.commit ?? head : head),
    ...present('branch', detached ? ci?.branch ?? branch : branch),
    ...present('author', author),
    ...present('commitMessage', message?.trim().slice(0, MESSAGE_MAX_CHARS)),
    ...present('remoteUrl', remote && withoutUserInfo(remote)),
    ...present('defaultBranch', originHead?.replace(/^origin\//, '') ?? ci?.defaultBranch),
    ...(changes === undefined ? {} : { dirty: changes !== '' }),
  };
  return Object.keys(info).length > 0 ? info : undefined;
}

/**
 * Paths that earlier releases sent for these files and may have sent for other files of the
 * repository as well: what is stored under them is not surely about these.
 */
export async function sharedPaths(files: readonly string[], root: SourceRoot): Promise<string[]> {
  const earlier = new Map(files.map((file) => [earlierPath(file, root), file]).filter(([before, file]) => before !== file) as [string, string][]);
  const folder = root.places[0]?.folder;
  if (earlier.size === 0 || root.kind !== 'git' || folder === undefined) return [];
  const shared = new Set<string>();
  for (const file of (await git(folder, 'ls-files', '-z'))?.split('\0') ?? []) {
    for (let end = file; ; end = end.slice(end.indexOf('/') + 1)) {
      if (earlier.has(end) && earlier.get(end) !== file) shared.add(end);
      if (!end.includes('/')) break;
    }
  }
  return [...shared].slice(0, SHARED_PATHS_MAX);
}

function git(dir: string, ...args: string[]): Promise<string | undefined> {
  return new Promise((resolve) => {
    const env = { ...process.env, GIT_OPTIONAL_LOCKS: '0', GIT_TERMINAL_PROMPT: '0' };
    execFile('git', args, { cwd: dir, timeout: GIT_TIMEOUT_MS, env, maxBuffer: 64 * 1024 * 1024, windowsHide: true },
      (error, stdout) => resolve(error ? undefined : stdout.trim()));
  });
}

function withoutUserInfo(remote: string): string {
  return remote.replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/]*@/i, '$1');
}

function present<Key extends keyof ScmInfo>(key: Key, value: string | undefined): { [K in Key]?: string } {
  return value ? { [key]: value } as { [K in Key]?: string } : {};
}
