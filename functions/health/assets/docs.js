// Starts the viewer over our own document. Nothing is fetched from elsewhere:
// the validator badge of the viewer is switched off.
window.SwaggerUIBundle({
  url: '/api/openapi.json',
  domNode: document.getElementById('reference'),
  deepLinking: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  filter: true,
  validatorUrl: null,
  presets: [window.SwaggerUIBundle.presets.apis],
});
