import type { SourceRoot } from '../src/source-root';

/** The root of a suite that was started in it. */
export function rootAt(folder: string): SourceRoot {
  return { places: [{ folder, path: '' }], bases: [], kind: 'configuration', earlier: { from: '', to: '' } };
}
