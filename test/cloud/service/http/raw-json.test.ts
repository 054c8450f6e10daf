import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { z } from 'zod'
import { OPERATION_TABLE } from '../../../../cloud/service/operation-table.ts'
import { parseJsonBody, validate } from '../../../../cloud/platform/operations/validation.ts'
import { RawJson, rawList, serializeResponse } from '../../../../cloud/platform/operations/raw-json.ts'

describe('a serialized response', () => {
  it('is the same whether its parts are values or JSON text', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.func(fc.boolean()), (fields, isText) => {
        delete fields['success']
        const expected = JSON.stringify({ success: true, ...fields })
        const mixed = Object.fromEntries(
          Object.entries(fields).map(([name, value]) => [
            name,
            isText(name) ? new RawJson(JSON.stringify(value)) : value,
          ]),
        )
        expect(JSON.parse(serializeResponse({ success: true, ...mixed }))).toEqual(JSON.parse(expected))
        expect(JSON.parse(serializeResponse(new RawJson(JSON.stringify(fields))))).toEqual(JSON.parse(expected))
      }),
    )
  })

  it('omits undefined fields and contains lists of documents', () => {
    expect(serializeResponse({ a: undefined, b: rawList(['{"c":1}', '{"c":2}']), d: rawList([]) })).toBe(
      '{"success":true,"b":[{"c":1},{"c":2}],"d":[]}',
    )
    expect(serializeResponse({})).toBe('{"success":true}')
  })
})

describe('a request body', () => {
  const fields = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`f${n}`, 0]))
  const refusalOf = (text: string) => {
    try {
      return parseJsonBody(text)
    } catch (error) {
      return (error as Error).message
    }
  }

  it('has at most 50,000 values, however they are nested and named', () => {
    const zeros = (count: number) => Array.from({ length: count }, () => 0)
    expect(refusalOf(JSON.stringify({ a: zeros(49_990) }))).toEqual({ a: zeros(49_990) })
    const tooMany = 'the body has more than 50000 values'
    expect(refusalOf(JSON.stringify({ a: zeros(50_001) }))).toBe(tooMany)
    expect(refusalOf(`{"a":[${'[],'.repeat(26_000)}[]]}`)).toBe(tooMany)
    expect(refusalOf(`{"a":[${'{"b":{}},'.repeat(26_000)}{}]}`)).toBe(tooMany)
    expect(refusalOf(JSON.stringify(fields(50_001)))).toBe(tooMany)
  })

  it('has at most 1,000 fields in an object, so that it is checked fast', () => {
    expect(refusalOf(JSON.stringify({ a: fields(1_000) }))).toEqual({ a: fields(1_000) })
    const tooMany = 'an object of the body has more than 1000 fields'
    expect(refusalOf(JSON.stringify(fields(1_001)))).toBe(tooMany)
    expect(refusalOf(JSON.stringify({ a: [{ b: fields(40_000) }] }))).toBe(tooMany)
  })

  it('may have any number of commas and brackets in its texts', () => {
    const a = `\\",[{\\`.repeat(20_000)
    expect(refusalOf(JSON.stringify({ a, b: '\\' }))).toEqual({ a, b: '\\' })
  })

  it('of a caller without a key has at most 32 KB', () => {
    const anonymous = [...OPERATION_TABLE.values()].filter(({ callers }) => callers.includes('anyone'))
    expect(anonymous.length).toBeGreaterThan(5)
    for (const { name, bodyLimit } of anonymous) expect([name, bodyLimit]).toEqual([name, 32 * 1024])
  })

  it('with 40,000 wrong fields is refused with 20 findings', () => {
    const { request } = OPERATION_TABLE.get('updateProtectionPolicy') ?? {}
    const wrong = Object.fromEntries(Array.from({ length: 40_000 }, (_, n) => [`f${n}`, 0]))
    for (const input of [wrong, { policy: { allowedActionsByCategory: wrong } }])
      expect(() => validate(request as z.ZodType, input)).toThrow(
        expect.objectContaining({ extras: { details: expect.toSatisfy((all: unknown[]) => all.length <= 20) } }),
      )
  })
})
