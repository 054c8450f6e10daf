import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, sep } from 'node:path'

export const ROOT = join(import.meta.dirname, '../..')

const BELOW_BENCH = [
  'policy',
  'device-drivers',
  'edge-agent',
  'cloud',
  'clients',
  'simulators',
  'host',
  'bin',
  'scripts',
]

/** The modules of the project, and which of them each may import. */
export const MODULES: Readonly<Record<string, readonly string[]>> = {
  policy: [],
  'device-drivers': ['policy'],
  'edge-agent': ['policy', 'device-drivers'],
  cloud: ['policy'],
  // Imports only types of the operations: at run time the client needs no other module.
  clients: ['cloud', 'edge-agent'],
  simulators: ['policy', 'device-drivers'],
  host: ['policy', 'device-drivers', 'edge-agent', 'cloud'],
  bin: ['policy', 'device-drivers', 'edge-agent', 'cloud', 'clients', 'simulators', 'host'],
  scripts: ['policy', 'device-drivers', 'edge-agent', 'cloud', 'clients', 'simulators', 'host', 'bin'],
  'test/verification': ['policy', 'device-drivers', 'edge-agent', 'cloud', 'simulators', 'host', 'bin', 'scripts'],
  'test/bench': [...BELOW_BENCH, 'test/verification'],
  test: [...BELOW_BENCH, 'test/verification', 'test/bench'],
}

/** The module of a file. Tests lie beside what they test in `test/bench` and `test/verification`. */
export function moduleOf(path: string): string {
  const [first = '', second] = path.split('/')
  const inner = `${first}/${second}`
  return inner in MODULES && !path.endsWith('.test.ts') ? inner : first
}

/** One file of a module, with its imports from this project. */
export interface Source {
  path: string
  module: string
  text: string
  /** The text without comments and without the contents of strings. */
  code: string
  imports: readonly { path: string; isType: boolean }[]
}

/** True for test files that `npm test` runs. A file of the second tier says so in its first line. */
export const isFirstTier = ({ path, text }: Source): boolean =>
  path.endsWith('.test.ts') && !text.startsWith('// @module-tag extended')

function filesIn(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return entry.name === 'node_modules' ? [] : filesIn(path)
    return /\.tsx?$/.test(entry.name) ? [path] : []
  })
}

const IMPORT =
  /(?:^|\n)\s*(?:import|export)\s+(type\s+)?(?:[^'";]*?\sfrom\s+)?['"](\.[^'"]+)['"]|import\(\s*['"](\.[^'"]+)['"]\s*\)/g

export function codeOf(text: string): string {
  const withoutComments = text.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/(^|[^:'"])\/\/.*$/gm, '$1')
  return withoutComments.replaceAll(/'(?:[^'\\\n]|\\.)*'/g, "''").replaceAll(/"(?:[^"\\\n]|\\.)*"/g, '""')
}

export function readSources(modules: readonly string[] = Object.keys(MODULES)): Source[] {
  const folders = new Set(modules.map((module) => module.split('/')[0] ?? ''))
  return [...folders].flatMap((folder) =>
    filesIn(join(ROOT, folder)).flatMap((file) => {
      const path = relative(ROOT, file).split(sep).join('/')
      const module = moduleOf(path)
      if (!modules.includes(module)) return []
      const text = readFileSync(file, 'utf8')
      const imports = [...text.matchAll(IMPORT)].map((match) => ({
        path: relative(ROOT, join(ROOT, dirname(path), match[2] ?? match[3] ?? ''))
          .split(sep)
          .join('/'),
        isType: match[1] !== undefined,
      }))
      return { path, module, text, code: codeOf(text), imports }
    }),
  )
}
