import { afterAll, beforeAll, expect, it } from 'vitest'
import { inFullSizeOnEveryDatabase } from '../../../support/databases.ts'
import { movablePlatform } from '../../../support/movable-platform.ts'
import { openShop, type Shop } from '../../../support/shop.ts'
import { enrolTestAgent } from '../../../support/test-agent.ts'

const DAY_MS = 86_400_000

inFullSizeOnEveryDatabase('a receipt older than 24 hours', (kind) => {
  const { platform, forward } = movablePlatform()
  let shop: Shop
  let purchaseId: string
  let token: string
  beforeAll(async () => {
    shop = await openShop(kind, { platform })
    const { transactionId } = await shop.buy([{ ean: shop.products[0].ean, quantity: 1 }])
    purchaseId = transactionId
    const qr = await shop.ok('generateReceiptQR', { purchaseId })
    token = qr.token
    forward(Date.parse(qr.expiresAt) - platform.clock.wall() - 60_000)
    expect((await shop.ok('generateReceiptQR', { purchaseId })).token).toBe(token)
    forward(60_000)
  })
  afterAll(() => shop.stop())

  it('has no QR code under either name of the operation, and the error names the next step', async () => {
    for (const operation of ['generateReceiptQR', 'generateReceiptWithQR']) {
      const { status, body } = await shop.call(operation, { purchaseId })
      expect([status, body.reason]).toEqual([409, 'receipt_expired'])
      expect(body.error).toMatch(/staff can release goods by `purchaseId`/)
    }
  })

  it('goes to agents of the purchase’s store only', async () => {
    const statuses: number[] = []
    for (const storeId of [shop.storeId, shop.otherStoreId]) {
      const agent = await enrolTestAgent(shop, storeId)
      await agent.login()
      for (const operation of ['generateReceiptQR', 'generateReceiptWithQR'])
        statuses.push((await agent.call(operation, { purchaseId })).status)
    }
    expect(statuses).toEqual([409, 409, 404, 404])
  })

  it('is found by agents of its store by the end of its number, unless two purchases have it', async () => {
    const number = purchaseId.slice(-6)
    const agents = []
    for (const storeId of [shop.storeId, shop.otherStoreId]) {
      const agent = await enrolTestAgent(shop, storeId)
      await agent.login()
      agents.push(agent)
    }
    const [own, others] = agents
    const ask = async (agent = own, text = number.toLowerCase()) => {
      const { status, body } = (await agent?.call('generateReceiptQR', { number: text })) ?? {}
      return [status, body?.reason]
    }
    expect(await ask()).toEqual([409, 'receipt_expired'])
    expect(await ask(others)).toEqual([404, undefined])
    expect(await ask(own, 'ZZZZZZ')).toEqual([404, undefined])
    expect((await ask(own, '%%%%%%'))[0]).toBe(400)
    expect((await shop.call('generateReceiptQR', { number })).status).toBe(400)
    await shop.cloud.db.database.write(async (db) => {
      const purchases = db.selectFrom('purchase').selectAll().where('purchase_id', '=', purchaseId)
      const { purchase_id: id, ...row } = await purchases.executeTakeFirstOrThrow()
      const other = `${id.slice(0, -7)}${id.at(-7) === '0' ? '1' : '0'}${number}`
      await db
        .insertInto('purchase')
        .values({ ...row, purchase_id: other, checkout_session_id: 'chk_other', cti: 'other' })
        .execute()
    })
    expect(await ask()).toEqual([409, 'number_ambiguous'])
  })

  it('can be read without a QR code', async () => {
    const { body } = await shop.cloud.get(`/api/v1/getReceiptFromToken?token=${token}`)
    expect(body).toMatchObject({ id: purchaseId, status: 'SUCCESS' })
    expect(body).not.toHaveProperty('receiptQrCode')
    for (const [language, text] of [
      ['de', 'galt 24 Stunden'],
      ['en', 'was valid for 24 hours'],
    ] as const) {
      const page = (await shop.cloud.get(`/R/${token}`, { 'accept-language': language })).text
      expect(page).toContain(text)
      expect(page).not.toContain('<img')
    }
  })

  it('staff can release its goods by purchase', async () => {
    const deviceId = shop.devices.pos_deactivator
    expect(await shop.ok('verifySecurityTagDeactivation', { purchaseId, deviceId })).toMatchObject({
      deactivationAuthorized: true,
      itemCount: 1,
    })
  })

  it('expires one day after payment', async () => {
    const { body } = await shop.cloud.get(`/api/v1/getReceiptFromToken?token=${token}`)
    expect(platform.clock.wall() - body.completedAt).toBeGreaterThanOrEqual(DAY_MS - 1_000)
    expect(platform.clock.wall() - body.completedAt).toBeLessThan(DAY_MS + 60_000)
  })
})
