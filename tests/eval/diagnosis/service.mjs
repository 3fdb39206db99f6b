/** What the evaluation asks the service. */
import { execFile } from 'node:child_process';
import { getAll, getBytes, getJson, serviceUrl } from '../../e2e/support/service.mjs';

export { getJson, serviceUrl };

/** Runs of a project by name, the oldest first, when all is known that the service finds out about them afterwards. */
export async function settledRuns(projectName) {
  const project = (await getAll('/api/projects')).find(({ name }) => name === projectName);
  if (!project) throw new Error(`the service has no project ${projectName}`);
  const runs = await getAll(`/api/projects/${project.id}/test-runs`);
  for (const { id } of runs) await settled(id);
  return runs.reverse();
}

/** Clusters and verdicts come after a run has ended. */
async function settled(runId) {
  for (let attempt = 0; attempt < 300; attempt += 1) {
    const run = await getJson(`/api/test-runs/${runId}`);
    const failed = (await executionsOf(runId)).filter(({ status, flaky }) => flaky || status === 'failed' || status === 'timedout');
    if (run.status !== 'running' && failed.every(({ clusterId }) => clusterId !== null)) return;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  throw new Error(`run ${runId} has failures without a cluster after a minute`);
}

export const executionsOf = (runId) => getAll(`/api/test-runs/${runId}/executions`);

/** Result of a tool, as an agent gets it; undefined when it is not there. */
export async function callTool(name, args) {
  const response = await fetch(new URL('/mcp', serviceUrl), {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }),
  });
  const { result, error } = await response.json();
  if (error || result.isError) throw new Error(`${name} answered ${error?.message ?? result.content[0].text}`);
  return JSON.parse(result.content[0].text);
}

/** The answer of an endpoint, or undefined where the service has none. */
export async function getOptional(path) {
  const response = await fetch(new URL(path, serviceUrl));
  const body = await response.text();
  if (response.status === 404) return undefined;
  if (!response.ok) throw new Error(`GET ${path} answered ${response.status}: ${body.slice(0, 500)}`);
  return JSON.parse(body);
}

/** All text of a stored trace: what Playwright recorded, and bodies of requests and pages. */
export async function traceText(file, folder) {
  const { writeFile } = await import('node:fs/promises');
  const path = `${folder}/${file.id}.zip`;
  await writeFile(path, await getBytes(`/api/files/${file.id}?download=1`));
  const program = 'import sys,zipfile\nfor n in (z:=zipfile.ZipFile(sys.argv[1])).namelist():\n'
    + ' if not n.endswith((".png",".jpeg",".woff2")): sys.stdout.write(z.read(n).decode("utf-8","replace")+"\\n")';
  return new Promise((resolve, reject) => {
    execFile('python3', ['-c', program, path], { maxBuffer: 1 << 28 }, (error, stdout) => (error ? reject(error) : resolve(stdout)));
  });
}
