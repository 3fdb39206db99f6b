/**
 * How hard the service is tried. While tests run nobody waits, so a request is repeated
 * until it succeeds; once the run is over somebody does, and time is limited.
 */
import { isTransient, pauseAfter, RequestFailed, type Deadline } from '../client';

export interface Persistence {
  pauseMs?(tries: number): number;
  /** So many answers 500 are enough: what is sent may be at fault, and not the service. */
  triesOn500?: number;
}

export interface RetryPolicy {
  /** For requests made now. */
  deadline(): Deadline;
  /** Repeats the work while it fails for a reason that may pass; other failures are thrown. */
  persist<T>(work: () => Promise<T>, persistence?: Persistence): Promise<T>;
  /** Waits, or returns early when the run ends. */
  pause(milliseconds: number): Promise<void>;
  /** The run is over: everything has to end by this time. */
  hurry(deadline: Deadline): void;
  /** Ends every request and pause at once. */
  stop(): void;
  readonly isHurried: boolean;
  /** There is no time left: requests fail without having been sent. */
  readonly isOver: boolean;
  /** Time of the last answer; undefined before the first. */
  readonly lastAnswerAtMs: number | undefined;
  readonly isFailing: boolean;
}

/** When the service answered during the run, it is worth some patience at the end. */
const LAST_TRIES = 4;

export function createRetryPolicy(): RetryPolicy {
  let abort = new AbortController();
  const wakers = new Set<() => void>();
  let end: Deadline | undefined;
  let lastAnswerAtMs: number | undefined;
  let isFailing = false;

  const remainingMs = (): number => (abort.signal.aborted ? 0 : end?.remainingMs() ?? Infinity);
  const wake = (): void => wakers.forEach((waker) => waker());
  const pause = (milliseconds: number): Promise<void> => new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      wakers.delete(done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    wakers.add(done);
  });

  return {
    deadline: () => ({ signal: abort.signal, remainingMs }),
    pause: (milliseconds) => (abort.signal.aborted ? Promise.resolve() : pause(milliseconds)),
    async persist(work, { pauseMs = pauseAfter, triesOn500 = Infinity } = {}) {
      for (let tries = 1, lastTries = 0, broken = 0; ; tries++) {
        try {
          const done = await work();
          lastAnswerAtMs = Date.now();
          isFailing = false;
          return done;
        } catch (error) {
          if (!(error instanceof RequestFailed)) throw error;
          if (error.status !== undefined) lastAnswerAtMs = Date.now();
          if (!isTransient(error)) throw error;
          if (error.status === 500 && ++broken >= triesOn500) throw error;
          isFailing = true;
          if (end) lastTries++;
          // Somebody waits at the end: pauses begin anew, except for one the service asks for.
          const waitMs = error.pauseMs ?? (end ? Math.min(pauseMs(tries), pauseAfter(lastTries)) : pauseMs(tries));
          const tried = lastTries >= (lastAnswerAtMs === undefined ? 1 : LAST_TRIES);
          if (abort.signal.aborted || (end && (tried || end.remainingMs() <= waitMs))) throw error;
          await pause(waitMs);
        }
      }
    },
    hurry(deadline) {
      end = deadline;
      // After an earlier time limit has passed, requests may be made again until this one.
      if (abort.signal.aborted) abort = new AbortController();
      const own = abort;
      const expire = (): void => {
        if (end !== deadline) return;
        own.abort();
        wake();
      };
      if (deadline.signal.aborted) expire();
      deadline.signal.addEventListener('abort', expire);
      wake();
    },
    stop() {
      abort.abort();
      wake();
    },
    get isHurried() {
      return end !== undefined;
    },
    get isOver() {
      return abort.signal.aborted;
    },
    get lastAnswerAtMs() {
      return lastAnswerAtMs;
    },
    get isFailing() {
      return isFailing;
    },
  };
}
