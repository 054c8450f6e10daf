import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Json } from '../../support/cloud.ts'
import { inFullSizeOnEveryDatabase } from '../../support/databases.ts'
import { newEan, openShop, type Shop } from '../../support/shop.ts'

/** Categories and brands that a policy names, compared with those of the store's products. */
inFullSizeOnEveryDatabase('names in a policy', (kind) => {
  let shop: Shop
  beforeAll(async () => {
    shop = await openShop(kind)
    for (const fields of [{ category: 'Süßwaren', brand: 'Götz' }, { category: 'Alkohol' }, { brand: 'Nordhof' }])
      await insert({ ...fields })
  })
  afterAll(() => shop.stop())

  const insert = (fields: Json, storeId = shop.storeId) =>
    shop.ok('insertProduct', { storeId, ean: newEan(), name: 'Ware', price: 9.99, vat: 19, ...fields })
  const update = (policy: Json) => shop.call('updateProtectionPolicy', { storeId: shop.storeId, policy })
  const rule = { detach_hard_tag: ['staff_assisted'] }

  it('are known in every spelling', async () => {
    const { status, body } = await update({
      allowedActionsByCategory: { '*': rule, SÜSSWAREN: rule, ' alkohol': rule },
      requiresStaffForBrand: ['Go\u0308tz', 'NORDHOF'],
      gate: { severity: [{ category: 'su\u0308ßwaren', severity: 'notify' }, { severity: 'siren' }] },
    })
    expect([status, body.warnings]).toEqual([200, undefined])
    expect(Object.keys(body.policy.allowedActionsByCategory)).toEqual(['*', 'SÜSSWAREN', ' alkohol'])
    expect(await shop.ok('fetchProtectionPolicy', { storeId: shop.storeId })).not.toHaveProperty('warnings')
  })

  it('cause a warning if no product has them, with the nearest name', async () => {
    await insert({ category: 'Nur woanders' }, shop.otherStoreId)
    const { status, body } = await update({
      allowedActionsByCategory: { '*': rule, Alkohl: rule, 'nur woanders': rule },
      requiresStaffForBrand: ['Gotz', 'Nordhof'],
      gate: { severity: [{ category: 'süsware', severity: 'notify' }] },
    })
    expect([status, body.warnings]).toEqual([
      200,
      [
        'policy.allowedActionsByCategory: no product of this store has the category "Alkohl"; did you mean "Alkohol"?',
        'policy.allowedActionsByCategory: no product of this store has the category "nur woanders"',
        'policy.requiresStaffForBrand: no product of this store has the brand "Gotz"; did you mean "Götz"?',
        'policy.gate.severity: no product of this store has the category "süsware"; did you mean "Süßwaren"?',
      ],
    ])
  })

  it('cause at most 20 warnings', async () => {
    const names = Array.from({ length: 30 }, (_, n) => `Marke ${'x'.repeat(n)}`)
    const { warnings } = (await update({ requiresStaffForBrand: names })).body
    expect(warnings).toHaveLength(21)
    expect(warnings.at(-1)).toBe('10 more names are those of no product of this store')
  })

  it('are refused if two are the same name, and both are named', async () => {
    for (const [policy, path] of [
      [{ allowedActionsByCategory: { Alkohol: rule, alkohol: rule } }, 'policy.allowedActionsByCategory'],
      [{ requiresStaffForBrand: ['Alkohol', 'alkohol'] }, 'policy.requiresStaffForBrand'],
    ] as const) {
      const { status, body } = await update(policy)
      expect([status, body.details]).toMatchObject([
        400,
        [{ path, message: expect.stringContaining('"Alkohol" and "alkohol" are the same name: keep one of them') }],
      ])
      const simulated = await shop.call('simulateProtectionPolicy', { storeId: shop.storeId, policy })
      expect(simulated.status).toBe(400)
    }
  })
})
