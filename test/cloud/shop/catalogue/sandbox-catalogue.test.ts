import { describe, expect, test } from 'vitest'
import { SANDBOX_CATEGORIES, SANDBOX_PRODUCTS, type SandboxProduct } from '../../../../cloud/sales/sandbox/catalogue.ts'
import { toGtin14 } from '../../../../policy/gs1/gtin.ts'
import { decodeSgtin, encodeSgtin, splitGtin14 } from '../../../../policy/gs1/sgtin.ts'

const names = (products: readonly SandboxProduct[]) => products.map(({ name }) => name)
const failing = (rule: (product: SandboxProduct) => boolean) =>
  names(SANDBOX_PRODUCTS.filter((product) => !rule(product)))

/**
 * A second implementation of the check digit rule, independent of policy/gs1/gtin.ts. All digits, weighted 1, 3, 1 …
 * from the right, must add up to a multiple of ten.
 */
function isBarcode(ean: string): boolean {
  const sum = Array.from(ean)
    .reverse()
    .map(Number)
    .reduce((total, digit, place) => total + (place % 2 === 0 ? digit : digit * 3), 0)
  return sum % 10 === 0
}

describe('EANs', () => {
  test('have 8 or 13 digits, no leading zero and a correct check digit', () => {
    expect(failing(({ ean }) => /^[1-9](?:\d{7}|\d{12})$/.test(ean) && isBarcode(ean))).toEqual([])
  })

  test('belong to GS1 Germany: prefix 400–440', () => {
    expect(failing(({ ean }) => Number(ean.slice(0, 3)) >= 400 && Number(ean.slice(0, 3)) <= 440)).toEqual([])
  })

  test('are unique, at least 64, at least 6 of them EAN-8', () => {
    expect(new Set(SANDBOX_PRODUCTS.map(({ ean }) => ean)).size).toBe(SANDBOX_PRODUCTS.length)
    expect(SANDBOX_PRODUCTS.length).toBeGreaterThanOrEqual(64)
    expect(SANDBOX_PRODUCTS.filter(({ ean }) => ean.length === 8).length).toBeGreaterThanOrEqual(6)
  })

  test('share a company number within a brand', () => {
    const companies = new Set<string>()
    const brands = new Set<string>()
    for (const { ean, brand } of SANDBOX_PRODUCTS.filter((product) => product.ean.length === 13)) {
      companies.add(`${ean.slice(0, 7)} ${brand}`)
      brands.add(brand)
    }
    expect(companies.size).toBe(brands.size)
  })

  test('survive the conversion to SGTIN-96 and back', () => {
    expect(
      failing(({ ean }) => {
        const parts = splitGtin14(toGtin14(ean) ?? '', ean.length === 8 ? 8 : 7)
        const encoded = parts && encodeSgtin({ scheme: 'sgtin-96', filter: 1, ...parts, serial: '1001' })
        const decoded = encoded?.ok ? decodeSgtin(encoded.hex) : undefined
        return decoded?.ok === true && decoded.sgtin.gtin14 === ean.padStart(14, '0')
      }),
    ).toEqual([])
  })

  test('a wrong check digit is detected', () => {
    expect(isBarcode('4006381333931')).toBe(true)
    expect(isBarcode('4006381333932')).toBe(false)
  })
})

describe('prices', () => {
  test('are whole cents within the specification’s range; old prices are higher', () => {
    const isPrice = (cents: number) => Number.isInteger(cents) && cents > 0 && cents <= 100_000_000
    expect(failing(({ priceCent }) => isPrice(priceCent))).toEqual([])
    expect(
      failing(({ priceCent, oldPriceCent = priceCent + 1 }) => isPrice(oldPriceCent) && oldPriceCent > priceCent),
    ).toEqual([])
  })

  test('of at least 3 products are above 150 EUR', () => {
    expect(SANDBOX_PRODUCTS.filter(({ priceCent }) => priceCent > 15_000).length).toBeGreaterThanOrEqual(3)
  })

  test('VAT is 7 for food, non-alcoholic drinks and books, 19 for everything else', () => {
    const reduced = new Set<string>(['Lebensmittel', 'Getränke', 'Bücher'])
    const isReduced = ({ category, requiresHumanVerification }: SandboxProduct) =>
      reduced.has(category) && !requiresHumanVerification
    expect(failing((product) => product.vat === (isReduced(product) ? 7 : 19))).toEqual([])
  })
})

