// Pages of runs that go on. A run's stream says what its workers do and how
// far it is; rows, counters and tabs are taken from the page itself, asked for
// again when something changed, so that filters, order and wording stay the
// server's. A stream that breaks off goes on after the last event it told;
// a page that nobody looks at lets go of it.

const REFRESH_MS = 1000;
const PULSE_MS = 5000;
const LONGEST_PAUSE_MS = 30_000;
const NOTED_LOSS_MS = 3000;
/** How a run that goes on is said to stand. */
const STANDINGS = { initializing: 'Live', running: 'Live', finalizing: 'Waiting for files' };
const KINDS_THAT_CHANGE_ROWS = new Set([
  'test-completed', 'case-files', 'run-progress', 'run-status', 'run-finalizing', 'run-finished', 'reset', 'init',
]);

const panel = document.querySelector('[data-live-run]');
const list = document.querySelector('[data-live-runs]');

/**
 * Asks for this page again, at most once at a time and not more often than `pause`. What fails is
 * asked again, later each time: the event that wanted it may have been the last one.
 */
function refresher(pause, after = () => {}) {
  let isRunning = false;
  let isWanted = false;
  let nextAt = 0;
  let failures = 0;
  let timer;
  const run = async () => {
    timer = undefined;
    isWanted = false;
    const seen = await newerPage();
    if (seen?.page) {
      exchange(seen.page);
      after();
    }
    failures = seen ? 0 : failures + 1;
    nextAt = performance.now() + Math.min(pause * 2 ** failures, LONGEST_PAUSE_MS);
    isRunning = false;
    if (isWanted || failures > 0) request();
  };
  const request = () => {
    isWanted = true;
    if (isRunning) return;
    isRunning = true;
    timer = setTimeout(run, Math.max(0, nextAt - performance.now()));
  };
  addEventListener('online', () => {
    if (failures === 0 || timer === undefined) return;
    clearTimeout(timer);
    run();
  });
  return request;
}

/** This page as it is now; without one when it is refused, nothing when nobody answered. */
async function newerPage() {
  try {
    const answer = await fetch(location.href, { headers: { accept: 'text/html' } });
    if (answer.ok) return { page: new DOMParser().parseFromString(await answer.text(), 'text/html') };
    return answer.status < 500 && answer.status !== 429 ? {} : undefined;
  } catch {
    return undefined;
  }
}

/** Puts the parts of a newer page in the place of the same parts of this one. */
function exchange(newer) {
  for (const part of document.querySelectorAll('[data-live-part]')) {
    const name = part.dataset.livePart;
    const fresh = newer.querySelector(`[data-live-part="${CSS.escape(name)}"]`);
    if (!fresh) continue;
    keepFolded(part, fresh);
    // As page.js shows them: what is the same otherwise stays.
    for (const button of fresh.querySelectorAll('[data-copy-from]')) button.hidden = false;
    if (fresh.innerHTML === part.innerHTML || isBeingSelected(part)) continue;
    const again = part.contains(document.activeElement) ? finderOf(document.activeElement) : undefined;
    const ticked = [...part.querySelectorAll('input:checked')].map(({ value }) => value);
    part.replaceChildren(...document.importNode(fresh, true).childNodes);
    for (const box of part.querySelectorAll('input[type="checkbox"]')) box.checked = ticked.includes(box.value);
    again?.(part)?.focus({ preventScroll: true });
  }
  document.dispatchEvent(new Event('exchanged'));
}

