/** Sends what the demo makes to the service at `CALLBOARD_URL`; with `CALLBOARD_API_KEY` where it asks for one. */

export const serviceUrl = process.env.CALLBOARD_URL?.replace(/\/+$/, '');

const credentials = () => (process.env.CALLBOARD_API_KEY ? { authorization: `Bearer ${process.env.CALLBOARD_API_KEY}` } : {});

async function answered(path, response) {
  const text = await response.text();
  if (!response.ok) throw new Error(`${path} answered ${response.status}: ${text.slice(0, 500)}`);
  return JSON.parse(text);
}

export async function getJson(path) {
  return answered(path, await fetch(new URL(path, serviceUrl), { headers: credentials() }));
}

export async function send(method, path, body) {
  const headers = { 'content-type': 'application/json', ...credentials() };
  return answered(path, await fetch(new URL(path, serviceUrl), { method, headers, body: JSON.stringify(body) }));
}

/** A finished run with pictures of its failed attempts: `pictures` maps the index of an attempt to a PNG. */
export async function upload({ testCases, ...run }, pictures) {
  const form = new FormData();
  form.set('projectName', run.projectName);
  form.set('testRun', JSON.stringify(run));
  form.set('testCases', JSON.stringify(testCases));
  for (const [index, bytes] of pictures) {
    form.append(`attach_meta_${index}`, JSON.stringify([{ name: 'screenshot', contentType: 'image/png', originalName: 'test-failed-1.png' }]));
    form.append(`attach_file_${index}`, new Blob([bytes], { type: 'image/png' }), 'test-failed-1.png');
  }
  return answered('/api/test-runs/upload', await fetch(new URL('/api/test-runs/upload', serviceUrl), { method: 'POST', headers: credentials(), body: form }));
}
