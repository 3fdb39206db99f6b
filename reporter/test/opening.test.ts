/** How a streamed run comes to be open: every state with every answer. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RequestFailed } from '../src/client';
import { firstOpening, nextOpening, openingRequest, type Opening, type OpeningAnswer } from '../src/live/opening';
import type { StartFields } from '../src/run';

const FIELDS = { projectName: 'shop', plannedTests: 3 } as StartFields;
const SETUP = { runId: 7, setupToken: 'e'.repeat(64) };
const OPENED = { answer: { runId: 8, streamToken: 'f', projectId: 3, runUrl: 'http://a/test-runs/8', capabilities: ['uploads.plan'], limits: { requestMaxBytes: 6_291_456 } } };
const failure = (status: number | undefined): OpeningAnswer => ({ failure: new RequestFailed('no', status) });
const states = (opening: Opening, ...answers: OpeningAnswer[]): string[] => answers.map((answer) => (opening = nextOpening(opening, answer)).state);

test('a run that was registered is begun, and started where that is not possible any more', () => {
  const beginning = firstOpening(SETUP);
  assert.deepEqual(openingRequest(beginning, FIELDS), {
    path: '7/begin', withToken: true, body: { ...FIELDS, setupToken: SETUP.setupToken, totalTests: 3 },
  });
  for (const status of [404, 409]) {
    const starting = nextOpening(beginning, failure(status));
    assert.deepEqual(openingRequest(starting, FIELDS), { path: 'start', withToken: false, body: FIELDS });
    assert.deepEqual(states(starting, OPENED), ['open']);
    assert.deepEqual(states(starting, failure(status)), ['refused']);
  }
});

test('every other failure, and an answer without a run, is the end', () => {
  for (const opening of [firstOpening(SETUP), firstOpening(undefined)]) {
    for (const status of [undefined, 400, 401, 403, 413, 500, 503]) assert.deepEqual(states(opening, failure(status)), ['refused']);
    const refused = nextOpening(opening, { answer: { runId: '8' } });
    assert.match(String((refused as { error: unknown }).error), /is this the address of the service/);
    assert.equal(openingRequest(refused, FIELDS), undefined);
  }
});

test('an open run says what its service offers', () => {
  const opened = nextOpening(firstOpening(undefined), OPENED);
  assert.deepEqual(opened, {
    state: 'open',
    run: {
      runId: 8, streamToken: 'f', projectId: 3, runUrl: 'http://a/test-runs/8',
      // A gateway passes binary bodies on a third larger.
      capabilities: { plan: true, requestMaxBytes: 4_404_019 },
    },
  });
  const older = nextOpening(firstOpening(undefined), { answer: { runId: 8, streamToken: 'f' } });
  assert.deepEqual((older as { run: { capabilities: object } }).run.capabilities, { plan: false, requestMaxBytes: undefined });
});
