/**
 * The browser a test ran in: the project's name and those of its `use` options that
 * describe a browser. Anything else there (credentials, storage, headers) stays home.
 */
import type { FullProject } from '@playwright/test';

const KEPT_OPTIONS = [
  'channel', 'viewport', 'deviceScaleFactor', 'isMobile', 'hasTouch', 'locale', 'timezoneId', 'geolocation',
  'colorScheme', 'reducedMotion', 'forcedColors', 'offline', 'bypassCSP', 'javaScriptEnabled', 'serviceWorkers',
  'userAgent',
] as const;

export type Browser = { projectName: string; browserName?: string } & Record<string, unknown>;

export function browserOf(project: FullProject | undefined): Browser {
  const use: Record<string, unknown> = { ...project?.use };
  const contextOptions = typeof use['contextOptions'] === 'object' ? { ...use['contextOptions'] } : {};
  const known: Record<string, unknown> = { ...contextOptions, ...use };
  return {
    projectName: project?.name ?? '',
    browserName: String(use['browserName'] ?? use['defaultBrowserType'] ?? 'chromium'),
    ...Object.fromEntries(KEPT_OPTIONS.flatMap((key) => (known[key] == null ? [] : [[key, known[key]]]))),
  };
}