describe('texts', () => {
  test('have the specification’s lengths, and are neither blank nor padded', () => {
    const isText = (text = 'none', max: number) => text.length > 0 && text.length <= max && text.trim() === text
    expect(failing(({ name, description }) => isText(name, 120) && isText(description, 300))).toEqual([])
    expect(failing(({ brand, unit, weight }) => isText(brand, 40) && isText(unit, 40) && isText(weight, 40))).toEqual(
      [],
    )
    expect(
      failing(({ allergens = ['x'] }) => allergens.length > 0 && allergens.every((allergen) => isText(allergen, 40))),
    ).toEqual([])
  })

  test('names are unique and composed (NFC), so that a search for “ä” finds them', () => {
    expect(new Set(names(SANDBOX_PRODUCTS)).size).toBe(SANDBOX_PRODUCTS.length)
    expect(failing((product) => JSON.stringify(product) === JSON.stringify(product).normalize('NFC'))).toEqual([])
    expect(names(SANDBOX_PRODUCTS).join()).toMatch(/ä.*ö.*ü.*ß/)
  })
})

describe('categories', () => {
  test('are words as people read them and sorted, each with at least 5 products', () => {
    expect([...SANDBOX_CATEGORIES].sort()).toEqual(SANDBOX_CATEGORIES)
    expect(SANDBOX_CATEGORIES.every((category) => /^[A-ZÄÖÜ][a-zäöüß]+$/.test(category))).toBe(true)
    const counts = SANDBOX_CATEGORIES.map(
      (category) => SANDBOX_PRODUCTS.filter((product) => product.category === category).length,
    )
    expect(Math.min(...counts)).toBeGreaterThanOrEqual(5)
  })

  test('determine the order of the products', () => {
    const order = SANDBOX_PRODUCTS.map(({ category }) => SANDBOX_CATEGORIES.indexOf(category))
    expect(order).toEqual([...order].sort((a, b) => a - b))
    expect(order).not.toContain(-1)
  })
})

describe('flags', () => {
  test('only alcohol requires an age check', () => {
    expect(
      failing((product) => product.category !== 'Spirituosen' || product.requiresHumanVerification === true),
    ).toEqual([])
    const aged = SANDBOX_PRODUCTS.filter(({ requiresHumanVerification }) => requiresHumanVerification)
    expect(aged.filter(({ category }) => category === 'Spirituosen').length).toBeGreaterThanOrEqual(4)
    expect(aged.every(({ category }) => category === 'Spirituosen' || category === 'Getränke')).toBe(true)
  })

  test('only cheap goods have no tag, and cheap food never has one', () => {
    expect(failing(({ tagged, priceCent }) => tagged !== false || priceCent < 1_500)).toEqual([])
    expect(
      failing(({ category, tagged, priceCent }) => category !== 'Lebensmittel' || priceCent >= 500 || tagged === false),
    ).toEqual([])
    expect(
      SANDBOX_PRODUCTS.filter(({ category, tagged }) => category === 'Lebensmittel' && tagged !== false).length,
    ).toBeGreaterThan(0)
  })

  test('are absent rather than undefined', () => {
    expect(failing((product) => !Object.values(product).includes(undefined))).toEqual([])
  })

  test('vegan products list no animal allergens', () => {
    const animal = new Set(['Milch', 'Ei', 'Fisch'])
    expect(
      failing(({ isVegan, allergens = [] }) => !isVegan || !allergens.some((allergen) => animal.has(allergen))),
    ).toEqual([])
  })
})
