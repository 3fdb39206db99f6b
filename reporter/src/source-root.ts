/**
 * The folder that paths on the wire are relative to: the root of the git work tree, else the
 * folder of the configuration. So a test has one path wherever its run was started. A report
 * merged without a configuration names files of the machines that recorded it: their folder
 * is looked for in this work tree.
 */
import { existsSync, readdirSync, realpathSync, statSync, type Dirent } from 'node:fs';
import path from 'node:path';
import type { FullConfig, Suite } from '@playwright/test/reporter';
import { forwardSlashes, isWithin, joinPaths, pathFrom } from './paths';

export interface SourceRoot {
  /** Absolute folders, and the path below the root of what each holds; the first one is for everything outside. */
  places: readonly { folder: string; path: string }[];
  /** Folders of this machine in which files are looked for that another one names. */
  bases: readonly string[];
  /** What found the root. */
  kind: 'git' | 'configuration';
  /** How earlier releases wrote the same paths: `to` stood where `from` stands now. */
  earlier: { from: string; to: string };
}

const CONFIGURATIONS = ['ts', 'js', 'mts', 'mjs', 'cts', 'cjs'].map((extension) => `playwright.config.${extension}`);
/** Files of a merged report that are looked for. */
const FILES_SOUGHT = 20;
const FOLDERS_SOUGHT = 5_000;

type ConfigPaths = Pick<FullConfig, 'configFile' | 'rootDir'>;

export function sourceRootOf(config: ConfigPaths, workingDirectory: string, suite?: Suite): SourceRoot {
  if (config.configFile) return localRoot(path.dirname(config.configFile), workingDirectory);
  if (isFolder(config.rootDir)) return localRoot(folderOfConfiguration(config.rootDir), workingDirectory);
  return foreignRoot(config.rootDir, suite, workingDirectory);
}

function localRoot(configFolder: string, workingDirectory: string): SourceRoot {
  const gitFolder = workTreeOf(configFolder);
  const folder = gitFolder ?? configFolder;
  const real = realFolder(folder);
  return {
    // Playwright names some files by links to them, and some by where they are.
    places: [...new Set([folder, real])].map((each) => ({ folder: each, path: '' })),
    bases: [...new Set([folder, configFolder])],
    kind: gitFolder === undefined ? 'configuration' : 'git',
    earlier: isWithin(workingDirectory, real)
      ? { from: pathFrom(real, workingDirectory), to: '' }
      : { from: '', to: pathFrom(workingDirectory, real) },
  };
}

/** Of a folder on another machine: the longest end of its path below which the same files are here, in one place only. */
function foreignRoot(rootDir: string, suite: Suite | undefined, workingDirectory: string): SourceRoot {
  const files = [...new Set(suite?.allTests().map(({ location }) => pathFrom(rootDir, location.file)))].slice(0, FILES_SOUGHT);
  const names = forwardSlashes(rootDir).split('/').filter((name) => name !== '');
  const top = workTreeOf(workingDirectory) ?? workingDirectory;
  for (const bases of files.length > 0 ? [[top], [workingDirectory], foldersOfConfigurations(top)] : []) {
    for (let left = 0; left <= names.length; left++) {
      const found = bases.map((base) => path.join(base, ...names.slice(left)))
        .filter((here) => files.every((file) => existsSync(path.join(here, file))));
      if (found.length > 1) break;
      if (!found[0]) continue;
      const { places: [local], kind } = localRoot(folderOfConfiguration(found[0]), workingDirectory);
      const below = pathFrom(local!.folder, found[0]);
      return {
        places: [{ folder: rootDir, path: below }], bases: [], kind, earlier: { from: below, to: pathFrom(workingDirectory, rootDir) },
      };
    }
  }
  return {
    places: [{ folder: rootDir, path: '' }], bases: [], kind: 'configuration', earlier: { from: '', to: pathFrom(workingDirectory, rootDir) },
  };
}

/** The folders of a work tree that have a configuration, the upper ones first. */
function foldersOfConfigurations(top: string): string[] {
  const found: string[] = [];
  const queue = [top];
  for (let seen = 0; seen < queue.length && seen < FOLDERS_SOUGHT; seen++) {
    const folder = queue[seen]!;
    for (const entry of entriesOf(folder)) {
      if (CONFIGURATIONS.includes(entry.name)) found.push(folder);
      else if (entry.isDirectory() && entry.name !== 'node_modules' && !entry.name.startsWith('.')) queue.push(path.join(folder, entry.name));
    }
  }
  return [...new Set(found)];
}

function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}

export function relativePath(file: string, root: SourceRoot): string {
  const place = root.places.find(({ folder }) => isWithin(file, folder)) ?? root.places[0]!;
  const below = joinPaths(place.path, pathFrom(place.folder, file));
  return (below.startsWith('..') ? knownElsewhere(file, root) : undefined) ?? (below || forwardSlashes(file));
}

const foundHere = new WeakMap<SourceRoot, Map<string, string | undefined>>();

/** Of a file that only another machine has, as errors of merged reports name them: the longest end of its path that is here. */
function knownElsewhere(file: string, root: SourceRoot): string | undefined {
  const known = foundHere.get(root) ?? new Map<string, string | undefined>();
  foundHere.set(root, known);
  if (!known.has(file)) known.set(file, existsSync(file) ? undefined : lookFor(file, root));
  return known.get(file);
}

function lookFor(file: string, { bases }: SourceRoot): string | undefined {
  const names = forwardSlashes(file).split('/');
  for (let left = 1; left < names.length; left++) {
    const here = bases.map((base) => path.join(base, ...names.slice(left))).find(isFile);
    if (here !== undefined) return pathFrom(bases[0]!, here);
  }
  return undefined;
}

/** The path that earlier releases sent for a path below the root. */
export function earlierPath(file: string, { earlier }: Pick<SourceRoot, 'earlier'>): string {
  return joinPaths(earlier.to, path.posix.relative(`/${earlier.from}`, `/${file}`));
}

/** Whether a file belongs to the sources of the project. */
export function isInSources(file: string, root: SourceRoot): boolean {
  return path.isAbsolute(file) && root.places.some(({ folder }) => isWithin(file, folder))
    && !/[\\/]node_modules[\\/]/.test(file);
}

/** The work tree of git that a folder lies in; asked from the disk, as containers often have no git. */
export function workTreeOf(folder: string): string | undefined {
  return nearest(folder, (each) => existsSync(path.join(each, '.git', 'HEAD')) || isFile(path.join(each, '.git')));
}

function folderOfConfiguration(folder: string): string {
  return nearest(folder, (each) => CONFIGURATIONS.some((name) => isFile(path.join(each, name)))) ?? folder;
}

function nearest(folder: string, isWanted: (folder: string) => boolean): string | undefined {
  for (let each = path.resolve(folder); ; each = path.dirname(each)) {
    if (isWanted(each)) return each;
    if (path.dirname(each) === each) return undefined;
  }
}

function isFolder(folder: string): boolean {
  return statSync(folder, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

function isFile(file: string): boolean {
  return statSync(file, { throwIfNoEntry: false })?.isFile() ?? false;
}

function realFolder(folder: string): string {
  try {
    return realpathSync(folder);
  } catch {
    return folder;
  }
}
