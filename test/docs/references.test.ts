import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { describe, expect, it } from 'vitest'
import { pagesIn, readPage, ROOT, wordsIn, type Block } from './markdown-page.ts'

const PAGES = [
  'README.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'docs/reference/tests.md',
  'test/verification/results.md',
  ...pagesIn('docs'),
]
const RECORDS = pagesIn('docs/adr').filter((page) => page !== 'docs/adr/README.md')
const GENERATED = new Set(['test/verification/results.md', 'docs/reference/licences.md'])
const PROSE_PAGES = PAGES.filter((page) => !GENERATED.has(page))

const WORDS_OF_A_PARAGRAPH = 80
const WORDS_OF_A_CELL = 25
const CHARACTERS_OF_A_LINE = 400

/** References to pages outside the project. */
const FOREIGN_REFERENCE = /\b(?:contracts|decisions),? \(?§|\bresearch(?:\/|\s…)|\b(?:contracts|decisions)\.md\b/i

/** Placeholder names of driver pages in instructions and tests. */
const INVENTED = /\/(?:NAME|teleporter)\.md$/

const isCheckout = existsSync(join(ROOT, '.git'))
const textOf = (path: string) => readFileSync(join(ROOT, path), 'utf8')

/** The tracked text files, without this test and the lock files. */
function trackedFiles(): string[] {
  return execFileSync('git', ['ls-files'], { cwd: ROOT, encoding: 'utf8' })
    .split('\n')
    .filter((path) => /\.(?:tsx?|js|mjs|md|json|ya?ml|sh|css|sql)$|^\.ci\//.test(path))
    .filter((path) => !path.endsWith('package-lock.json') && path !== 'test/docs/references.test.ts')
    .filter((path) => existsSync(join(ROOT, path)))
}

/** Each match of `pattern` in a tracked file, as `path: match`. */
function findReferences(pattern: RegExp): { path: string; match: string; group: string }[] {
  return trackedFiles().flatMap((path) =>
    [...textOf(path).matchAll(pattern)].map((m) => ({ path, match: m[0], group: m[1] ?? '' })),
  )
}

const nameOf = (record: string) => record.replace('docs/adr/', '').replace('.md', '')

describe.runIf(isCheckout)('references in code, tests and docs', () => {
  it('to "ADR NAME" have a page in docs/adr', () => {
    const names = new Set(RECORDS.map(nameOf))
    const found = findReferences(/\bADR ([\w-]+)/g)
    expect(found.length).toBeGreaterThan(100)
    expect(found.filter(({ group }) => !names.has(group))).toEqual([])
  })

  it('to files in docs/ name files that exist', () => {
    const missing = findReferences(/(?<![\w./-])(docs\/[\w./-]+\.(?:md|json|png|svg))\b/g).filter(
      ({ group }) => !INVENTED.test(group) && !existsSync(join(ROOT, group)),
    )
    expect(missing).toEqual([])
  })

  it('name no page outside the project', () => {
    const found = trackedFiles().flatMap((path) => {
      const match = FOREIGN_REFERENCE.exec(textOf(path))
      return match ? [`${path}: ${match[0]}`] : []
    })
    expect(found).toEqual([])
  })
})

it('the pages name the oldest Node.js of package.json', () => {
  const { engines } = JSON.parse(textOf('package.json')) as { engines: { node: string } }
  const named = ['README.md', 'CONTRIBUTING.md', ...pagesIn('docs/guides')].flatMap((page) =>
    [...textOf(page).matchAll(/Node\.js (\d+\.\d+)( or newer| to \d+)?/g)].map(([text]) => `${page}: ${text}`),
  )
  expect(named.length).toBeGreaterThan(2)
  const oldest = engines.node.replace('>=', '')
  expect(named.filter((each) => !each.endsWith(`: Node.js ${oldest} or newer`))).toEqual([])
})

describe('links of the pages', () => {
  it('lead to files and headings that exist', () => {
    const broken = PAGES.flatMap((page) =>
      readPage(page)
        .links.filter((link) => !leadsSomewhere(page, link))
        .map((link) => `${page}: ${link}`),
    )
    expect(broken).toEqual([])
  })
})

function leadsSomewhere(page: string, link: string): boolean {
  if (/^(?:https?|mailto|data):/.test(link)) return true
  const [file = '', anchor] = link.split('#')
  const target = file === '' ? page : normalize(join(dirname(page), file))
  if (!existsSync(join(ROOT, target))) return false
  return anchor === undefined || !target.endsWith('.md') || readPage(target).anchors.has(anchor)
}

describe('decision records', () => {
  it.each(RECORDS)('%s states for each decision what was decided, and its price', (record) => {
    const { headings } = readPage(record)
    const decisions = headings.filter((heading) => heading.startsWith('## ')).length
    expect(decisions).toBeGreaterThan(0)
    for (const part of ['**Decision**', '**Price**'])
      expect([part, textOf(record).split(`\n${part}\n`).length - 1]).toEqual([part, decisions])
  })

  it('are each listed once in the index, with their title', () => {
    const index = textOf('docs/adr/README.md')
    const expected = RECORDS.map((record) => `- [${readPage(record).headings[0]?.slice(2)}](${nameOf(record)}.md): `)
    const listed = [...index.matchAll(/^- \[.*?\]\(.*?\): /gm)].map((m) => m[0])
    expect(listed.toSorted()).toEqual(expected.toSorted())
  })
})

describe('the prose of the pages', () => {
  const tooLong = (blocks: Block[], isLong: (text: string) => boolean) =>
    blocks.filter(({ text }) => isLong(text)).map(({ line, text }) => `${line}: ${text.slice(0, 80)}`)

  it.each(PROSE_PAGES)('%s has short paragraphs, lines and table cells', (page) => {
    const { paragraphs, proseLines, cells } = readPage(page)
    expect(tooLong(paragraphs, (text) => wordsIn(text) > WORDS_OF_A_PARAGRAPH)).toEqual([])
    expect(tooLong(proseLines, (text) => text.length > CHARACTERS_OF_A_LINE)).toEqual([])
    expect(tooLong(cells, (text) => wordsIn(text) > WORDS_OF_A_CELL)).toEqual([])
  })
})
