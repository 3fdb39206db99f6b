/**
 * The accessibility tree of the failed page. Playwright leaves it in the attachment
 * `error-context`, a short document with the section "Page snapshot".
 */
import { readFileSync, statSync } from 'node:fs';
import type { TestResult } from '@playwright/test/reporter';

const DOCUMENT_MAX_BYTES = 1024 * 1024;

export function ariaSnapshotOf(result: TestResult): string | null {
  const attachment = result.attachments.find(({ name }) => name === 'error-context' || name.startsWith('error-context-'));
  if (!attachment) return null;
  const document = attachment.body?.toString('utf8') ?? (attachment.path ? readDocument(attachment.path) : '');
  return /^# Page snapshot\s+```(?:yaml)?\n([\s\S]*?)\n```/m.exec(document)?.[1] ?? null;
}

function readDocument(file: string): string {
  try {
    return statSync(file).size > DOCUMENT_MAX_BYTES ? '' : readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
