/** Sentences about what went wrong here, as opposed to what went wrong in a test. */
import { RequestFailed } from './client';

export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** With the option to set when the service refuses whoever asks. */
export function advice(error: unknown): string {
  const status = error instanceof RequestFailed ? error.status : undefined;
  if (status === 401) return `${reasonOf(error)} (set apiKey or SERVICE_API_KEY, or username and password)`;
  if (status === 403) return `${reasonOf(error)} (the key or account needs the role reporter and access to the project)`;
  return reasonOf(error);
}
