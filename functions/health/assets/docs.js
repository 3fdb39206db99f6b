// Starts the viewer over our own document. Nothing is fetched from elsewhere:
// the validator badge of the viewer is switched off.

// The viewer has a class for the theme that the page has chosen, or the system.
const root = document.documentElement;
const dark = matchMedia('(prefers-color-scheme: dark)');

function applyTheme() {
  root.classList.toggle('dark-mode', root.dataset.theme ? root.dataset.theme === 'dark' : dark.matches);
}

applyTheme();
dark.addEventListener('change', applyTheme);
new MutationObserver(applyTheme).observe(root, { attributeFilter: ['data-theme'] });

// Its fields for parameters have no names of their own.
const reference = document.getElementById('reference');
new MutationObserver(() => {
  for (const field of reference.querySelectorAll('tr[data-param-name] :is(select, input, textarea):not([aria-label])')) {
    field.setAttribute('aria-label', field.closest('tr').dataset.paramName);
  }
}).observe(reference, { childList: true, subtree: true });

window.SwaggerUIBundle({
  url: '/api/openapi.json',
  domNode: reference,
  // With them every call would be a link inside of a button.
  deepLinking: false,
  // Its colours are written into the page and too faint on one of the themes.
  syntaxHighlight: { activated: false },
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  filter: true,
  validatorUrl: null,
  presets: [window.SwaggerUIBundle.presets.apis],
});
