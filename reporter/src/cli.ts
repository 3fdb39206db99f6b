#!/usr/bin/env node
/** `callboard-reporter <command>`: what is done with runs outside of a test run. */
import { flushCommand } from './commands/flush';
import { initCommand } from './commands/init';
import { summaryCommand } from './commands/summary';

const USAGE = `callboard-reporter <command>

  init [--url <address>] [--project <name>]
                            add the reporter to the Playwright configuration in this folder
  flush [--url <address>]   send runs that were kept on this machine; credentials come from
                            SERVICE_API_KEY, or SERVICE_USERNAME and SERVICE_PASSWORD
  summary [<run>] [--url <address>]
                            print a run as Markdown: its id, its address, or nothing for the
                            last one sent from this folder
`;

const OPTIONS: Readonly<Record<string, readonly string[]>> = {
  init: ['--url', '--server-url', '--project'],
  flush: ['--url', '--server-url'],
  summary: ['--url', '--server-url'],
};

async function main([command, ...rest]: readonly string[]): Promise<number> {
  const print = (line: string): void => void process.stdout.write(`${line}\n`);
  if (rest.includes('--help')) {
    print(USAGE);
    return 0;
  }
  const unknown = rest.find((each) => each.startsWith('-') && !OPTIONS[command ?? '']?.includes(each.split('=', 1)[0]!));
  if (command !== undefined && command in OPTIONS && unknown !== undefined) {
    print(`${command} has no option "${unknown}"\n\n${USAGE}`);
    return 2;
  }
  const url = optionOf(rest, '--url') ?? optionOf(rest, '--server-url');
  switch (command) {
    case 'flush':
      return flushCommand({ env: process.env, url, print });
    case 'init':
      return initCommand({ dir: process.cwd(), url, project: optionOf(rest, '--project'), print });
    case 'summary':
      return summaryCommand({
        env: process.env, url, run: argumentsOf(rest)[0], workingDirectory: process.cwd(), print,
        complain: (line) => void process.stderr.write(`${line}\n`),
      });
    case undefined:
    case 'help':
    case '--help':
      print(USAGE);
      return 0;
    default:
      print(`unknown command "${command}"\n\n${USAGE}`);
      return 2;
  }
}

function optionOf(args: readonly string[], name: string): string | undefined {
  const attached = args.find((each) => each.startsWith(`${name}=`));
  if (attached !== undefined) return attached.slice(name.length + 1);
  const at = args.indexOf(name);
  return at < 0 ? undefined : args[at + 1];
}

/** What is neither an option nor the value of one. */
function argumentsOf(args: readonly string[]): string[] {
  return args.filter((each, index) => !each.startsWith('-') && !isValue(args[index - 1]));
}

function isValue(before: string | undefined): boolean {
  return before !== undefined && before.startsWith('-') && !before.includes('=');
}

main(process.argv.slice(2)).then((code) => {
  process.exitCode = code;
}, (error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
