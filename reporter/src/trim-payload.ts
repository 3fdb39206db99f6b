/**
 * A result that is too large for the way to the service loses evidence, the bulkiest and
 * least telling first; what happened is never left out.
 */
const DISPENSABLE = [
  ['networkRequests'], ['consoleLogs'], ['steps', 'stepEvents'], ['ariaSnapshot'], ['locatorSnapshots'],
  ['testSource', 'testSourceFrames', 'stdout', 'stderr'],
] as const;

/** The result without the next kind of evidence; undefined when there is none left. */
export function trimmed(json: string): string | undefined {
  const entry = JSON.parse(json) as Record<string, unknown>;
  const next = DISPENSABLE.find((keys) => keys.some((key) => entry[key] !== undefined));
  if (!next) return undefined;
  for (const key of next) delete entry[key];
  return JSON.stringify(entry);
}
