// Files that take a while to make. The form asks for one (form-api.js); this
// asks how far it is and fetches it as soon as it is there.

const ASK_EVERY_MS = 1000;
const GIVE_UP_MS = 600_000;

function say(form, text, kind) {
  const place = form.querySelector('[data-message]');
  place.textContent = visible(text);
  place.dataset.kind = kind;
  place.hidden = false;
}

async function follow(form, id) {
  for (const end = Date.now() + GIVE_UP_MS; Date.now() < end;) {
    await new Promise((resolve) => setTimeout(resolve, ASK_EVERY_MS));
    const response = await fetch(`/api/exports/${id}`, { headers: { accept: 'application/json' } });
    const { export: file } = response.ok ? await response.json() : {};
    if (file?.status === 'ready') {
      say(form, 'Export ready. Downloading.', 'done');
      location.assign(file.downloadUrl);
      return;
    }
    if (!file || file.status === 'failed') {
      const request = response.ok ? null : response.headers.get('x-request-id');
      say(form, `Export failed. Try again or select fewer rows.${request ? ` Request ${request}.` : ''}`, 'error');
      return;
    }
  }
  say(form, 'The export takes too long. Try again or select fewer rows.', 'error');
}

for (const form of document.querySelectorAll('form[data-export]')) {
  form.addEventListener('done', ({ detail }) => {
    follow(form, detail.export.id).catch(() => say(form, 'The service cannot be reached. Try again.', 'error'));
  });
}
