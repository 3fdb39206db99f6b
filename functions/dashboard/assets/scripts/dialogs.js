// Dialogs: buttons that open them, and what they carry over. One dialog serves
// a whole list: its button says which call its form makes and about what.
//   <button data-opens="revoke" data-call="DELETE /api/…" data-subject="CI">

function open(button) {
  const dialog = document.getElementById(button.dataset.opens);
  const form = dialog.querySelector('form[data-api]');
  if (button.dataset.call) form.dataset.api = button.dataset.call;
  for (const place of dialog.querySelectorAll('[data-subject-here]')) place.textContent = visible(button.dataset.subject);
  const message = form?.querySelector('[data-message]');
  if (message) message.hidden = true;
  dialog.showModal();
}

function setUp(dialog) {
  for (const button of dialog.querySelectorAll('[data-closes]')) button.addEventListener('click', () => dialog.close());
  dialog.addEventListener('close', () => {
    // What was shown once is not shown again; the list behind it has changed.
    const shown = dialog.querySelector('[data-shown-once]');
    if (shown && !shown.hidden) location.reload();
  });
}

// Whatever a dialog sends, a demo refuses.
const isDemo = 'demo' in document.documentElement.dataset;
for (const button of document.querySelectorAll('[data-opens]')) {
  button.hidden = isDemo;
  button.addEventListener('click', () => open(button));
}
for (const dialog of document.querySelectorAll('dialog[data-dialog]')) setUp(dialog);
