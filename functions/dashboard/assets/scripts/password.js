// Lets people see the password they are typing.
for (const button of document.querySelectorAll('[data-reveals]')) {
  const field = document.getElementById(button.dataset.reveals);
  button.hidden = false;
  button.addEventListener('click', () => {
    const isShown = field.type === 'text';
    field.type = isShown ? 'password' : 'text';
    button.setAttribute('aria-pressed', String(!isShown));
    field.focus();
  });
  // What is kept by the browser should be a password.
  field.form?.addEventListener('submit', () => {
    field.type = 'password';
    button.setAttribute('aria-pressed', 'false');
  }, { capture: true });
}
