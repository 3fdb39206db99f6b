/** Public face of the package: the reporter class, and the types of its options. */
import { CallboardReporter } from './reporter';

export type { CallboardReporterOptions, ReportOption } from './options';
export { CallboardReporter };
export default CallboardReporter;
