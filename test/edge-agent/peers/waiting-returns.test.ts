import { expect, it } from 'vitest'
import { saleKeyOf, type TillSale } from '../../../policy/till-sale.ts'
import { lanStore } from '../../support/lan-store.ts'
import { lanTills } from '../../support/lan-tills.ts'
import { until } from '../../support/receiver.ts'

const s = lanStore()
const { openTills, post, sale, statusAt, becomes } = lanTills(s)

it.each([
  ['its code', () => ({ code: 'code-of-the-sale' })],
  ['its number', (saleId: string) => ({ saleId })],
  ['one of its lines', (saleId: string) => ({ saleId, lines: [{ lineId: 'a', quantity: 1 }] })],
])('a return by %s ends a sale of which this agent hears later', async (_, named) => {
  const [epc = ''] = await openTills(1)
  const sold = { ...sale(epc), receiptCodes: ['code-of-the-sale'] }
  Object.assign(sold.lines[0] ?? {}, { lineId: 'a' })
  s.onLan = () => 'cut'
  await post(s.home, 'sales', sold)
  expect(await post(s.other, 'returns', { returnId: 'early', ...named(sold.saleId) })).toMatchObject({ waiting: true })
  expect(statusAt(s.home, epc)).toBe('paid')
  s.onLan = () => 'pass'
  await becomes(s.home, epc, 'returned')
  const saleKey = saleKeyOf(s.shop.storeId, sold as TillSale)
  await until('the notice', async () => s.other.agent.ledger.till.tag(`S${saleKey}`) !== undefined)
  expect(statusAt(s.other, epc)).not.toBe('paid')
  // The next sale of the goods is another one.
  await post(s.home, 'sales', { ...sale(epc), receiptCodes: ['code-of-the-next'] })
  await becomes(s.other, epc, 'paid')
})