/** How the same link, box, fold or button is found in a newer part. */
function finderOf(element) {
  const bySelector = (selector) => (part) => part.querySelector(selector);
  if (element.matches('a[href]')) return bySelector(`a[href="${CSS.escape(element.getAttribute('href'))}"]`);
  if (element.matches('input[name][value]')) return bySelector(`input[name="${CSS.escape(element.name)}"][value="${CSS.escape(element.value)}"]`);
  if (element.matches('details > summary')) {
    const name = nameOf(element.parentElement);
    return (part) => [...part.querySelectorAll('details')].find((details) => nameOf(details) === name)?.querySelector(':scope > summary');
  }
  if (element.matches('button')) {
    const { copyFrom } = element.dataset;
    if (copyFrom) return bySelector(`button[data-copy-from="${CSS.escape(copyFrom)}"]`);
    const labelOf = (button) => button.getAttribute('aria-label') ?? button.textContent.trim();
    const alike = (part) => [...part.querySelectorAll('button')].filter((button) => labelOf(button) === labelOf(element));
    const at = alike(element.closest('[data-live-part]')).indexOf(element);
    return (part) => alike(part)[at];
  }
  // Parts that scroll can be focused too.
  if (element.matches('[tabindex][aria-label]')) return bySelector(`[tabindex][aria-label="${CSS.escape(element.getAttribute('aria-label'))}"]`);
  return undefined;
}

/** What a fold is called, and those it lies in. */
function nameOf(details) {
  const outer = details.parentElement.closest('details');
  const summary = details.querySelector(':scope > summary');
  return `${outer ? nameOf(outer) : ''}/${(summary.querySelector('code, h2') ?? summary).textContent}`;
}

/** What one has opened stays open, and what one has closed closed. */
function keepFolded(part, fresh) {
  const known = new Map([...part.querySelectorAll('details')].map((details) => [nameOf(details), details.open]));
  for (const details of fresh.querySelectorAll('details')) details.open = known.get(nameOf(details)) ?? details.open;
}

function isBeingSelected(part) {
  const selection = getSelection();
  return selection && !selection.isCollapsed && part.contains(selection.anchorNode);
}

/** Follows a stream as long as somebody looks; `told` says that nothing will follow by answering true. */
function follow(address, after, told, lost) {
  let isOver = false;
  const stream = sharedStream(address, after, (event) => {
    if (isOver || !told(event)) return;
    isOver = true;
    // After the pages that listen to this one have heard it, too.
    setTimeout(stream.close);
  }, lost);
  const open = () => {
    if (!isOver && !document.hidden) stream.open();
  };
  document.addEventListener('visibilitychange', () => (document.hidden ? stream.close() : open()));
  addEventListener('pagehide', stream.close);
  addEventListener('pageshow', open);
  open();
}

function setText(element, text) {
  const shown = visible(text);
  if (element && element.textContent !== shown) element.textContent = shown;
}

/** What each worker is at. Steps do not say their shard, so they go to whoever runs their test. */
function workerList(list) {
  const rows = new Map();
  const key = ({ shardIndex, workerIndex }) => `${shardIndex ?? 0}/${workerIndex}`;
  const rowOf = (data) => {
    let row = rows.get(key(data));
    if (!row) {
      const item = document.createElement('li');
      const parts = ['live-worker', 'live-test', 'live-step'].map((name) => {
        const part = document.createElement('span');
        part.className = name;
        item.append(part);
        return part;
      });
      row = { item, worker: parts[0], test: parts[1], step: parts[2], index: data.workerIndex, shard: data.shardIndex ?? 0 };
      setText(row.worker, row.shard ? `Shard ${row.shard}, worker ${row.index + 1}` : `Worker ${row.index + 1}`);
      rows.set(key(data), row);
      const sorted = [...rows.values()].sort((a, b) => a.shard - b.shard || a.index - b.index);
      list.replaceChildren(...sorted.map((each) => each.item));
    }
    return row;
  };
  const isWorker = (data) => Number.isInteger(data.workerIndex) && data.workerIndex >= 0;
  return {
    begin(data) {
      if (!isWorker(data)) return;
      const row = rowOf(data);
      row.title = data.title;
      row.item.title = visible([...(data.suitePath ?? []), data.title].join(' › '));
      setText(row.test, data.title);
      setText(row.step, '');
      list.hidden = false;
    },
    step(data) {
      const row = [...rows.values()].find((each) => each.index === data.workerIndex && each.title === data.parentTitle);
      if (row) setText(row.step, data.title);
    },
    end(data) {
      if (!isWorker(data) || !rows.has(key(data))) return;
      const row = rowOf(data);
      if (row.title !== data.title) return;
      row.title = undefined;
      setText(row.test, '');
      setText(row.step, '');
    },
    clear() {
      rows.clear();
      list.replaceChildren();
      list.hidden = true;
    },
  };
}

