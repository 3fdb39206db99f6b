/** The version of this package, as its package.json says. */
import { readFileSync } from 'node:fs';
import path from 'node:path';

export function reporterVersion(): string {
  for (const up of ['..', '../..']) {
    try {
      const manifest = JSON.parse(readFileSync(path.join(__dirname, up, 'package.json'), 'utf8')) as {
        name?: string; version?: string;
      };
      if (manifest.name === 'callboard-reporter' && manifest.version) return manifest.version;
    } catch {
      // The compiled tests lie one folder deeper than the package.
    }
  }
  return '0.0.0';
}
