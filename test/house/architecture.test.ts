import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { codeOf, readSources, ROOMS, ROOT, type Source } from './sources.ts'

const sources = readSources()
/** Parts of the verification suite on virtual time. The others run real processes. */
const isSimulated = (path: string) => /^verification\/(?:simulation|fuzz)\//.test(path)
const inRooms = sources.filter((s) => !['bin', 'bench', 'test', 'verification'].includes(s.room) || isSimulated(s.path))
/** Where a type may be open: JSON in tests; and this file names what it looks for. */
const HOLES = new Set(['test/support/cloud.ts', 'test/house/architecture.test.ts'])
/** Files over the limit since the formatter came; the issue about modules splits them. Nothing may be added. */
const LONG_FILES = new Set([
  'bin/settings.ts',
  'device-drivers/protocols/llrp/parameters.ts',
  'verification/simulation/oracles/ledger-oracle.ts',
])
/** Folders whose subfolders import each other in one direction only. */
const ORDERED_FOLDERS = [
  'cloud/protection',
  'cloud/agents',
  'verification',
  'verification/simulation',
  'verification/fuzz',
]
/** Whose types the clients are made of. */
const CLIENT_TYPES = new Set([
  'cloud/operation-table.ts',
  'edge-agent/http/operations.ts',
  'edge-agent/http/error-codes.ts',
])

/** Files with what is wrong in them, so that a failure names the place. */
function where(files: readonly Source[], wrong: (source: Source) => boolean): string[] {
  return files.filter(wrong).map((s) => s.path)
}

