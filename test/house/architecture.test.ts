import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { codeOf, moduleOf, readSources, MODULES, ROOT, type Source } from './sources.ts'

const sources = readSources()
/** True for parts of the verification suite that use virtual time. Other parts run real processes. */
const isSimulated = (path: string) => /^test\/verification\/(?:simulation|fuzz)\//.test(path)
const inModules = sources.filter(
  (s) =>
    !['bin', 'host', 'scripts', 'test/bench', 'test', 'test/verification'].includes(s.module) || isSimulated(s.path),
)
/** Files that may contain `any`: JSON in tests, and this file, because its patterns contain the word. */
const HOLES = new Set(['test/support/cloud.ts', 'test/house/architecture.test.ts'])
/** Files that may exceed the limit. Do not add any. */
const LONG_FILES = new Set([
  'cloud/platform/persistence/tables.ts',
  'device-drivers/llrp/protocol/parameters.ts',
  'test/verification/simulation/oracles/ledger-oracle.ts',
])
/** Districts of the cloud, the lowest first. `cloud.ts` puts them together. */
const DISTRICTS = ['platform', 'shop', 'protection', 'sales', 'service', 'console']
/** Folders whose subfolders import each other in one direction only. */
const ORDERED_FOLDERS = [
  'cloud/protection',
  'cloud/protection/agents',
  'test/verification',
  'test/verification/simulation',
  'test/verification/fuzz',
]
/** Files whose types the client may import. */
const CLIENT_TYPES = new Set([
  'cloud/service/operation-table.ts',
  'edge-agent/http/operations.ts',
  'edge-agent/http/error-codes.ts',
])

/** Paths of the files for which `wrong` is true, so that a failure names them. */
function where(files: readonly Source[], wrong: (source: Source) => boolean): string[] {
  return files.filter(wrong).map((s) => s.path)
}

