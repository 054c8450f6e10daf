import { Validator } from '@seriousme/openapi-schema-validator'
import { describe, expect, it } from 'vitest'
import { breakingChanges } from '../../scripts/generate/breaking-changes.ts'
import { contractDocument, readableJson } from '../../scripts/generate/contract-page.ts'

const FILE = 'docs/reference/openapi.json'
const current = contractDocument()

describe(FILE, () => {
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
