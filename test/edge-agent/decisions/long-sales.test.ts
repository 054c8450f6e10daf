import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Json } from '../../support/cloud.ts'
import { pairTill } from '../../support/paired-till.ts'
import { openStore, type TestStore } from '../../support/store.ts'

/** Sales of many lines with long texts, which must reach the cloud. */
let store: TestStore
let headers: Record<string, string> = {}
beforeEach(async () => {
  store = await openStore()
  headers = await pairTill(store)
})
afterEach(() => store.stop())

let number = 0
const saleOf = (count: number, lineOf: (n: number) => Json): Json => ({
  saleId: `long${++number}`,
  occurredAt: new Date(store.world.clock.wall()).toISOString(),
  lines: Array.from({ length: count }, (_, n) => ({ quantity: 1, priceUnit: 8_990, vat: 19, ...lineOf(n) })),
})
const sell = (body: Json) => store.local('/v1/sales', { method: 'POST', body, headers })
const arrived = async () => {
  await store.until('an empty outbox', () => store.agent.ledger.journal.waiting === 0)
  const rows = await store.drive(store.shop.cloud.db.database.reads.selectFrom('till_sale').selectAll().execute())
  return rows.map((row) => row.sale_id).sort()
}

it('has 500 lines with names of 120 letters, codes and tags', async () => {
  const epc = (n: number) => `3034257BF7194E40${n.toString(16).toUpperCase().padStart(8, '0')}`
  const sent = saleOf(500, (n) => ({
    lineId: `line-${n}`,
    ean: '4012345678901',
    name: `Ärmelloses Kleid ${'x'.repeat(103)}`,
    epcs: [epc(n)],
  }))
  expect(sent.lines[0].name).toHaveLength(120)
  expect((await sell(sent)).status).toBe(200)
  expect(await arrived()).toEqual([sent.saleId])
})

it('shares a batch with others as far as their bytes fit', async () => {
  store.network(false)
  await store.until('offline', () => !store.agent.link.isOnline)
  const sent = [1, 2, 3, 4].map(() => saleOf(240, () => ({ name: '衣'.repeat(120) })))
  for (const each of sent) expect((await sell(each)).status).toBe(200)
  store.network(true)
  expect(await arrived()).toEqual(sent.map(({ saleId }) => saleId))
})

it('is refused if the normal form of its texts does not fit, so that no later row waits behind it', async () => {
  const grown = '\ufb2c'.repeat(40)
  expect(grown.normalize('NFC')).toHaveLength(120)
  const answer = await sell(saleOf(500, (n) => ({ name: grown, tagIds: [`${n}`.padStart(90, 'T')] })))
  expect(answer).toMatchObject({ status: 400, body: { details: [{ path: 'lines' }] } })
  expect(store.agent.ledger.journal.waiting).toBe(0)
})
