import { expect, it } from 'vitest'
import { saleKeyOf, type TillSale } from '../../../policy/till-sale.ts'
import type { Json } from '../../support/cloud.ts'
import { lanStore } from '../../support/lan-store.ts'
import { lanTills } from '../../support/lan-tills.ts'
import { until } from '../../support/receiver.ts'

const s = lanStore()
const { openTills, post, sale, becomes } = lanTills(s)

it.each([
  ['here', 'here'],
  ['here', 'there'],
  ['there', 'here'],
  ['there', 'there'],
])('goods that were sold %s and exchanged here are paid again when the exchange is voided %s', async (sold, voided) => {
  const node = (where: string) => (where === 'here' ? s.home : s.other)
  const [former = '', next = ''] = await openTills(2)
  const first = sale(former)
  await post(node(sold), 'sales', first)
  for (const each of [s.home, s.other]) await becomes(each, former, 'paid')
  const exchange = sale(former, next)
  ;(exchange.lines[0] as Json)['quantity'] = -1
  await post(s.home, 'sales', exchange)
  for (const each of [s.home, s.other]) {
    await becomes(each, former, 'returned')
    await becomes(each, next, 'paid')
  }
  // The agent that recorded the first sale has told that nothing is left of it.
  const end = `R${saleKeyOf(s.shop.storeId, first as TillSale)}`
  await until('its end', async () => s.home.agent.ledger.till.tag(end) !== undefined)
  await post(node(voided), 'sales/void', { saleId: exchange.saleId })
  for (const each of [s.home, s.other]) {
    await becomes(each, next, 'cancelled')
    await becomes(each, former, 'paid')
  }
  // What is paid may come back at each of them.
  await post(node(voided), 'returns', { returnId: `b${exchange.saleId}`, epcs: [former] })
  for (const each of [s.home, s.other]) await becomes(each, former, 'returned')
  expect(s.home.agent.ledger.till.tag(s.home.agent.items.keysOf('epc', former)[0] ?? '')?.status).toBe('returned')
})
