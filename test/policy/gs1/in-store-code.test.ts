import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { DEFAULT_IN_STORE_CODES, InStoreCodes, labelCent, readLabel } from '../../../policy/gs1/in-store-code.ts'
import { checkDigit, hasValidCheckDigit, priceCheckDigit } from '../../../policy/gs1/gtin.ts'

/** A layout, and a label that was printed with it. */
const printed = fc
  .record({
    prefix: fc.integer({ min: 20, max: 29 }),
    items: fc.integer({ min: 3, max: 5 }),
    guarded: fc.boolean(),
    unit: fc.constantFrom('P', 'W'),
    item: fc.nat(99_999),
    value: fc.nat(99_999),
  })
  .map(({ prefix, items, guarded, unit, item, value }) => {
    const values = 10 - items - Number(guarded)
    const width = guarded ? Math.min(values, 5) : Math.min(values, 6)
    const itemWidth = 10 - width - Number(guarded)
    const itemDigits = String(item).padStart(itemWidth, '0').slice(-itemWidth)
    const digits = String(value).padStart(width, '0').slice(-width)
    const layout = `${prefix}${'I'.repeat(itemWidth)}${guarded ? 'V' : ''}${unit.repeat(width)}C`
    const body = `${prefix}${itemDigits}${guarded ? priceCheckDigit(digits) : ''}${digits}`
    return {
      layout,
      code: `${body}${checkDigit(body)}`,
      value: Number(digits),
      item: `${prefix}${itemDigits}`,
      kind: unit === 'P' ? 'price' : 'weight',
    }
  })

describe('the code that a scale prints', () => {
  it('is read with its product, price and weight', () => {
    fc.assert(
      fc.property(printed, ({ layout, code, value, item, kind }) => {
        expect(InStoreCodes.safeParse([layout]).success).toBe(true)
        const label = readLabel(code, [layout])
        expect(label).toMatchObject({ barcode: code, kind, value, isSound: true })
        expect(label?.ean.startsWith(item)).toBe(true)
        expect(hasValidCheckDigit(label?.ean ?? '')).toBe(true)
        // The registered code is a label with value 0. Its EAN is the code itself.
        expect(readLabel(label?.ean ?? '', [layout])).toMatchObject({ ean: label?.ean, value: 0, isSound: true })
      }),
    )
  })

  it('is rejected with one misread digit', () => {
    fc.assert(
      fc.property(
        printed,
        fc.integer({ min: 2, max: 12 }),
        fc.integer({ min: 1, max: 9 }),
        ({ layout, code }, at, by) => {
          const misread = code.slice(0, at) + ((Number(code[at]) + by) % 10) + code.slice(at + 1)
          expect(readLabel(misread, [layout])?.isSound).toBe(false)
        },
      ),
    )
  })

  it('of a German shop contains a price after 28 and a weight after 29', () => {
    expect(readLabel('2810275005024', DEFAULT_IN_STORE_CODES)).toEqual({
      barcode: '2810275005024',
      ean: '2810270000000',
      kind: 'price',
      value: 502,
      isSound: true,
    })
    expect(readLabel('2957776004085', DEFAULT_IN_STORE_CODES)).toMatchObject({
      kind: 'weight',
      value: 408,
      isSound: true,
    })
    for (const other of ['2112345678900', '4012345678901', '28102750', '281027500502X', ''])
      expect(readLabel(other, DEFAULT_IN_STORE_CODES)).toBeUndefined()
  })

  it('must have a layout that places all digits', () => {
    for (const bad of [
      '28IIIIVPPPPP',
      '12IIIIVPPPPPC',
      '28IIIIVPPPWWC',
      '28PPPPPIIIIIC',
      '28IIIVPPPPPPC',
      '28VIIIIPPPPPC',
      '',
    ])
      expect(InStoreCodes.safeParse([bad]).success).toBe(false)
    expect(InStoreCodes.safeParse(['28IIIIVPPPPPC', '28IIIIIWWWWWC']).success).toBe(false)
  })

  it('costs its price, or weight times price per kilogram, rounded half up', () => {
    const label = { barcode: '', ean: '', isSound: true }
    expect(labelCent({ ...label, kind: 'price', value: 502 }, 0)).toBe(502)
    expect(labelCent({ ...label, kind: 'weight', value: 408 }, 1_290)).toBe(526) // 5.2632
    expect(labelCent({ ...label, kind: 'weight', value: 500 }, 1)).toBe(1)
    expect(labelCent({ ...label, kind: 'weight', value: 499 }, 1)).toBe(0)
  })
})
