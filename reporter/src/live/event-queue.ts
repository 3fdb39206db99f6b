/**
 * Events waiting to be sent, within a bound of memory. When it is reached, events that
 * only sendTransient the live page go first; a result that finds no room is not lost either,
 * it stays with Playwright and is sent at the end.
 */
export interface QueuedEvent {
  json: string;
  /** What an accepted result is remembered by; absent for events the service does not keep. */
  key?: object;
}

export interface EventQueue {
  push(event: QueuedEvent): boolean;
  /** The oldest events within both limits, at least one when there is one. */
  take(countMax: number, bytesMax: number): QueuedEvent[];
  clear(): void;
  readonly length: number;
  readonly bytes: number;
}

export function createEventQueue(bytesMax: number): EventQueue {
  let events: QueuedEvent[] = [];
  let bytes = 0;
  const makeRoom = (): void => {
    events = events.filter(({ key }) => key !== undefined);
    bytes = events.reduce((total, event) => total + sizeOf(event), 0);
  };
  return {
    push(event) {
      const size = sizeOf(event);
      if (bytes + size > bytesMax && event.key !== undefined) makeRoom();
      if (bytes + size > bytesMax) return false;
      events.push(event);
      bytes += size;
      return true;
    },
    take(countMax, sizeMax) {
      let count = 0;
      let size = 0;
      for (const event of events) {
        if (count >= countMax || (count > 0 && size + sizeOf(event) > sizeMax)) break;
        count++;
        size += sizeOf(event);
      }
      bytes -= size;
      return events.splice(0, count);
    },
    clear() {
      events = [];
      bytes = 0;
    },
    get length() {
      return events.length;
    },
    get bytes() {
      return bytes;
    },
  };
}

function sizeOf(event: QueuedEvent): number {
  return event.json.length;
}