describe('the architecture', () => {
  it('finds sources, code without comments, and imports', () => {
    expect(sources.length).toBeGreaterThan(150)
    expect(codeOf(`a('Date.now') // Date.now\n/* Date.now */ b("x")`)).not.toContain('Date')
    expect(sources.flatMap((s) => s.imports).length).toBeGreaterThan(500)
  })

  it('lets each module import only lower modules', () => {
    const wrong = sources.flatMap((source) =>
      source.imports.flatMap(({ path }) => {
        const module = moduleOf(path)
        if (module === source.module || MODULES[source.module]?.includes(module) === true) {
          // A simulated device may import the protocol tables of a driver, but not its code.
          const isOutside = source.module === 'simulators' && module !== 'simulators' && module !== 'policy'
          if (
            !isOutside ||
            /^device-drivers\/[a-z0-9-]+\/protocol\//.test(path) ||
            path.startsWith('device-drivers/transports/')
          )
            return []
        }
        return [`${source.path} imports ${path}`]
      }),
    )
    expect(wrong).toEqual([])
  })

  it('lets the client import only types of the operations from the cloud', () => {
    const client = sources.filter((s) => s.module === 'clients')
    const outside = client.flatMap((s) =>
      s.imports
        .filter(({ path, isType }) => !path.startsWith('clients/') && !(isType && CLIENT_TYPES.has(path)))
        .map(({ path }) => `${s.path} imports ${path}`),
    )
    expect(outside).toEqual([])
    // `untag/tokens` is a separate entry point, so that `untag/client` loads no package.
    expect(where(client, (s) => /^import (?!type\b).*from '(?!\.)/m.test(s.text))).toEqual([
      'clients/typescript/verify-token.ts',
    ])
    const importers = sources.filter((s) => s.imports.some(({ path }) => path === 'clients/typescript/verify-token.ts'))
    expect(importers.filter((s) => s.module !== 'test')).toEqual([])
  })

  it('has no circles', () => {
    const byPath = new Map(sources.map((s) => [s.path, s]))
    const circles: string[] = []
    const done = new Set<string>()
    const visit = (path: string, above: readonly string[]) => {
      if (above.includes(path)) return void circles.push([...above.slice(above.indexOf(path)), path].join(' → '))
      if (done.has(path)) return
      for (const next of byPath.get(path)?.imports ?? []) visit(next.path, [...above, path])
      done.add(path)
    }
    for (const path of byPath.keys()) visit(path, [])
    expect(circles).toEqual([])
  })

  it.each(ORDERED_FOLDERS)('lets the subfolders of %s import each other in one direction', (folder) => {
    const subfolderOf = (path: string) =>
      path.startsWith(`${folder}/`)
        ? path
            .slice(folder.length + 1)
            .split('/')
            .slice(0, -1)[0]
        : undefined
    const below = new Map<string, Set<string>>()
    for (const { path, imports } of sources) {
      const from = subfolderOf(path)
      if (from === undefined) continue
      const reached = below.get(from) ?? new Set()
      for (const to of imports.map((each) => subfolderOf(each.path)))
        if (to !== undefined && to !== from) reached.add(to)
      below.set(from, reached)
    }
    expect(below.size).toBeGreaterThan(1)
    // Repeatedly removes subfolders that import none of the remaining ones. A remaining subfolder is part of a cycle.
    let left = [...below.keys()]
    for (let before = -1; before !== left.length;) {
      before = left.length
      left = left.filter((name) => left.some((other) => below.get(name)?.has(other)))
    }
    expect(left).toEqual([])
  })

  it('lets each district of cloud/ import only lower ones', () => {
    const districtOf = (path: string) => DISTRICTS.indexOf(path.split('/')[1] ?? '')
    const cloud = sources.filter((s) => s.module === 'cloud' && s.path !== 'cloud/cloud.ts')
    expect(where(cloud, ({ path }) => districtOf(path) === -1)).toEqual([])
    const wrong = cloud.flatMap(({ path, imports }) =>
      imports
        .filter((each) => each.path.startsWith('cloud/') && districtOf(each.path) > districtOf(path))
        .map((each) => `${path} imports ${each.path}`),
    )
    expect(wrong).toEqual([])
  })

  it('starts an agent without the code of the cloud’s database', () => {
    const byPath = new Map(sources.map((s) => [s.path, s]))
    const loaded = new Set<string>()
    const visit = (path: string) => {
      if (loaded.has(path)) return
      loaded.add(path)
      for (const next of byPath.get(path)?.imports ?? []) if (!next.isType) visit(next.path)
    }
    for (const command of ['bin/commands/edge.ts', 'bin/commands/edge-enrol.ts']) visit(command)
    expect(loaded.size).toBeGreaterThan(200)
    expect([...loaded].filter((path) => path.startsWith('cloud/platform/persistence/'))).toEqual([])
  })

  it('has at most 15 folders side by side', () => {
    const folders = new Map<string, Set<string>>()
    for (const { path } of sources) {
      const parts = path.split('/').slice(0, -1)
      for (const [depth, name] of parts.entries()) {
        const above = parts.slice(0, depth).join('/')
        folders.set(above, (folders.get(above) ?? new Set()).add(name))
      }
    }
    expect([...folders].filter(([, names]) => names.size > 15).map(([path]) => path)).toEqual([])
  })

  it('uses time, randomness, network and disk only through parameters', () => {
    const forbidden =
      /\bDate\.now\b|\bnew Date\(\)|\bMath\.random\b|\bset(?:Timeout|Interval)\b|\bperformance\.|\bprocess\.hrtime\b|\brandom(?:Bytes|UUID|FillSync|Int)\b|\bprocess\.env\b|(?:^|[^.\w])fetch\((?=['"`]{2})|\bglobalThis\.fetch\b/
    expect(
      where(
        inModules,
        (s) => !s.path.includes('/browser/') && s.path !== 'clients/typescript/platform.ts' && forbidden.test(s.code),
      ),
    ).toEqual([])
  })

  it('opens each kind of database in one place', () => {
    const opening = /\bnew Sqlite(?:Connection)?\(|\bnew pg\.Pool\(|\bnew Pool\(/
    expect(
      where(
        sources.filter((s) => s.module !== 'test' && s.module !== 'test/bench'),
        (s) => opening.test(s.code),
      ).toSorted(),
    ).toEqual([
      'bin/commands/doctor.ts',
      'cloud/platform/persistence/postgres-pool.ts',
      'cloud/platform/persistence/sqlite.ts',
      'edge-agent/items/item-file.ts',
      'edge-agent/ledger/file/ledger-file.ts',
      'host/backup/database-dump.ts',
      'host/data-dir-lock.ts',
      'scripts/generate/table-types.ts',
    ])
  })

  it('uses only the router, cookies and markup of hono, because its other middleware had advisories', () => {
    const taken = sources
      .filter((s) => s.module !== 'test')
      .flatMap((s) => [...s.text.matchAll(/from '(hono(?:\/[^']+)?)'/g)].map((m) => m[1]))
    expect([...new Set(taken)].toSorted()).toEqual([
      'hono',
      'hono/cookie',
      'hono/html',
      'hono/jsx',
      'hono/jsx/jsx-runtime',
      'hono/route', // the path of the route that was taken
    ])
  })

  it('keeps the policy pure', () => {
    expect(
      where(
        sources.filter((s) => s.module === 'policy'),
        (s) =>
          /from 'node:(?!crypto|buffer|assert)|\basync\b|\bawait\b/.test(s.text) && s.path !== 'policy/platform.ts',
      ),
    ).toEqual([])
  })

  it('has no default exports, no `any`, and no files that only re-export', () => {
    expect(
      where(sources, (s) => /\bexport default\b/.test(s.code) && s.path !== 'test/support/global-setup.ts'),
    ).toEqual([])
    expect(where(sources, (s) => /:\s*any\b|\bas any\b|<any>/.test(s.code) && !HOLES.has(s.path))).toEqual([])
    expect(
      where(
        sources,
        (s) => /@ts-(?:ignore|nocheck|expect-error)|(?:eslint|oxlint)-disable/.test(s.text) && !HOLES.has(s.path),
      ),
    ).toEqual([])
    expect(where(sources, (s) => /(?:^|\/)(?:index|utils?|helpers?|common|misc)\.tsx?$/.test(s.path))).toEqual([])
  })

  it('has no file over 500 lines', () => {
    expect(
      sources
        .filter((s) => s.module !== 'test' && s.text.split('\n').length > 500 && !LONG_FILES.has(s.path))
        .map((s) => `${s.path}: ${s.text.split('\n').length} lines`),
    ).toEqual([])
  })

  it('has a doc comment on every exported function of the modules', () => {
    const undocumented = inModules.flatMap((s) =>
      [...s.text.matchAll(/(?:^|\n)(.*)\nexport (?:async )?function (\w+)/g)]
        .filter((m) => !/\*\/\s*$/.test(m[1] ?? ''))
        .map((m) => `${s.path}: ${m[2]}`),
    )
    expect(undocumented).toEqual([])
  })

  it('names no registry host, and gives each dependency a reason', () => {
    const lock = readFileSync(join(ROOT, 'package-lock.json'), 'utf8')
    expect(lock).not.toContain('"resolved"')
    const { dependencies, devDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Record<
      'dependencies' | 'devDependencies',
      Record<string, string>
    >
    const reasons = readFileSync(join(ROOT, 'docs/adr/dependencies.md'), 'utf8')
    const missing = [...Object.keys(dependencies), ...Object.keys(devDependencies)].filter(
      (name) => !name.startsWith('@types/') && !reasons.includes(`\`${name}\``),
    )
    expect(missing).toEqual([])
  })

  it('names only files that exist in its comments', () => {
    const paths = new Set(sources.map((s) => s.path))
    const inModule = new Set(sources.map((s) => `${s.path.split('/')[0]} ${s.path.split('/').at(-1)}`))
    const exists = (from: string, name: string) => {
      const near = join(dirname(from), name)
      if (paths.has(near) || paths.has(name)) return true
      // Otherwise a file of the module, by its name or the end of its path.
      const folder = from.split('/')[0] ?? ''
      return name.includes('/')
        ? sources.some((s) => s.path.startsWith(`${folder}/`) && s.path.endsWith(`/${name}`))
        : inModule.has(`${folder} ${name}`)
    }
    const wrong = sources.flatMap((s) =>
      s.text.split('\n').flatMap((line) => {
        if (!/^\s*(?:\/?\*+|\/\/)/.test(line)) return []
        const names = line.match(/(?<![\w@/.-])(?:\.\.?\/)*[\w-]+(?:\/[\w-]+)*\.tsx?\b/g) ?? []
        return names.filter((name) => !exists(s.path, name)).map((name) => `${s.path}: ${name}`)
      }),
    )
    expect(wrong).toEqual([])
  })

  it('has no unfinished work in tracked files', () => {
    if (!existsSync(join(ROOT, '.git'))) return
    const tracked = execFileSync('git', ['ls-files'], { cwd: ROOT, encoding: 'utf8' })
      .split('\n')
      .filter(
        (f) =>
          /\.(?:tsx?|js|md|json|yml)$/.test(f) && f !== 'package-lock.json' && f !== 'test/house/architecture.test.ts',
      )
    const words = /\b(?:TODO|FIXME|XXX|HACK)\b/
    expect(tracked.filter((f) => existsSync(join(ROOT, f)) && words.test(readFileSync(join(ROOT, f), 'utf8')))).toEqual(
      [],
    )
  })
})
