import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Validator } from '@seriousme/openapi-schema-validator'
import { describe, expect, it } from 'vitest'
import { ROOT } from '../house/sources.ts'
import { breakingChanges, undeclaredChanges, unnamedAdditions, type ContractDocument } from './breaking-changes.ts'
import { contractDocument, contractPage, readableJson } from './contract-page.ts'

const FILE = 'docs/reference/openapi.json'
const UPDATE = 'npx vitest run test/docs/contract.test.ts -u'
const committed = () => JSON.parse(readFileSync(join(ROOT, FILE), 'utf8')) as ContractDocument
const current = contractDocument()

describe(FILE, () => {
  // A single test, so that -u writes the file only if every breaking change is declared.
  it('equals the document generated from the code, and CHANGELOG.md declares changes that break callers', async () => {
    expect(committed, `restore the file first: git checkout ${FILE}`).not.toThrow()
    const changelog = readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8')
    const undeclared = undeclaredChanges(breakingChanges(committed(), current), changelog)
    expect(
      undeclared,
      `These changes break callers. Undo them, or add each line to the unreleased section of CHANGELOG.md (text may follow it), then run: ${UPDATE}`,
    ).toEqual([])
    expect(
      unnamedAdditions(committed(), current, changelog),
      'The unreleased section of CHANGELOG.md needs a line that names these operations and events, each in backticks',
    ).toEqual([])
    await expect(
      contractPage(current),
      `The API has changed without breaking callers. Write ${FILE} anew: ${UPDATE}`,
    ).toMatchFileSnapshot(join(ROOT, FILE))
  })

  it('is valid OpenAPI and names no host', async () => {
    const { valid, errors } = await new Validator().validate(structuredClone({ ...current }))
    expect([valid, errors ?? []]).toEqual([true, []])
    expect(current.servers).toEqual([{ url: '/api/v1' }])
  })

  it('has no breaking changes compared with itself, and many compared with an empty document', () => {
    expect(breakingChanges(current, current)).toEqual([])
    const empty = { ...current, paths: {}, 'x-webhooks': {} }
    const parts = Object.keys(current['x-webhooks']).length + Object.keys(current.paths).length
    expect(breakingChanges(current, empty).length).toBeGreaterThanOrEqual(parts)
    expect(breakingChanges(empty, current)).toEqual([])
  })
})

describe('readable JSON', () => {
  it('writes short values on one line, and parses to the same value', () => {
    const value = {
      name: 'ean',
      'x-y': [],
      long: Array.from({ length: 40 }, (_, n) => ({ n, text: `"${n}"` })),
      no: null,
    }
    const text = readableJson(value)
    expect(JSON.parse(text)).toEqual(value)
    expect(text).toContain('\n  "name": "ean",\n')
    expect(text).toContain('\n    { "n": 7, "text": "\\"7\\"" },\n')
  })
})
