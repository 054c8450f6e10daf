import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { RawJson, rawList, serializeResponse } from '../../../cloud/operations/raw-json.ts'

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