/** Tells of a loss that lasts: streams end now and then and go on at once. */
function lasting(tell) {
  let timer;
  return (how) => {
    if (how === true) {
      timer ??= setTimeout(tell, NOTED_LOSS_MS, true);
      return;
    }
    clearTimeout(timer);
    timer = undefined;
    tell(how);
  };
}

function followRun() {
  const part = (name) => panel.querySelector(`[data-live-${name}]`);
  const workers = workerList(part('workers'));
  const number = new Intl.NumberFormat('en');
  // As the page groups them.
  const grouped = (count) => number.format(count).replaceAll(',', '\u202f');
  let isOver = false;
  let standing = STANDINGS.running;
  const refresh = refresher(REFRESH_MS, () => {
    if (isOver) panel.remove();
  });
  const progress = ({ totalTests, repetitions = totalTests, plannedTests, shardsFinished }) => {
    if (!Number.isInteger(totalTests)) return;
    const planned = Math.max(plannedTests ?? 0, repetitions);
    setText(part('done'), grouped(repetitions));
    if (plannedTests) {
      setText(part('planned'), grouped(planned));
      Object.assign(part('bar'), { max: planned, value: repetitions });
    }
    setText(part('shards'), String(shardsFinished));
  };
  const stand = (words) => {
    standing = words;
    setText(part('state'), words);
  };
  const told = ({ type, data }) => {
    if (type === 'test-begin') workers.begin(data);
    else if (type === 'step-begin') workers.step(data);
    else if (type === 'test-completed') workers.end(data);
    else if (type === 'reset') workers.clear();
    else if (type === 'run-progress' || type === 'init') progress(data);
    else if (type === 'run-finalizing') stand(STANDINGS.finalizing);
    if (STANDINGS[data?.status]) stand(STANDINGS[data.status]);
    isOver = type === 'run-finished';
    if (isOver) {
      workers.clear();
      stand('Finished');
    }
    if (KINDS_THAT_CHANGE_ROWS.has(type)) refresh();
    return isOver;
  };
  const lost = lasting((how) => {
    const state = part('state');
    if (how) state.dataset.state = 'lost';
    else delete state.dataset.state;
    if (how === 'gone') setText(state, 'No longer live; reload the page');
    else setText(state, how ? 'Reconnecting' : standing);
  });
  follow(panel.dataset.liveRun, panel.dataset.liveAfter, told, lost);
}

/** Says over the page that a list does not hear of anything any more. */
function lossNote() {
  const note = document.createElement('p');
  note.className = 'live-lost';
  note.setAttribute('role', 'status');
  document.body.append(note);
  return lasting((how) => {
    if (how === true) setText(note, 'Connection lost. Reconnecting.');
    else setText(note, how ? 'No longer live; reload the page.' : '');
  });
}

/**
 * Lists of runs: of all projects, or of the one that the list names. Runs begin and end on their
 * own; how far they are is asked for while any goes on.
 */
function followRuns() {
  const { liveRuns: project, liveAfter: after } = list.dataset;
  // A page without any run has no list yet: it is another one once there is a run.
  const isFirst = list.dataset.liveFirst !== undefined;
  const isActive = () => document.querySelector('[data-live-pulse] .mark.running') !== null;
  let timer;
  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(() => !document.hidden && refresh(), PULSE_MS);
  };
  const refresh = isFirst ? () => location.reload() : refresher(REFRESH_MS, () => isActive() && later());
  const told = ({ type, projectId }) => {
    if (!project || type === 'reset' || projectId === Number(project)) refresh();
    return false;
  };
  follow('/api/stream', after, told, lossNote());
  if (isFirst) return;
  document.addEventListener('visibilitychange', () => !document.hidden && refresh());
  if (isActive()) later();
}

if (panel) followRun();
if (list) followRuns();
