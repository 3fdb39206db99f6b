/** Registers the run before the tests, the way a project does whose set-up takes long. */
import { takesItsTime } from './wait.ts';

const { createGlobalSetup } = await import(process.env['PUBLISHED_REPORTER'] ?? 'callboard-reporter');

export default createGlobalSetup({}, () => takesItsTime());
