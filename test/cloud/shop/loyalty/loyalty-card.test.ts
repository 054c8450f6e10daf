import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Json } from '../../../support/cloud.ts'
import { inFullSizeOnEveryDatabase } from '../../../support/databases.ts'
import { readQr } from '../../../support/qr.ts'
import { openShop, type Shop } from '../../../support/shop.ts'

inFullSizeOnEveryDatabase('a loyalty card', (kind) => {
  let shop: Shop
  let programId: string
  let users = 0
  const newUser = () => `member-${++users}`

  beforeAll(async () => {
    shop = await openShop(kind)
    programId = await make({
      type: 'stamps',
      rewards: [
        { name: 'Ein Keks', cost: 2 },
        { name: 'Ein <b>Kaffee</b>', cost: 10 },
      ],
      tiers: [{ name: 'Stammgast', threshold: 3 }],
    })
  })
  afterAll(() => shop.stop())

  const make = async (fields: Json): Promise<string> =>
    (await shop.ok('createLoyaltyProgram', { storeId: shop.storeId, name: 'Stempelkarte', ...fields })).programId
  const issue = (userId: string, fields: Json = {}) => shop.ok('issueLoyaltyCard', { programId, userId, ...fields })
  const page = (path: string) => shop.cloud.get(path, { 'accept-language': 'en' })

  it('enrols the customer once, and is the same at every call', async () => {
    const userId = newUser()
    const first = await issue(userId)
    const again = await issue(userId)
    expect([first.enrolled, again.enrolled]).toEqual([true, false])
    expect(again).toMatchObject({ cardCode: first.cardCode, url: first.url, userId })
    expect(first.cardCode).toMatch(/^[A-Z2-7]{24}$/)
    expect(first.url).toBe(`HTTPS://SHOP.EXAMPLE/L/${first.cardCode}`)
    expect(readQr(Buffer.from(first.imageBase64, 'base64'))).toBe(first.url)
  })

  it('shows balance, tier, next reward and rewards, and escapes them', async () => {
    const { cardCode } = await issue(newUser())
    await shop.ok('addLoyaltyPoints', { programId, cardCode, amount: 3 })
    for (const path of [`/L/${cardCode}`, `/l/${cardCode.toLowerCase()}`]) {
      const { status, text } = await page(path)
      expect(status).toBe(200)
      for (const part of ['Stempelkarte', '3 stamps', 'Stammgast', '7 stamps until', 'You have enough', '&lt;b&gt;'])
        expect(text).toContain(part)
      expect(text).not.toContain('member-')
    }
  })

  it('shows cashback as money, and that a program has ended', async () => {
    const cashback = await make({ type: 'cashback' })
    const { cardCode } = await shop.ok('issueLoyaltyCard', { programId: cashback, userId: newUser() })
    await shop.ok('addLoyaltyPoints', { programId: cashback, cardCode, amount: 2.5 })
    await shop.ok('updateLoyaltyProgram', { programId: cashback, isActive: false })
    const { text } = await page(`/L/${cardCode}`)
    expect(text).toContain('€2.50 cashback')
    expect(text).toContain('This program has ended')
    const refused = await shop.call('issueLoyaltyCard', { programId: cashback, userId: newUser() })
    expect([refused.status, refused.body.reason]).toEqual([409, 'program_inactive'])
  })

  it('names the customer to the till: by code, by address, and as keyboards of scanners mangle it', async () => {
    const userId = newUser()
    const { cardCode, url } = await issue(userId)
    for (const text of [cardCode, url, url.toLowerCase().replaceAll(':', 'ö').replaceAll('/', '-')])
      expect(await shop.ok('addLoyaltyPoints', { programId, cardCode: text, amount: 1 })).toMatchObject({ userId })
    expect(await shop.ok('redeemLoyaltyPoints', { programId, cardCode: url, amount: 2 })).toMatchObject({
      userId,
      newBalance: 1,
    })
  })

  it('is refused if it is unknown, of another program, or sent beside a userId', async () => {
    const { cardCode } = await issue(newUser())
    const other = await make({ type: 'stamps' })
    const add = async (fields: Json) => {
      const { status, body } = await shop.call('addLoyaltyPoints', { programId, amount: 1, ...fields })
      return [status, body.errors?.[0]?.path ?? body.path ?? body.code]
    }
    expect((await add({ cardCode: 'A'.repeat(24) }))[0]).toBe(404)
    expect((await add({ cardCode: 'x' }))[0]).toBe(404)
    expect((await add({ programId: other, cardCode }))[0]).toBe(404)
    expect((await add({ cardCode, userId: 'member-1' }))[0]).toBe(400)
    expect((await add({}))[0]).toBe(400)
    expect((await page('/L/UNKNOWN')).status).toBe(404)
    expect((await page(`/L/${'A'.repeat(24)}`)).status).toBe(404)
  })

  it('can be renewed: the old code ends, and the database holds no code', async () => {
    const userId = newUser()
    const first = await issue(userId)
    const renewed = await issue(userId, { renew: true })
    expect(renewed.cardCode).not.toBe(first.cardCode)
    expect((await page(`/L/${first.cardCode}`)).status).toBe(404)
    expect((await page(`/L/${renewed.cardCode}`)).status).toBe(200)
    expect((await issue(userId)).cardCode).toBe(renewed.cardCode)
    const rows = await shop.cloud.db.database.reads.selectFrom('loyalty_member').selectAll().execute()
    expect(JSON.stringify(rows)).not.toContain(renewed.cardCode)
  })

  it('ends when the data of the customer are erased', async () => {
    const userId = newUser()
    const { cardCode } = await issue(userId)
    await shop.ok('eraseCustomerData', { userId })
    expect((await page(`/L/${cardCode}`)).status).toBe(404)
  })
})
