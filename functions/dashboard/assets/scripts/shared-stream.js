// One stream for all pages of a browser that follow the same address. Whichever of them holds the
// lock of that address reads the stream and broadcasts its events; when it is hidden or closed, the
// next one goes on where it was. Browsers without locks, or on an insecure origin, open one stream a
// page.

/** Events the reading page keeps for pages that are opened later. */
const KEPT_EVENTS = 500;
/** Pause before a stream that was refused is asked for again. */
const REFUSED_PAUSE_MS = 30_000;

/** Reads a stream itself; answers how to stop. `stands` hears false, true (lost) or 'gone' (refused). */
function readStream(address, lastOf, told, stands) {
  let source;
  let timer;
  const open = () => {
    const url = new URL(address, location.href);
    if (lastOf() !== undefined) url.searchParams.set('lastEventId', lastOf());
    source = new EventSource(url);
    source.onopen = () => stands(false);
    source.onerror = () => {
      const isRefused = source.readyState === EventSource.CLOSED;
      stands(isRefused ? 'gone' : true);
      if (isRefused) timer = setTimeout(open, REFUSED_PAUSE_MS);
    };
    // How many notifications are unread is no event with a number; browsers repeat the last one for it.
    const isNumbered = ({ lastEventId, data }) => lastEventId && !data.includes('"type":"notifications"');
    source.onmessage = (message) => told(isNumbered(message) ? Number(message.lastEventId) : undefined, message.data);
  };
  open();
  return () => {
    clearTimeout(timer);
    source.close();
  };
}

/**
 * Follows an address after an event, as one of the pages that do. `heard` gets each event once, or a
 * `reset` where some were missed.
 */
function sharedStream(address, after, heard, stands) {
  let last = after === undefined ? undefined : Number(after);
  let close;
  const take = (id, data) => {
    if (id !== undefined && last !== undefined && id <= last) return;
    if (id !== undefined) last = id;
    heard(JSON.parse(data));
  };

  const share = () => {
    const channel = new BroadcastChannel(`stream ${address}`);
    const leaving = new AbortController();
    const self = crypto.getRandomValues(new Uint32Array(2)).join('-');
    let stopReading;
    let first;
    let standing = true;
    let kept = [];
    const lead = () => new Promise((release) => {
      leaving.signal.addEventListener('abort', release, { once: true });
      first = last;
      channel.postMessage({ kind: 'leads' });
      stopReading = readStream(address, () => last, (id, data) => {
        kept.push({ id, data });
        if (kept.length > KEPT_EVENTS) {
          const dropped = kept.shift();
          first = dropped.id ?? first;
        }
        channel.postMessage({ kind: 'event', id, data });
        take(id, data);
      }, (how) => {
        standing = how;
        channel.postMessage({ kind: 'stands', how });
        stands(how);
      });
    });
    const hello = () => channel.postMessage({ kind: 'hello', from: self, last });
    const answer = ({ from, last: theirs }) => {
      const isBehind = theirs === undefined || first === undefined || theirs < first;
      const events = isBehind ? [] : kept.filter(({ id }) => id === undefined || id > theirs);
      channel.postMessage({ kind: 'since', to: from, isBehind, events, last, how: standing });
    };
    channel.onmessage = ({ data: message }) => {
      if (stopReading) {
        if (message.kind === 'hello') answer(message);
        return;
      }
      if (message.kind === 'leads') hello();
      else if (message.kind === 'event') take(message.id, message.data);
      else if (message.kind === 'stands') stands(message.how);
      else if (message.kind === 'since' && message.to === self) {
        if (message.isBehind) {
          last = message.last ?? last;
          heard({ type: 'reset' });
        }
        for (const { id, data } of message.events) take(id, data);
        stands(message.how);
      }
    };
    hello();
    navigator.locks.request(`stream ${address}`, { signal: leaving.signal }, () => !leaving.signal.aborted && lead())
      .catch((error) => {
        if (error.name !== 'AbortError') throw error;
      });
    return () => {
      stopReading?.();
      leaving.abort();
      channel.close();
    };
  };

  const canShare = navigator.locks !== undefined && globalThis.BroadcastChannel !== undefined;
  return {
    open() {
      close ??= canShare ? share() : readStream(address, () => last, take, stands);
    },
    close() {
      close?.();
      close = undefined;
    },
  };
}

