import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { OPERATION_TABLE } from '../../cloud/service/operation-table.ts'
import { AGENT_OPERATIONS, type AgentOperation } from '../../edge-agent/http/operations.ts'
import { CommandClaims } from '../../policy/documents/agent-messages.ts'
import { DOCUMENT_KINDS } from '../../policy/documents/kinds.ts'
import { PROTECTION_EVENT_TYPES } from '../../policy/protection-events.ts'
import { Evidence } from '../../policy/journal.ts'
import { AGENT_TOPICS, STORE_TOPICS } from '../../policy/mqtt-topics.ts'
import { ROOT } from '../house/sources.ts'

/** Operations that agents call before their login. */
const BEFORE_LOGIN = ['enrolEdgeAgent', 'agentLogin']

const page = readFileSync(join(ROOT, 'docs/security.md'), 'utf8')
const rows = page
  .split('\n')
  .filter((line) => line.startsWith('| `'))
  .map((line) => line.slice(2, -2).split(' | '))
const listed = rows.map(([kind = '']) => kind.replaceAll('`', ''))

/** The routes below a path of the agent's local API, found in its sources. */
function routesBelow(path: string): string[] {
  const folder = join(ROOT, 'edge-agent/http')
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'))
  const texts = files.map((file) => readFileSync(join(folder, file), 'utf8'))
  return [...new Set(texts.flatMap((text) => text.match(new RegExp(`(?<=')${path}/[^']+(?=')`, 'g')) ?? []))]
}

/** Routes of the agent's local API that other agents call without a credential. */
function openRoutes(): string[] {
  const operations: AgentOperation[] = Object.values(AGENT_OPERATIONS)
  return operations.flatMap(({ callers, needsCredential, path }) =>
    callers === 'agents' && !needsCredential ? [path] : [],
  )
}

/** Number of threats in each table. The numbering must have no gaps. */
const THREATS = { A: 62, S: 127, F: 6, P: 12, O: 6, L: 45 }
const threats = page
  .split('\n')
  .filter((line) => /^\| [A-Z]\d+ \|/.test(line))
  .map((line) => line.slice(2, -2).split(' | '))

/** Files that a text names, each with the test title that follows. */
const namedIn = (cell: string) =>
  [...cell.matchAll(/\[[^\]]+\]\(\.\.\/([^)]+)\)(?:: "(.+?)"(?=; \[|$))?/g)].map(([, file = '', title = '']) => ({
    file,
    title,
  }))

/** Lines of the section "Further tests": the id of a row, and a test. */
const furtherTests = [...page.matchAll(/^- ([A-Z]\d+): (.+)$/gm)].map(([, id = '', test = '']): [string, string] => [
  id,
  test,
])

/** Asserts that a text lists only existing tests, in the form `[name](file): "title"; …`. */
function expectTests(text: string): void {
  const tests = namedIn(text)
  expect(tests.length, text).toBeGreaterThan(0)
  for (const { file, title } of tests) {
    expect(file, text).toMatch(/^test\/.*\.test\.ts$/)
    expect(title, text).not.toBe('')
    expect(readFileSync(join(ROOT, file), 'utf8'), file).toContain(`'${title}'`)
  }
  // A title that the pattern reads only in part could hide a wrong one.
  const written = tests.map(({ file, title }) => `](../${file}): "${title}"`)
  expect(text.split('; [').length).toBe(written.length)
}

describe('the threats of docs/security.md', () => {
  it('have no gaps in their numbers, and each has a threat, a control and a test', () => {
    const ids = Object.entries(THREATS).flatMap(([letter, n]) =>
      Array.from({ length: n }, (_, i) => `${letter}${i + 1}`),
    )
    expect(threats.map(([id]) => id)).toEqual(ids)
    expect(threats.filter((cells) => cells.length !== 4 || cells.some((cell) => cell.trim() === ''))).toEqual([])
  })

  it.each(threats)('%s (%s) has a control and a test that exist', (_id, _threat, control = '', test = '') => {
    const controls = namedIn(control)
    expect(controls.length).toBeGreaterThan(0)
    expect(controls.filter(({ file }) => !existsSync(join(ROOT, file)))).toEqual([])
    expectTests(test)
  })

  it.each(furtherTests)('%s is a row, and has a further test that exists: %s', (id, test) => {
    expect(threats.map((cells) => cells[0])).toContain(id)
    expectTests(test)
  })
})

describe('the tables of docs/security.md', () => {
  it.each([
    [
      'calls of agents',
      [...OPERATION_TABLE.values()].filter(({ callers }) => callers.includes('agent')).map(({ name }) => name),
    ],
    ['calls before a login', BEFORE_LOGIN],
    ['row kinds', Evidence.options.map(({ shape }) => `row ${shape.kind.value}`)],
    ['events', PROTECTION_EVENT_TYPES.map((type) => `event ${type}`)],
    ['requests to a receipt home', routesBelow('/v1/home')],
    ['notices between agents', ['/v1/releases']],
    ['requests of other agents', openRoutes()],
    ['requests of readers', routesBelow('/ingest')],
    ['topics', [...AGENT_TOPICS, ...STORE_TOPICS].map((name) => `topic ${name}`)],
    ['commands', CommandClaims.shape.command.options.map((name) => `command ${name}`)],
    ['signed documents', Object.values(DOCUMENT_KINDS).map(({ typ }) => typ)],
  ])('list all %s', (_, kinds) => {
    expect(kinds.length).toBeGreaterThan(0)
    expect(kinds.filter((kind) => !listed.includes(kind))).toEqual([])
  })

  it('list each kind once, with its sender, its subject, a check and a test', () => {
    expect(listed.filter((kind, n) => listed.indexOf(kind) !== n)).toEqual([])
    expect(rows.filter((cells) => cells.length !== 5 || cells.some((cell) => cell.trim() === ''))).toEqual([])
  })

  it('name checks that exist', () => {
    const files = rows.flatMap(([, , , check = '']) =>
      [...check.matchAll(/\]\(\.\.\/([^)]+)\)/g)].map(([, file = '']) => file),
    )
    expect(files.filter((file) => !existsSync(join(ROOT, file)))).toEqual([])
    expect(rows.filter(([, , , check = '']) => !check.includes('](../'))).toEqual([])
  })

  it.each(rows.map(([kind, , , , test = '']) => [kind, test]))('%s has a test that exists', (_, cell) => {
    const [, file = '', title = ''] = /^\[[^\]]+\]\(\.\.\/([^)]+)\): "(.+)"$/.exec(cell) ?? []
    expect(file, cell).toMatch(/^test\/.*\.test\.ts$/)
    expect(readFileSync(join(ROOT, file), 'utf8')).toContain(`'${title}'`)
  })
})
