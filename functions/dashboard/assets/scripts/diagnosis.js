// A diagnosis or a search for a culprit that runs: the page asks how far it is, and is loaded again when it has ended.

const ASK_EVERY_MS = 2000;
const STAGES = {
  queued: 'Queued', 'first-pass': 'Waiting for the first model', asking: 'Waiting for the model', repairing: 'Asking the model for a valid answer',
};

/** Shows what has arrived of an answer that is being written. */
function show(place, { stage, progress }) {
  place.querySelector('[data-stage]').textContent = progress ? 'Receiving the answer' : (STAGES[stage] ?? 'Running');
  const draft = place.querySelector('[data-draft]');
  draft.hidden = !progress?.text;
  draft.textContent = progress?.text ?? '';
  const received = place.querySelector('[data-received]');
  received.hidden = !progress;
  received.textContent = progress ? `${progress.received.toLocaleString('en')} characters received` : '';
}

async function follow(place) {
  const { follow: path } = place.dataset;
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, ASK_EVERY_MS));
    if (document.hidden) continue;
    const response = await fetch(path, { headers: { accept: 'application/json' } }).catch(() => undefined);
    if (!response) continue;
    if (!response.ok) return;
    const { diagnosis, state } = await response.json();
    if ((diagnosis?.status ?? state) !== 'running') {
      location.reload();
      return;
    }
    if (diagnosis) show(place, diagnosis);
  }
}

for (const place of document.querySelectorAll('[data-follow]')) follow(place);
