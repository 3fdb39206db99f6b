/** Public face of the package: the reporter class, its options, the global setup, the capture fixtures. */
import { CallboardReporter } from './reporter';

export type { CallboardReporterOptions, ReportOption } from './options';
export { callboardTest, extendCallboard } from './fixtures';
export { createGlobalSetup } from './global-setup';
export { CallboardReporter };
export default CallboardReporter;
