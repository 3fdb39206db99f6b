// The pages in front of the door. A token of a mail stands behind the # of the
// address, which no server ever sees, and leaves the address at once.

function tokenOfAddress() {
  const token = new URLSearchParams(location.hash.slice(1)).get('token') ?? '';
  if (location.hash) history.replaceState(history.state, '', location.pathname);
  return token;
}

/** Shows the part of the page that fits the token. */
function showPart(name) {
  for (const part of document.querySelectorAll('[data-part]')) part.hidden = !part.dataset.part.split(' ').includes(name);
}

const KINDS = { srp: 'reset', siv: 'invite', sve: 'verify', sun: 'unsubscribe' };

function take(field) {
  const token = tokenOfAddress();
  const kind = KINDS[token.slice(0, 3)];
  const isExpected = kind && field.dataset.token.split(' ').includes(kind);
  field.value = isExpected ? token : '';
  showPart(isExpected ? kind : 'none');
  if (isExpected && kind === 'unsubscribe') field.form.dataset.api = `POST /api/unsubscribe?token=${encodeURIComponent(token)}`;
  if (isExpected && kind === 'verify') {
    field.form.dataset.api = `GET /api/auth/verify-email?token=${encodeURIComponent(token)}`;
    field.form.requestSubmit();
  }
}

// Who signs in next may be somebody else.
try {
  localStorage.removeItem('callboard-recent');
} catch {
  // Without storage nothing was kept.
}

const field = document.querySelector('[data-token]');
if (field) {
  field.form.addEventListener('done', () => showPart('done'));
  // A link that is used up stays so: what is left to do is to ask for another one.
  field.form.addEventListener('refused', ({ detail }) => {
    for (const part of field.form.querySelectorAll('[data-used-up]')) part.hidden = (detail === 400) !== (part.dataset.usedUp === 'yes');
  });
  // A link that is pasted over this page changes nothing but what stands behind the #.
  addEventListener('hashchange', () => take(field));
  take(field);
}
