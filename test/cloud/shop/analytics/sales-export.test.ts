import { newId } from '../../../../policy/ids.ts'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { addDays } from '../../../../cloud/shop/analytics/store-days.ts'
import { csvCell } from '../../../../cloud/shop/analytics/export-operations.ts'
import type { Json } from '../../../support/cloud.ts'
import { inFullSizeOnEveryDatabase } from '../../../support/databases.ts'
import { openPrimeShop, type PrimeShop } from '../../../support/prime-shop.ts'

const DAY = 86_400_000

describe('cells of the export', () => {
  it.each(['=1+1', '+49', '-2', '@SUM(A1)', '\t=1', '\r=1', ' =1', '=HYPERLINK("http://x","y")', '＝1+1', '＠x'])(
    '%j is not a formula',
    (text) => {
      expect(csvCell(text).replace(/^"/, '')).toMatch(/^'/)
    },
  )
  it.each([';', '\t', '\n'])(
    'begin no formula after %j, where a spreadsheet of another country begins a cell',
    (separator) => {
      expect(csvCell(`Milk${separator} =1+1`)).toBe(`"Milk${separator}' =1+1"`)
      expect(csvCell(`Milk${separator}1+1`)).toBe(`"Milk${separator}1+1"`)
    },
  )
  it('are parsed to their original values', () => {
    expect([
      csvCell('Hemd, blau'),
      csvCell('10" Teller'),
      csvCell('a\nb'),
      csvCell(5),
      csvCell(undefined),
      csvCell('Äpfel'),
    ]).toEqual(['"Hemd, blau"', '"10"" Teller"', '"a\nb"', '5', '', '"Äpfel"'])
  })
})

inFullSizeOnEveryDatabase('exportSalesData', (kind) => {
  let shop: PrimeShop
  beforeAll(async () => {
    shop = await openPrimeShop(kind)
  })
  afterAll(() => shop.stop())

  it('exports all paid purchases page by page as JSON and CSV', async () => {
    const { storeId } = shop
    shop.forward(5 * DAY)
    const day = shop.today()
    const { sessionId } = await shop.ok('checkIn', { storeId })
    const bought: string[] = []
    for (const name of ['=cmd|"/c calc"!A1', 'Hemd']) {
      const { transactionId } = await shop.ok('startCheckout', {
        sessionId,
        items: [{ name, priceUnit: 100, quantity: 2, vat: 19 }],
      })
      await shop.ok('completeTestCheckout', { transactionId })
      bought.push(transactionId)
    }
    await shop.ok('markPurchaseCancelled', { purchaseId: bought[1] })
    bought.push(...(await copies(bought[1] ?? '', 228)))
    const to = shop.today()
    const all = await shop.ok('exportSalesData', { from: day, to, storeId })
    expect([all.count, new Set(all.sales.map((s: Json) => s.transactionId))]).toEqual([230, new Set(bought)])
    expect(all.sales.find((s: Json) => s.transactionId === bought[1]).status).toBe('CANCELLED')
    const csv = await shop.call('exportSalesData', { from: day, to, format: 'csv' })
    expect(csv.headers.get('content-type')).toContain('text/csv')
    const rows = csv.text.trimEnd().split('\r\n')
    expect(rows.length).toBe(231)
    expect(rows[0]).toBe(
      'transactionId,storeId,completedAt,status,currency,itemLineId,ean,name,quantity,vat,priceUnit,listPriceUnit,priceReason,totalCent,depositOf,refundedCent',
    )
    expect(rows.find((r) => r.startsWith(bought[0] ?? ''))).toMatch(/,"'=cmd\|""\/c calc""!A1",2,19,100,,,200,,0$/)
    expect((await shop.ok('exportSalesData', { from: addDays(to, 1), to: addDays(to, 2) })).sales).toEqual([])
    expect((await shop.call('exportSalesData', { from: to, to: addDays(to, -1) })).status).toBe(400)
    expect((await shop.call('exportSalesData', { from: day, to, storeId: 'st_x' })).status).toBe(404)
  })

  it('shows the refunded amount of each line', async () => {
    const { storeId } = shop
    shop.nextDay()
    const { sessionId } = await shop.ok('checkIn', { storeId })
    const items = [
      { name: 'Hemd', priceUnit: 5_995, quantity: 2, vat: 19 },
      { name: 'Schal', priceUnit: 8_990, quantity: 1, vat: 19 },
      { name: 'Tee', priceUnit: 1_000, quantity: 1, vat: 7 },
    ]
    const buy = async () => {
      const { transactionId } = await shop.ok('startCheckout', { sessionId, items })
      return shop.ok('completeTestCheckout', { transactionId })
    }
    const sale = async (transactionId: string) => {
      const { sales } = await shop.ok('exportSalesData', { from: shop.today(), to: shop.today(), storeId })
      const found = sales.find((each: Json) => each.transactionId === transactionId)
      return [found.totalCent, found.refundedCent, ...found.items.map((item: Json) => item.refundedCent)]
    }
    const named = await buy()
    await shop.ok('refundPayment', {
      transactionId: named.transactionId,
      lines: [{ itemLineId: named.items[1].itemLineId }],
    })
    expect(await sale(named.transactionId)).toEqual([21_980, 8_990, 0, 8_990, 0])
    // An amount is split over the lines; a line that is named later is still refunded as a whole.
    await shop.ok('refundPayment', { transactionId: named.transactionId, amount: 12.99 })
    expect(await sale(named.transactionId)).toEqual([21_980, 10_289, 1_199, 8_990, 100])
    const csv = await shop.call('exportSalesData', { from: shop.today(), to: shop.today(), storeId, format: 'csv' })
    expect(
      csv.text
        .split('\r\n')
        .filter((row) => row.startsWith(named.transactionId))
        .map((row) => row.split(',').at(-1)),
    ).toEqual(['1199', '8990', '100'])
    const pieces = await buy()
    const one = { itemLineId: pieces.items[0].itemLineId, quantity: 1 }
    // One of two shirts and the tea, whose rates differ.
    await shop.ok('refundPayment', {
      transactionId: pieces.transactionId,
      lines: [one, { itemLineId: pieces.items[2].itemLineId }],
    })
    expect(await sale(pieces.transactionId)).toEqual([21_980, 6_995, 5_995, 0, 1_000])
    await shop.ok('refundPayment', {
      transactionId: pieces.transactionId,
      lines: [one, { itemLineId: pieces.items[1].itemLineId }],
    })
    expect(await sale(pieces.transactionId)).toEqual([21_980, 21_980, 11_990, 8_990, 1_000])
    const whole = await buy()
    await shop.ok('refundPayment', { transactionId: whole.transactionId, amount: 10 })
    await shop.ok('refundPayment', {
      transactionId: whole.transactionId,
      lines: [{ itemLineId: whole.items[0].itemLineId }],
    })
    expect((await sale(whole.transactionId)).slice(1, 3)).toEqual([12_990, 11_990])
    await shop.ok('markPurchaseCancelled', { purchaseId: whole.transactionId })
    expect(await sale(whole.transactionId)).toEqual([21_980, 21_980, 11_990, 8_990, 1_000])
  })

  /** Copies a purchase many times, some in the same millisecond, and its line `lines` times in each. */
  async function copies(purchaseId: string, count: number, lines = 1): Promise<string[]> {
    return shop.cloud.db.database.write(async (db) => {
      const purchase = await db
        .selectFrom('purchase')
        .selectAll()
        .where('purchase_id', '=', purchaseId)
        .executeTakeFirstOrThrow()
      const line = await db
        .selectFrom('purchase_line')
        .selectAll()
        .where('purchase_id', '=', purchaseId)
        .executeTakeFirstOrThrow()
      const [prefix = ''] = purchaseId.split('_')
      const ids = Array.from({ length: count }, () => newId(prefix, shop.cloud.platform))
      for (const [n, id] of ids.entries()) {
        await db
          .insertInto('purchase')
          .values({
            ...purchase,
            purchase_id: id,
            checkout_session_id: id,
            cti: null,
            completed_ms: (purchase.completed_ms ?? 0) + Math.floor(n / 50),
          })
          .execute()
        for (let no = 0; no < lines; no++)
          await db
            .insertInto('purchase_line')
            .values({ ...line, purchase_id: id, line_no: no, line_id: `l${no}${id}` })
            .execute()
      }
      return ids
    })
  }

  it('and the purchase history read pages by lines, too, and leave nothing out', async () => {
    const { storeId } = shop
    shop.forward(5 * DAY)
    const { sessionId } = await shop.ok('checkIn', { storeId })
    const { transactionId } = await shop.ok('startCheckout', {
      sessionId,
      items: [{ name: 'Knopf', priceUnit: 10, quantity: 1, vat: 19 }],
    })
    await shop.ok('completeTestCheckout', { transactionId })
    const bought = new Set([transactionId, ...(await copies(transactionId, 6, 500))])
    const listed: Json[] = []
    for (let cursor: string | undefined; ;) {
      const page = await shop.ok('fetchPurchaseHistory', {
        storeId,
        day: shop.today(),
        limit: 100,
        ...(cursor !== undefined && { cursor }),
      })
      const lines = page.purchases.flatMap(({ items }: Json) => items)
      expect(lines.length).toBeLessThanOrEqual(2_000)
      listed.push(...page.purchases)
      cursor = page.nextCursor
      if (cursor === undefined) break
    }
    expect(listed.map((purchase) => purchase.transactionId).toSorted()).toEqual([...bought].toSorted())
    const { sales } = await shop.ok('exportSalesData', { from: shop.today(), to: shop.today(), storeId })
    expect(sales.map((sale: Json) => [sale.transactionId, sale.items.length]).toSorted()).toEqual(
      [...bought].map((id) => [id, id === transactionId ? 1 : 500]).toSorted(),
    )
  })

  it('reads pages only as fast as the client consumes them, and gives each account a share of the streams', async () => {
    const { reads } = shop.cloud.db.database
    const { performStream } = await import('../../../../cloud/platform/operations/perform.ts')
    const { OPERATION_TABLE } = await import('../../../../cloud/service/operation-table.ts')
    const operation = OPERATION_TABLE.get('exportSalesData')
    const store = await reads
      .selectFrom('store')
      .selectAll()
      .where('store_id', '=', shop.storeId)
      .executeTakeFirstOrThrow()
    const [accountId = ''] = store.tenant.split('.')
    const caller = {
      kind: 'secret',
      keyId: 'k',
      accountId,
      mode: 'test',
      tenant: `${accountId}.test`,
      storeIds: null,
      package: 'PRIME',
    } as const
    let looks = 0
    const { database } = shop.cloud.db
    const counting = {
      ...database,
      get reads() {
        looks++
        return database.reads
      },
    }
    if (!operation) throw new Error('no such operation')
    const request = {
      operation,
      caller,
      input: { from: '2026-01-01', to: '2099-01-01', storeId: shop.storeId, format: 'csv' },
      isLegacyForm: false,
      idempotencyKey: undefined,
      requestId: 'r',
    }
    const services = { ...shop.cloud.cloud.services, findCaller: async () => caller }
    const { chunks, close } = await performStream(request, counting, services)
    const parts = (chunks as AsyncGenerator<string>)[Symbol.asyncIterator]()
    // Each read of a page also reads the rights of the caller.
    const first = looks
    await parts.next()
    expect(looks).toBe(first)
    await parts.next()
    expect(looks).toBe(first + 2)
    await parts.next()
    expect(looks).toBe(first + 4)
    await parts.return(undefined)
    const others = await Promise.all([1, 2, 3].map(() => performStream(request, counting, services)))
    await expect(performStream(request, counting, services)).rejects.toThrow('too many exports are being sent')
    const other = { ...caller, accountId: 'acc_other' }
    const servicesOfOther = { ...services, findCaller: async () => other }
    others.push(await performStream({ ...request, caller: other }, counting, servicesOfOther))
    close()
    others.push(await performStream(request, counting, services))
    for (const stream of others) stream.close()
  })

  it('logs no error', () => {
    expect(shop.cloud.errors).toEqual([])
  })
})
