// A diagnosis or a search for a culprit that runs: the page asks how far it is, and is loaded again when it has ended.

const ASK_EVERY_MS = 2000;
const STAGES = { queued: 'Queued', asking: 'Waiting for the model', repairing: 'Asking the model for a valid answer' };

async function follow(place) {
  const { follow: path } = place.dataset;
  const stage = place.querySelector('[data-stage]');
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
    if (diagnosis) stage.textContent = STAGES[diagnosis.stage] ?? 'Running';
  }
}

for (const place of document.querySelectorAll('[data-follow]')) follow(place);
