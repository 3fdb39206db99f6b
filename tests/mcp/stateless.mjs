/**
 * Asks a running service with the client of the stateless era, which sends no `initialize`, and
 * compares what it is told with what the older client is told. Needs `CALLBOARD_URL`.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { Client as OlderClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as OlderTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const serviceUrl = process.env.CALLBOARD_URL?.replace(/\/+$/, '');
if (!serviceUrl) {
  throw new Error('CALLBOARD_URL must name the running service, for instance CALLBOARD_URL=http://127.0.0.1:3000');
}
const endpoint = new URL('/mcp', serviceUrl);

describe('the client of the stateless era', () => {
  const requests = [];
  let client;
  let older;

  before(async () => {
    client = new Client({ name: 'callboard-check', version: '1.0.0' }, { versionNegotiation: { mode: 'auto' } });
    await client.connect(new StreamableHTTPClientTransport(endpoint, {
      fetch: async (url, options) => {
        requests.push(`${options?.method ?? 'GET'} ${new Headers(options?.headers).get('mcp-method')}`);
        return await fetch(url, options);
      },
    }));
    older = new OlderClient({ name: 'callboard-check', version: '1.0.0' });
    await older.connect(new OlderTransport(endpoint));
  });

  after(() => Promise.all([client?.close(), older?.close()]));

  test('is told at once what is here', () => {
    assert.equal(client.getNegotiatedProtocolVersion(), '2026-07-28');
    assert.equal(client.getServerVersion().name, 'callboard');
    assert.equal(client.getInstructions(), older.getInstructions());
    assert.deepEqual(requests, ['POST server/discover']);
  });

  test('gets the same lists and the same answers', async () => {
    assert.deepEqual((await client.listTools()).tools, (await older.listTools()).tools);
    assert.deepEqual((await client.listPrompts()).prompts, (await older.listPrompts()).prompts);
    for (const call of [
      { name: 'list_projects', arguments: {} },
      { name: 'list_recent_activity', arguments: { pageSize: 3 } },
      { name: 'get_run', arguments: { runId: Number.MAX_SAFE_INTEGER } },
      { name: 'get_run', arguments: {} },
    ]) {
      const [now, then] = [await client.callTool(call), await older.callTool(call)];
      assert.deepEqual([now.content, now.isError], [then.content, then.isError], call.name);
    }
    const prompt = { name: 'setup_service', arguments: { projectName: 'shop' } };
    assert.deepEqual((await client.getPrompt(prompt)).messages, (await older.getPrompt(prompt)).messages);
    const question = { ref: { type: 'ref/prompt', name: 'setup_service' }, argument: { name: 'projectName', value: '' } };
    assert.deepEqual((await client.complete(question)).completion, (await older.complete(question)).completion);
    await assert.rejects(client.callTool({ name: 'get_runs', arguments: {} }), /Unknown tool: get_runs/);
  });
});
