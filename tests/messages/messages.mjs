/**
 * Chats accept our messages: what `shared/integrations` makes of a hostile message, as its snapshots
 * have it, fits the vendors' own types, and the vendor's own parser finds nothing wrong with the card.
 * A comment on a pull request, made of hostile texts, links where we link and nowhere else.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { marked } from 'marked';

// Its modules cannot be imported by Node.js; its bundle can.
const AdaptiveCards = createRequire(import.meta.url)('adaptivecards/dist/adaptivecards.js');

const here = fileURLToPath(new URL('.', import.meta.url));
const snapshots = path.join(here, '../../shared/integrations/src/chat/snapshots');
let folder;

/** The JSON that a chat gets, by the name of the test that makes it. */
async function messageTo(chat, test = 'texts_are_no_markup') {
  const name = `callboard_integrations__chat__${chat}__tests__${test}.snap`;
  const snapshot = await readFile(path.join(snapshots, name), 'utf8');
  return JSON.parse(snapshot.slice(snapshot.indexOf('\n---\n') + 5));
}

/** Compiles a message as a value of a type; what does not fit is an error of the compiler. */
async function compiles(chat, imports, type, value) {
  const file = path.join(folder, `${chat}.ts`);
  await writeFile(file, `${imports}\nexport const message: ${type} = ${JSON.stringify(value)};\n`);
  const tsc = path.join(here, 'node_modules/.bin/tsc');
  const options = ['--noEmit', '--strict', '--module', 'nodenext', '--moduleResolution', 'nodenext', '--skipLibCheck'];
  try {
    execFileSync(tsc, [...options, file], { cwd: here, encoding: 'utf8' });
  } catch (error) {
    assert.fail(error.stdout);
  }
}

before(async () => { folder = await mkdtemp(path.join(here, 'compiled-')); });
after(() => rm(folder, { recursive: true, force: true }));

test('Slack accepts the blocks', async () => {
  const { blocks } = await messageTo('slack');
  await compiles('slack', "import type { AnyBlock } from '@slack/types';", 'AnyBlock[]', blocks);
});

test('Slack accepts the message of a bot', async () => {
  const type = 'ChatPostMessageArguments';
  const message = await messageTo('slack', 'a_bot_says_the_same');
  await compiles('bot', `import type { ${type} } from '@slack/web-api';`, type, message);
  // What comes from tests stands where Slack reads no markup: in plain text, and in elements of rich text.
  const texts = JSON.stringify(message.blocks).match(/"type":"(mrkdwn|user|usergroup|broadcast|channel)"/g);
  assert.equal(texts, null);
  const links = [...JSON.stringify(message).matchAll(/"url":"([^"]*)"/g)].map(([, url]) => url);
  assert.ok(links.length >= 3 && links.every((url) => url.startsWith('https://callboard.example.com/')), links.join('\n'));
});

test('Discord accepts the embed', async () => {
  const type = 'RESTPostAPIWebhookWithTokenJSONBody';
  await compiles('discord', `import type { ${type} } from 'discord-api-types/v10';`, type, await messageTo('discord'));
});

test('a wrong message is noticed', async () => {
  const blocks = [{ type: 'section', text: { type: 'plain_words', text: 'x' } }];
  await assert.rejects(compiles('wrong', "import type { AnyBlock } from '@slack/types';", 'AnyBlock[]', blocks));
});

test('Teams reads the card without complaint', async () => {
  const { attachments: [{ content }] } = await messageTo('teams');
  const card = new AdaptiveCards.AdaptiveCard();
  const context = new AdaptiveCards.SerializationContext(AdaptiveCards.Versions.v1_4);
  card.parse(content, context);
  assert.equal(context.eventCount, 0);
  assert.deepEqual(card.validateProperties().validationEvents, []);
  assert.equal(card.getItemCount(), content.body.length);
});

test('a comment holds no markup of a test, and no link but ours', async () => {
  const name = 'callboard_domain__feedback__comment__tests__texts_are_no_markup.snap';
  const snapshot = await readFile(path.join(here, '../../shared/domain/src/feedback/snapshots', name), 'utf8');
  const markdown = snapshot.slice(snapshot.indexOf('\n---\n') + 5);
  for (const options of [{ gfm: true }, { gfm: true, breaks: true }, { gfm: false }, { pedantic: true, gfm: false }]) {
    const html = marked.parse(markdown, options);
    const tags = new Set([...html.matchAll(/<([a-z0-9]+)/g)].map(([, tag]) => tag));
    const ours = ['a', 'br', 'code', 'h3', 'h4', 'li', 'ol', 'p', 'strong', 'ul'];
    assert.deepEqual([...tags].filter((tag) => !ours.includes(tag)), [], html);
    const links = [...html.matchAll(/href="([^"]*)"/g)].map(([, link]) => link);
    assert.ok(links.length >= 6 && links.every((link) => link.startsWith('https://callboard.example/')), links.join('\n'));
    assert.equal([...html.matchAll(/<h[1-6]/g)].length, 6, 'headings are ours');
    // What is read as a mention, a reference or an emoji stands in code, where no provider looks for one.
    const outside = html.replace(/<code>[^]*?<\/code>/g, '').replace(/<[^>]*>/g, '');
    assert.doesNotMatch(outside, /@team|#12|!5|GH-1|evil|:tada:|deadbeef|\u202e|\/close/);
  }
});
