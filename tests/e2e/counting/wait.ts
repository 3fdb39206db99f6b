/** What takes as long as whoever runs the tests wants: until the file is there that they name. */
import { existsSync } from 'node:fs';

export async function takesItsTime(atMostMs = Infinity) {
  const file = process.env['COUNTING_UNTIL'];
  for (const since = Date.now(); file && !existsSync(file) && Date.now() - since < atMostMs;) {
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
