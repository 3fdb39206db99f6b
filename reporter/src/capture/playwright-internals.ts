/**
 * The few places where Playwright offers no public way: noticing contexts however they
 * are made, seeing which element a call was about, and asking questions of our own
 * without leaving steps in the user's report and trace. Each is looked for at run time;
 * where it is missing, that part of the capture is silently off.
 */
import type { BrowserContext, Frame, Page } from '@playwright/test';

type Send = (object: unknown, method: string, params: unknown, options: unknown) => Promise<unknown>;

/** The value of the `playwright` fixture. */
export type PlaywrightLibrary = object;

/** A call on a frame, as it goes to the browser. */
export interface FrameCall {
  frame: Frame;
  method: string;
  selector: string;
  /** Of an `expect` call. */
  expression: string | undefined;
  isNot: boolean;
  /** The caller's stack, innermost first. */
  stack: { file: string; line: number; column: number }[];
}

export interface CallListener {
  /** Called before whatever a test does with a page. */
  onUse(context: BrowserContext): void;
  /** Called just before the call is sent; what it returns is called with the outcome. */
  onCall(call: FrameCall): ((succeeded: boolean) => void) | undefined;
}

export interface ContextListener {
  onContextCreated(context: BrowserContext): void;
  onContextClosing(context: BrowserContext): Promise<void>;
}

/** False when this Playwright does not tell. */
export function listenToContexts(library: PlaywrightLibrary, listener: ContextListener): boolean {
  const instrumentation: unknown = Reflect.get(library, '_instrumentation');
  const addListener = isObject(instrumentation) ? instrumentation['addListener'] : undefined;
  if (typeof addListener !== 'function') return false;
  addListener.call(instrumentation, {
    runAfterCreateBrowserContext: async (context: BrowserContext) => listener.onContextCreated(context),
    runBeforeCloseBrowserContext: (context: BrowserContext) => listener.onContextClosing(context),
  });
  return true;
}

/** Connections listened to: the worker's own, and one for each browser that runs elsewhere. */
const heard = new WeakSet<object>();

/** Listens to the calls on the connection of this object, once. False when this Playwright does not tell. */
export function listenToCalls(owner: PlaywrightLibrary | BrowserContext, listener: CallListener): boolean {
  const connection: unknown = Reflect.get(owner, '_connection');
  const send = isObject(connection) ? connection['sendMessageToServer'] as Send | undefined : undefined;
  if (!isObject(connection) || typeof send !== 'function') return false;
  if (heard.has(connection)) return true;
  heard.add(connection);
  connection['sendMessageToServer'] = function sendAndTell(object: unknown, method: string, params: unknown, options: unknown) {
    let tell: ((succeeded: boolean) => void) | undefined;
    try {
      const context = usedContext(object, options);
      if (context) listener.onUse(context);
      const call = frameCallOf(object, method, params, options);
      tell = call && listener.onCall(call);
    } catch {
      // The call of the test goes on whatever happens here.
    }
    const answer = send.call(connection, object, method, params, options);
    if (tell) answer.then((result) => tell(!isMismatch(result, params)), () => tell(false));
    return answer;
  };
  return true;
}

/** All elements of the selector, handed to a function in the page that returns a text. Nothing is waited for. */
export async function evaluateOnAll(frame: Frame, selector: string, expression: string): Promise<string | undefined> {
  const connection: unknown = Reflect.get(frame, '_connection');
  const send = isObject(connection) ? connection['sendMessageToServer'] as Send | undefined : undefined;
  if (typeof send !== 'function') return undefined;
  const params = { selector, expression, isFunction: true, arg: { value: { v: 'undefined' }, handles: [] } };
  const answer = await send.call(connection, frame, 'evalOnSelectorAll', params, { internal: true });
  const value = isObject(answer) ? answer['value'] : undefined;
  return isObject(value) && typeof value['s'] === 'string' ? value['s'] : undefined;
}

/** Calls made inside leave no step in the report and no action in the trace. */
export function quietly<T>(owner: object, work: () => Promise<T>): Promise<T> {
  const wrap: unknown = Reflect.get(owner, '_wrapApiCall');
  return typeof wrap === 'function' ? wrap.call(owner, work, { internal: true }) as Promise<T> : work();
}

function usedContext(object: unknown, options: unknown): BrowserContext | undefined {
  if (!isObject(object) || !isObject(options) || options['internal']) return undefined;
  if (object['_type'] === 'Frame') return (object as unknown as Frame).page().context();
  return object['_type'] === 'Page' ? (object as unknown as Page).context() : undefined;
}

function frameCallOf(object: unknown, method: string, params: unknown, options: unknown): FrameCall | undefined {
  if (!isObject(object) || object['_type'] !== 'Frame' || !isObject(params) || !isObject(options)) return undefined;
  const { selector, expression, isNot } = params;
  if (options['internal'] || typeof selector !== 'string') return undefined;
  return {
    frame: object as unknown as Frame,
    method,
    selector,
    expression: typeof expression === 'string' ? expression : undefined,
    isNot: isNot === true,
    stack: Array.isArray(options['frames']) ? options['frames'].filter(isStackFrame) : [],
  };
}

/** Some releases answer an assertion that does not hold, others fail the call. */
function isMismatch(result: unknown, params: unknown): boolean {
  const matches = isObject(result) ? result['matches'] : undefined;
  return typeof matches === 'boolean' && isObject(params) && matches === (params['isNot'] === true);
}

function isStackFrame(value: unknown): value is FrameCall['stack'][number] {
  return isObject(value) && typeof value['file'] === 'string' && typeof value['line'] === 'number' && typeof value['column'] === 'number';
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
