/**
 * What later steps of a pipeline can read about the run: the JSON file of `outputFile`.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';

export interface RunOutput {
  runUrl: string;
  runId: number;
  projectId: number | null;
  projectName: string;
  status: string;
  ciBuildUrl: string | null;
}

export function writeOutputFile(file: string, workingDirectory: string, output: RunOutput): void {
  const target = path.resolve(workingDirectory, file);
  mkdirSync(path.dirname(target), { recursive: true });
  writeFileSync(target, `${JSON.stringify(output, null, 2)}\n`);
}
