/**
 * A provider to sign in at, in a process of its own: `node provider.mjs <file>` writes its
 * address into the file. Everybody who comes is Grace, and her address is verified.
 */
import { writeFile } from 'node:fs/promises';
import { OAuth2Server } from 'oauth2-mock-server';

const server = new OAuth2Server();
await server.issuer.keys.generate('RS256');
await server.start(0, 'localhost');
server.service.on('beforeUserinfo', (answer) => {
  answer.body = { sub: 'grace-at-the-provider', name: 'Grace Hopper', email: 'grace@corp.example', email_verified: true };
});
await writeFile(process.argv[2], server.issuer.url);
