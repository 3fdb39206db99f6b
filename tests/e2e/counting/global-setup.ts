/** Registers the run before the tests, the way a project does whose set-up takes long. */
import { createGlobalSetup } from 'callboard-reporter';

export default createGlobalSetup({}, async () => undefined);
