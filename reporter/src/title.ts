/**
 * The title by which the service knows a test or a step. Playwright allows one that is
 * empty; the service cannot keep what has no title, so everything that is sent about it
 * has to name it by the same words.
 */
const NO_TITLE = '(no title)';

export function titleFor({ title }: { title: string }): string {
  return title.trim() === '' ? NO_TITLE : title;
}
