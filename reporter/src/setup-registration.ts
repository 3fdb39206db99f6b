/**
 * The run as `createGlobalSetup` registered it, handed to the reporter of the same
 * process. Playwright may load the package twice there, as a module of each kind, so the
 * place to meet is the process and not a module.
 */
export interface SetupRegistration {
  runId: number;
  setupToken: string;
}

export interface SetupHandover {
  clientRunId: string;
  startedAtMs: number;
  /** Undefined when the service could not be reached. */
  registration: Promise<SetupRegistration | undefined>;
  /** What the global setup did, as the run shows it. */
  steps: SetupStep[];
}

export interface SetupStep {
  title: string;
  category: 'hook';
  startedAt: number;
  duration: number;
  status: 'passed' | 'failed';
  location: null;
  workerIndex: number;
}

const PLACE = Symbol.for('callboard-reporter.setup');

export function leaveHandover(handover: SetupHandover): void {
  Reflect.set(globalThis, PLACE, handover);
}

/** Found once: a process that runs the suite again, as the UI mode does, registers again. */
export function takeHandover(): SetupHandover | undefined {
  const handover = Reflect.get(globalThis, PLACE) as SetupHandover | undefined;
  Reflect.deleteProperty(globalThis, PLACE);
  return handover;
}