describe('the house', () => {
  it('sees what it should', () => {
    expect(sources.length).toBeGreaterThan(150)
    expect(codeOf(`a('Date.now') // Date.now\n/* Date.now */ b("x")`)).not.toContain('Date')
    expect(sources.flatMap((s) => s.imports).length).toBeGreaterThan(500)
  })

  it('lets each room know only what stands below it', () => {
    const wrong = sources.flatMap((source) =>
      source.imports.flatMap(({ path }) => {
        const room = path.split('/')[0] ?? ''
        if (room === source.room || ROOMS[source.room]?.includes(room) === true) {
          // A simulated device shares the protocol tables with the driver, never the driver's code.
          const isOutside = source.room === 'simulators' && room !== 'simulators' && room !== 'policy'
          if (
            !isOutside ||
            path.startsWith('device-drivers/protocols/') ||
            path.startsWith('device-drivers/transports/')
          )
            return []
        }
        return [`${source.path} imports ${path}`]
      }),
    )
    expect(wrong).toEqual([])
  })

  it('lets the client know the types of the operations, and nothing else of the cloud', () => {
    const client = sources.filter((s) => s.room === 'client')
    const outside = client.flatMap((s) =>
      s.imports
        .filter(({ path, isType }) => !path.startsWith('client/') && !(isType && CLIENT_TYPES.has(path)))
        .map(({ path }) => `${s.path} imports ${path}`),
    )
    expect(outside).toEqual([])
    // `untag/tokens` is an entry of its own: `untag/client` loads no package.
    expect(where(client, (s) => /^import (?!type\b).*from '(?!\.)/m.test(s.text))).toEqual(['client/verify-token.ts'])
    const importers = sources.filter((s) => s.imports.some(({ path }) => path === 'client/verify-token.ts'))
    expect(importers.filter((s) => s.room !== 'test')).toEqual([])
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
    // Takes away, again and again, what imports nothing that is left. What stays is a circle.
    let left = [...below.keys()]
    for (let before = -1; before !== left.length;) {
      before = left.length
      left = left.filter((name) => left.some((other) => below.get(name)?.has(other)))
    }
    expect(left).toEqual([])
  })

  it('lets each folder of cloud/ import only lower rows of the table in docs/guides/development.md', () => {
    const page = readFileSync(join(ROOT, 'docs/guides/development.md'), 'utf8')
    const section = /\n## Folders of the cloud\n(.*?)\n## /s.exec(page)?.[1] ?? ''
    const rows = [...section.matchAll(/^\| (`.*?) \|/gm)].map(([, cell = '']) => cell)
    const rowOf = new Map(
      rows.flatMap((cell, row) => [...cell.matchAll(/`([^`]+?)\/?`/g)].map(([, name = '']) => [name, row] as const)),
    )
    const folderOf = (path: string) => path.split('/')[1] ?? ''
    const cloud = sources.filter((s) => s.room === 'cloud')
    expect([...rowOf.keys()].toSorted()).toEqual([...new Set(cloud.map((s) => folderOf(s.path)))].toSorted())
    const wrong = cloud.flatMap(({ path, imports }) => {
      const from = folderOf(path)
      return imports
        .filter((each) => each.path.startsWith('cloud/') && folderOf(each.path) !== from)
        .filter((each) => (rowOf.get(folderOf(each.path)) ?? 0) <= (rowOf.get(from) ?? 0))
        .map((each) => `${path} imports ${each.path}`)
    })
    expect(wrong).toEqual([])
  })

  it('gets time, randomness, network and disk from outside', () => {
    const forbidden =
      /\bDate\.now\b|\bnew Date\(\)|\bMath\.random\b|\bset(?:Timeout|Interval)\b|\bperformance\.|\bprocess\.hrtime\b|\brandom(?:Bytes|UUID|FillSync|Int)\b|\bprocess\.env\b|(?:^|[^.\w])fetch\((?=['"`]{2})|\bglobalThis\.fetch\b/
    expect(
      where(inRooms, (s) => !s.path.includes('/browser/') && s.path !== 'client/platform.ts' && forbidden.test(s.code)),
    ).toEqual([])
  })

  it('opens each kind of database in one place', () => {
    const opening = /\bnew Sqlite(?:Connection)?\(|\bnew pg\.Pool\(|\bnew Pool\(/
    expect(
      where(
        sources.filter((s) => s.room !== 'test' && s.room !== 'bench'),
        (s) => opening.test(s.code),
      ).toSorted(),
    ).toEqual([
      'bin/backup/sqlite-copy.ts',
      'bin/commands/doctor.ts',
      'bin/data-dir-lock.ts',
      'cloud/persistence/postgres-pool.ts',
      'cloud/persistence/sqlite.ts',
      'edge-agent/items/item-file.ts',
      'edge-agent/ledger/file/ledger-file.ts',
    ])
  })

  it('takes the router, cookies and markup of hono alone: its other middleware had advisories', () => {
    const taken = sources
      .filter((s) => s.room !== 'test')
      .flatMap((s) => [...s.text.matchAll(/from '(hono(?:\/[^']+)?)'/g)].map((m) => m[1]))
    expect([...new Set(taken)].toSorted()).toEqual([
      'hono',
      'hono/cookie',
      'hono/html',
      'hono/jsx',
      'hono/jsx/jsx-runtime',
    ])
  })

  it('keeps the policy pure', () => {
    expect(
      where(
        sources.filter((s) => s.room === 'policy'),
        (s) =>
          /from 'node:(?!crypto|buffer|assert)|\basync\b|\bawait\b/.test(s.text) && s.path !== 'policy/platform.ts',
      ),
    ).toEqual([])
  })

  it('has no default exports, no holes in its types, no files that only pass on', () => {
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

  it('keeps files small enough to be one concept', () => {
    expect(
      sources
        .filter((s) => s.room !== 'test' && s.text.split('\n').length > 320 && !LONG_FILES.has(s.path))
        .map((s) => `${s.path}: ${s.text.split('\n').length} lines`),
    ).toEqual([])
  })

  it('gives every exported function of the rooms a doc comment or a name that says it all', () => {
    const undocumented = inRooms.flatMap((s) =>
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
    const reasons = readFileSync(join(ROOT, 'docs/adr/0037-dependencies.md'), 'utf8')
    const missing = [...Object.keys(dependencies), ...Object.keys(devDependencies)].filter(
      (name) => !name.startsWith('@types/') && !reasons.includes(`\`${name}\``),
    )
    expect(missing).toEqual([])
  })

  it('leaves nothing unfinished behind', () => {
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
