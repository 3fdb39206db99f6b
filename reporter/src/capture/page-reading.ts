/// <reference lib="dom" />
/**
 * What a page is like when the test is done with it: its vitals and its state. Names and
 * lengths of what it stores, never values.
 */
import type { BrowserContext, Page } from '@playwright/test';

export interface PageReading {
  webVitals: Record<string, unknown>;
  pageState: Record<string, unknown>;
}

export async function readPage(page: Page): Promise<PageReading> {
  const [{ webVitals, pageState }, cookies] = await Promise.all([page.evaluate(readInPage), cookiesOf(page.context(), page.url())]);
  return { webVitals, pageState: { ...pageState, cookies } };
}

async function cookiesOf(context: BrowserContext, url: string): Promise<Record<string, unknown>[]> {
  const cookies = await context.cookies(/^https?:/.test(url) ? url : []);
  return cookies.slice(0, 30).map(({ name, domain, path, httpOnly, secure, sameSite, expires }) => (
    { name, domain, path, httpOnly, secure, sameSite, ...(expires > 0 ? { expires } : {}) }));
}

/** Runs in the page, so it may use nothing from outside of itself. */
function readInPage(): PageReading {
  const rounded = (value: number | undefined): number | undefined => (value && value > 0 ? Math.round(value) : undefined);
  const buffered = (type: string, more: object = {}): PerformanceEntry[] => {
    try {
      const observer = new PerformanceObserver(() => undefined);
      observer.observe({ type, buffered: true, ...more });
      const entries = observer.takeRecords();
      observer.disconnect();
      return entries;
    } catch {
      return [];
    }
  };
  const [navigation] = performance.getEntriesByType('navigation') as PerformanceNavigationTiming[];
  const paint = (name: string): number | undefined => rounded(performance.getEntriesByName(name)[0]?.startTime);
  const lcp = rounded(buffered('largest-contentful-paint').at(-1)?.startTime);
  const shifts = buffered('layout-shift') as (PerformanceEntry & { value: number; hadRecentInput: boolean })[];
  // The worst burst of shifts: at most 5 s long, with no pause of a second (web.dev, "Cumulative Layout Shift").
  let cls = 0;
  let burst = { value: 0, first: -Infinity, last: -Infinity };
  for (const { value, hadRecentInput, startTime } of shifts) {
    if (hadRecentInput) continue;
    const continues = startTime - burst.last < 1_000 && startTime - burst.first < 5_000;
    burst = continues ? { ...burst, value: burst.value + value, last: startTime } : { value, first: startTime, last: startTime };
    cls = Math.max(cls, burst.value);
  }
  const interactions = buffered('event', { durationThreshold: 16 })
    .filter((entry) => (entry as PerformanceEntry & { interactionId?: number }).interactionId);
  const inp = rounded(Math.max(0, ...interactions.map(({ duration }) => duration)));
  const vitals = { lcp, cls: shifts.length > 0 || lcp !== undefined ? Math.round(cls * 10_000) / 10_000 : undefined, inp };

  const stored = (storage: () => Storage): { key: string; length: number }[] => {
    try {
      const own = storage();
      return Object.keys(own).slice(0, 50).map((key) => ({ key: key.slice(0, 200), length: own.getItem(key)?.length ?? 0 }));
    } catch {
      return [];
    }
  };
  const address = location.origin === 'null' ? location.href.split(/[?#]/, 1)[0]!.slice(0, 2_000) : location.origin + location.pathname;
  const secret = /pass|secret|token|auth|key|session|credential|cookie|jwt/i;
  // Addresses are kept in states, and logins hand tokens over in fragments.
  const withoutValues = (text: string): string => text.replace(/([?&#][^=&?#\s]*=)[^&#\s]+/g, '$1<masked>');
  const historyState = (): string | null => {
    try {
      const masked = JSON.stringify(history.state, (key, value: unknown) => (
        secret.test(key) || (typeof value === 'string' && value.length > 100) ? '<masked>'
          : typeof value === 'string' ? withoutValues(value) : value));
      return masked && masked !== 'null' ? masked.slice(0, 2_000) : null;
    } catch {
      return null;
    }
  };
  const hasVitals = Object.values(vitals).some((value) => value !== undefined);
  return {
    webVitals: {
      navigation: navigation ? {
        url: address,
        ttfb: rounded(navigation.responseStart),
        domInteractive: rounded(navigation.domInteractive),
        domContentLoaded: rounded(navigation.domContentLoadedEventEnd),
        loadComplete: rounded(navigation.loadEventEnd),
        transferSize: navigation.transferSize,
        encodedBodySize: navigation.encodedBodySize,
        decodedBodySize: navigation.decodedBodySize,
      } : null,
      paint: { firstPaint: paint('first-paint'), firstContentfulPaint: paint('first-contentful-paint') },
      vitals: hasVitals ? vitals : null,
    },
    pageState: {
      url: address,
      hash: location.hash ? withoutValues(location.hash.split('?', 1)[0]!).slice(0, 500) : null,
      historyState: historyState(),
      localStorage: stored(() => localStorage),
      sessionStorage: stored(() => sessionStorage),
    },
  };
}
