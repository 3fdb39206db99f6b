/** A GitHub Enterprise server over a real git repository, as far as a project reads from it. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';

const ROOT = '/api/v3/repos/acme/shop';
const EMPTY_TREE = '4b825dc642cb6eb9a060e54bf8d69288fbee4904';

/** Starts a code host; only `token` opens its repository. */
export async function startCodeHost(token) {
  const folder = mkdtempSync(path.join(tmpdir(), 'callboard-code-host-'));
  const git = (...args) => execFileSync('git', args, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  git('init', '--quiet', '--initial-branch=main');
  git('config', 'user.name', 'Ada Lovelace');
  git('config', 'user.email', 'ada@example.org');
  const requests = [];

  const commitOf = (sha) => {
    const [hash, parents, name, date, message] = git('show', '-s', '--format=%H%x00%P%x00%an%x00%aI%x00%B', sha).split('\0');
    const author = { name, email: 'ada@example.org', date };
    return {
      sha: hash, parents: parents.split(' ').filter(Boolean).map((parent) => ({ sha: parent })),
      commit: { message: message.trim(), author, committer: author },
    };
  };
  const changes = (from, to) => git('diff', '--numstat', '-M', from, to).split('\n').filter(Boolean).map((line) => {
    const [additions, deletions, filename] = line.split('\t');
    const patch = git('diff', from, to, '--', filename);
    const status = /^new file/m.test(patch) ? 'added' : /^deleted file/m.test(patch) ? 'removed' : 'modified';
    return {
      filename, status, additions: Number(additions), deletions: Number(deletions), changes: Number(additions) + Number(deletions),
      patch: patch.slice(patch.indexOf('@@')).trimEnd(),
    };
  });
  const list = (...range) => git('rev-list', ...range).split('\n').filter(Boolean);

  function answer(place, query) {
    if (place === '') return { full_name: 'acme/shop', default_branch: 'main' };
    if (place === '/commits') return list(query.get('sha') ?? 'main').slice(0, Number(query.get('per_page') ?? 30)).map(commitOf);
    const [, commit] = /^\/commits\/([0-9a-f]+)$/.exec(place) ?? [];
    if (commit) {
      const found = commitOf(commit);
      return { ...found, files: changes(found.parents[0]?.sha ?? EMPTY_TREE, found.sha) };
    }
    const [, base, head] = /^\/compare\/([^.]+)\.\.\.(.+)$/.exec(place) ?? [];
    if (base) {
      const commits = list('--reverse', `${base}..${head}`).map(commitOf);
      return { status: 'ahead', total_commits: commits.length, commits, files: changes(base, head) };
    }
    if (/^\/(pulls|commits\/[0-9a-f]+\/pulls)$/.test(place)) return [];
    const [, file] = /^\/contents\/(.+)$/.exec(place) ?? [];
    return file ? git('show', `${query.get('ref')}:${decodeURIComponent(file)}`) : undefined;
  }

  const server = createServer((request, response) => {
    const url = new URL(request.url, 'http://host.test');
    requests.push(url.pathname);
    const reply = (status, body) => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(typeof body === 'string' ? body : JSON.stringify(body));
    };
    if (request.headers.authorization !== `Bearer ${token}`) return reply(401, { message: 'Bad credentials' });
    if (!url.pathname.startsWith(ROOT)) return reply(404, { message: 'Not Found' });
    try {
      const found = answer(url.pathname.slice(ROOT.length), url.searchParams);
      return found === undefined ? reply(404, { message: 'Not Found' }) : reply(200, found);
    } catch {
      return reply(404, { message: 'Not Found' });
    }
  });
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });

  return {
    address: `http://127.0.0.1:${server.address().port}/acme/shop`,
    requests,
    /** Commits files and returns the hash. */
    commit(message, files) {
      for (const [name, text] of Object.entries(files)) {
        mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
        writeFileSync(path.join(folder, name), text);
      }
      git('add', '--all');
      git('commit', '--quiet', '-m', message);
      return git('rev-parse', 'HEAD').trim();
    },
    stop() {
      server.close();
      server.closeAllConnections();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
