/**
 * A line to the service that does harm to chosen calls: it knows requests and answers,
 * where a cut line knows only bytes.
 */
import http from 'node:http';
import { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';

/** What happens to a request; each is given the means to make it happen. */
export const FAULTS = {
  /** Nobody is there. */
  refused: ({ request }) => request.socket.destroy(),
  /** The line breaks while the request is on its way. */
  'cut on the way there': ({ request }) => {
    request.once('data', () => request.socket.destroy());
    request.once('end', () => request.socket.destroy());
  },
  /** The service did it, and nobody learns of it. */
  'cut on the way back': async ({ forward, request }) => {
    await forward();
    request.socket.destroy();
  },
  /** The answer breaks off in its middle. */
  'cut in the answer': async ({ forward, response }) => {
    const { status, headers, body } = await forward();
    response.writeHead(status, { ...headers, 'content-length': body.length });
    response.write(body.subarray(0, Math.floor(body.length / 2)), () => response.destroy());
  },
  /** Something between here and the service is broken. */
  'answered 500': async ({ read, answer }) => {
    await read();
    answer(500, { error: true, statusCode: 500, code: 'internal_error', message: 'Broken.' });
  },
  /** The service is busy, and says when to come back. */
  'answered 503': async ({ read, answer }) => {
    await read();
    answer(503, { error: true, statusCode: 503, code: 'database_unavailable', message: 'Busy.' }, { 'retry-after': '1' });
  },
  /** A service that never heard of the path, or had it taken away. */
  'answered 404': async ({ read, answer }) => {
    await read();
    answer(404, { error: true, statusCode: 404, code: 'not_found', message: 'There is nothing here.' });
  },
  /** Whoever asks may not. */
  'answered 403': async ({ read, answer }) => {
    await read();
    answer(403, { error: true, statusCode: 403, code: 'forbidden', message: 'Not allowed.' });
  },
  /** More than half of the bytes arrive at the service, which is told of more. */
  'cut at 60 %': async ({ request, read, onward }) => {
    const body = await read();
    const there = onward({ 'content-length': body.length });
    await new Promise((resolve) => there.write(body.subarray(0, Math.floor(body.length * 0.6)), resolve));
    there.destroy();
    request.socket.destroy();
  },
  /** An older service, which offers less. */
  'answered without capabilities': async ({ forward, pass }) => {
    const answer = await forward();
    const { capabilities: _capabilities, limits: _limits, ...rest } = JSON.parse(answer.body);
    pass({ ...answer, body: JSON.stringify(rest) });
  },
  /** The service did it and then something else answered. */
  'done and answered 502': async ({ forward, answer }) => {
    await forward();
    answer(502, {});
  },
  /** It takes long, and works. */
  slow: async ({ forward, pass }) => {
    await delay(3_000);
    pass(await forward());
  },
};

const ANSWERS_FOR_GOOD = ['answered 404', 'answered 403', 'answered without capabilities'];
/** Faults after which the same request may succeed, whichever it is. */
export const TRANSIENT_FAULTS = Object.keys(FAULTS).filter((name) => !ANSWERS_FOR_GOOD.includes(name));

/** `fault` is asked for every request: the name of one of `FAULTS`, or nothing. */
export async function faultyLine(serviceUrl) {
  let fault = () => undefined;
  const calls = [];
  const exchanges = [];
  const server = http.createServer((request, response) => {
    request.on('error', () => undefined);
    response.on('error', () => undefined);
    const call = request.method === 'PUT' ? 'put' : request.url.split('?', 1)[0].split('/').at(-1);
    const number = calls.push(call);
    const chosen = fault(call, calls.filter((each) => each === call).length, number);
    harm(chosen, call, request, response).catch(() => request.destroy());
  });
  async function harm(chosen, call, request, response) {
    const read = async () => {
      const chunks = [];
      for await (const chunk of request) chunks.push(chunk);
      return Buffer.concat(chunks);
    };
    const forward = async () => {
      const { host: _host, connection: _connection, 'transfer-encoding': _encoding, ...headers } = request.headers;
      const body = await read();
      // What came in chunks, with a length that nobody knew, goes on like that.
      const isChunked = request.headers['transfer-encoding'] !== undefined;
      const response = await fetch(new URL(request.url, serviceUrl), {
        method: request.method, redirect: 'manual', ...(isChunked
          ? { headers, body: Readable.toWeb(Readable.from([body])), duplex: 'half' }
          : { headers: { ...headers, 'content-length': String(body.length) }, body }),
      });
      const answer = { status: response.status, headers: { 'content-type': response.headers.get('content-type') ?? '' }, body: Buffer.from(await response.arrayBuffer()) };
      exchanges.push({ call, path: request.url, headers: request.headers, body, answer });
      return answer;
    };
    const onward = (headers) => {
      const there = http.request(new URL(request.url, serviceUrl), { method: request.method, headers });
      there.on('error', () => undefined);
      return there;
    };
    const pass = ({ status, headers, body }) => response.writeHead(status, headers).end(body);
    const answer = (status, body, headers = {}) =>
      response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
    if (chosen === undefined) pass(await forward());
    else await FAULTS[chosen]({ request, response, read, forward, onward, answer, pass });
  }
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    calls,
    /** What the service was asked and answered, in the order of its answers. */
    exchanges,
    /** Forgets what was called before. */
    with(next) {
      calls.length = 0;
      exchanges.length = 0;
      fault = next;
    },
    close: () => new Promise((resolve) => {
      server.closeAllConnections();
      server.close(resolve);
    }),
  };
}
