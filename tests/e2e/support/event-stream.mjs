/** Reads a live stream of the service and comes back where it was when the service closes it early. */
import { get } from './service.mjs';

const LAST = new Set(['run-finished']);

export function eventStream(path) {
  const events = [];
  const waiting = new Set();
  let isClosed = false;
  const wake = () => {
    for (const look of waiting) look();
  };

  const read = async () => {
    for (let lastEventId; !LAST.has(events.at(-1)?.type);) {
      const response = await get(path, lastEventId === undefined ? {} : { headers: { 'last-event-id': lastEventId } });
      if (!response.ok) throw new Error(`${path} answered ${response.status}`);
      let rest = '';
      for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
        const blocks = (rest + chunk).split('\n\n');
        rest = blocks.pop();
        for (const block of blocks) {
          const field = (name) => block.split('\n').find((each) => each.startsWith(`${name}: `))?.slice(name.length + 2);
          lastEventId = field('id') ?? lastEventId;
          const data = field('data');
          if (data !== undefined) events.push(JSON.parse(data));
        }
        wake();
      }
    }
    return events;
  };
  const closed = read().finally(() => {
    isClosed = true;
    wake();
  });
  closed.catch(() => undefined);

  return {
    /** Every event, once the run is over. */
    closed,
    /** Resolves when the events so far satisfy the condition. */
    until: (condition) => new Promise((resolve, reject) => {
      const look = () => {
        if (condition(events)) resolve(events);
        else if (isClosed) closed.then(() => reject(new Error(`the stream ended: ${JSON.stringify(events)}`)), reject);
        else return;
        waiting.delete(look);
      };
      waiting.add(look);
      look();
    }),
  };
}
