/**
 * What the service at the other end offers beyond the calls that every client knows. It says so when a run is opened;
 * where no run was opened, the first call says it.
 */
import { isRecord } from './options';

export interface ServiceCapabilities {
  /** Files can be uploaded by plan, PUT and commit; undefined until the service said so or answered a plan. */
  plan: boolean | undefined;
  /** Largest body of one request in bytes; undefined while it is not known. */
  requestMaxBytes: number | undefined;
}

export const UNKNOWN_CAPABILITIES: Readonly<ServiceCapabilities> = { plan: undefined, requestMaxBytes: undefined };

/** More than this in one request only makes a retry dearer. */
export const REQUEST_MAX_BYTES = 32 * 1024 * 1024;
/** A function gateway passes binary bodies on as base64, a third larger, and its limit counts those. */
const BINARY_SHARE = 0.7;

/** What a function gateway lets through, where its limit is not known. */
export const GATEWAY_REQUEST_BYTES = 4 * 1024 * 1024;
/** Room for the fields and part headers of a multipart request. */
const FIELDS_BYTES = 128 * 1024;

/** Whether a file of this size gets to the service in a multipart request. */
export function fitsRequest(sizeBytes: number, { requestMaxBytes = GATEWAY_REQUEST_BYTES }: Readonly<ServiceCapabilities>): boolean {
  return requestMaxBytes === REQUEST_MAX_BYTES || sizeBytes + FIELDS_BYTES <= requestMaxBytes;
}

/** Reads `capabilities` and `limits` of the answer that opened a run. A service that names none has none. */
export function readCapabilities({ capabilities, limits }: Record<string, unknown>): ServiceCapabilities {
  const announced = isRecord(limits) ? limits['requestMaxBytes'] : undefined;
  return {
    plan: Array.isArray(capabilities) && capabilities.includes('uploads.plan'),
    requestMaxBytes: typeof announced === 'number' && announced > 0
      ? Math.min(REQUEST_MAX_BYTES, Math.floor(announced * BINARY_SHARE))
      : undefined,
  };
}
