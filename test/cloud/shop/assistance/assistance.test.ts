import { raiseForEvent } from '../../../../cloud/shop/assistance/requests.ts'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { pruneRequests } from '../../../../cloud/shop/assistance/requests.ts'
import type { ProtectionEvent } from '../../../../policy/protection-events.ts'
import type { ItemStatus } from '../../../../policy/vocabulary.ts'
import type { Json } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { readQr } from '../../../support/qr.ts'
import { openShop, type Shop } from '../../../support/shop.ts'
import { encodeSgtin, splitGtin14 } from '../../../../policy/gs1/sgtin.ts'
import { enrolTestAgent } from '../../../support/test-agent.ts'

const form = (fields: Record<string, string>): RequestInit => ({
  method: 'POST',
  headers: { 'content-type': 'application/x-www-form-urlencoded' },
  body: new URLSearchParams(fields).toString(),
})

/** A tag of this product whose item is not registered. */
function sgtin(ean: string): string {
  const parts = splitGtin14(`0${ean}`, 7)
  const encoded = parts && encodeSgtin({ scheme: 'sgtin-96', filter: 1, ...parts, serial: '4711' })
  if (!encoded?.ok) throw new Error(`no SGTIN for ${ean}`)
  return encoded.hex
}

onEveryDatabase('assistance', (kind) => {
  let shop: Shop
  let zone: Json
  beforeAll(async () => {
    shop = await openShop(kind)
    zone = await shop.ok('createZone', { storeId: shop.storeId, name: 'Herren <1. Stock>' })
  })
  afterAll(() => shop.stop())

  const send = async (path: string, fields: Record<string, string>) => {
    const response = await shop.cloud.cloud.app.request(path, form(fields))
    return { status: response.status, location: response.headers.get('location') ?? '', text: await response.text() }
  }
  const ticketOf = (page: string) => /name="ticket" value="([^"]+)"/.exec(page)?.[1] ?? ''
  const requests = async (fields: Json = {}): Promise<Json[]> =>
    (await shop.ok('fetchAssistanceRequests', { storeId: shop.storeId, ...fields })).requests

  it('a zone has a QR code that opens its page', async () => {
    expect(readQr(Buffer.from(zone.imageBase64, 'base64'))).toBe(zone.url)
    expect((await shop.ok('fetchZones', { storeId: shop.storeId })).zones).toMatchObject([
      { zoneId: zone.zoneId, name: 'Herren <1. Stock>', url: zone.url },
    ])
    const page = await shop.cloud.get(new URL(zone.url).pathname)
    expect([page.status, page.headers.get('content-security-policy')?.includes("default-src 'none'")]).toEqual([
      200,
      true,
    ])
    expect(page.text).toContain('<html lang="en">')
    expect(page.text).toContain('Herren &lt;1. Stock&gt;')
    expect(page.text).not.toMatch(/<script(?! src="\/assets\/connection.js" defer)/)
    expect((await shop.cloud.get(new URL(zone.url).pathname, { 'accept-language': 'de' })).text).toContain(
      '<html lang="de">',
    )
  })

  it('shopper and staff exchange messages', async () => {
    const path = new URL(zone.url).pathname
    const ticket = ticketOf((await shop.cloud.get(path)).text)
    const sent = await send(path, { ticket, message: 'Gibt es das in L?\r\n<b>Danke</b>' })
    expect([sent.status, sent.location]).toEqual([303, `${path}/${ticket}`])
    // Sending the form again returns the same request.
    await send(path, { ticket, message: 'Gibt es das in L?' })
    const [request, ...others] = await requests()
    expect(others).toEqual([])
    expect(request).toMatchObject({
      reason: 'shopper',
      status: 'open',
      zoneId: zone.zoneId,
      zoneName: 'Herren <1. Stock>',
      messages: [{ author: 'shopper', text: 'Gibt es das in L?\n<b>Danke</b>' }],
    })
    const { requestId } = request as Json
    expect(await shop.ok('answerAssistanceRequest', { requestId, message: 'Ja, ich komme.' })).toMatchObject({
      status: 'answered',
      messages: [{}, { author: 'staff' }],
    })
    const page = await shop.cloud.get(sent.location)
    expect(page.text).toContain('Ja, ich komme.')
    expect(page.text).toContain('&lt;b&gt;Danke&lt;/b&gt;')
    expect((await send(`${path}/${ticket}`, { message: 'Danke!' })).status).toBe(303)
    expect((await requests({ status: 'open' }))[0]).toMatchObject({ requestId, messages: [{}, {}, { text: 'Danke!' }] })
    expect((await requests({ lastMessages: 2 }))[0]?.messages).toMatchObject([{ author: 'staff' }, { text: 'Danke!' }])
    expect(await requests({ requestId })).toHaveLength(1)
    expect(await requests({ requestId: 'hlp_none' })).toEqual([])
    await shop.ok('answerAssistanceRequest', { requestId, status: 'closed' })
    expect((await send(`${path}/${ticket}`, { message: 'Noch etwas' })).status).toBe(409)
    expect((await shop.cloud.get(sent.location)).text).toContain('This request has ended')
    expect((await shop.call('answerAssistanceRequest', { requestId, message: 'x' })).body).toMatchObject({
      reason: 'request_closed',
    })
    expect(await requests({ status: 'open' })).toEqual([])
  })

  it('a conversation cannot be read without its ticket or in another zone', async () => {
    const other = await shop.ok('createZone', { storeId: shop.otherStoreId, name: 'Kasse' })
    const { requestId, url } = await shop.ok('requestAssistance', { zoneId: zone.zoneId, message: 'geheim' })
    const path = new URL(url).pathname
    expect((await shop.cloud.get(path)).text).toContain('geheim')
    const ticket = path.split('/').at(-1) ?? ''
    for (const wrong of [
      `/z/${zone.zoneId}/${requestId}`,
      `/z/${zone.zoneId}/x`,
      `/z/${other.zoneId}/${ticket}`,
      `/z/zon_x/${ticket}`,
      '/z/zon_x',
    ]) {
      expect([wrong, (await shop.cloud.get(wrong)).status]).toEqual([wrong, 404])
      expect([wrong, (await send(wrong, { message: 'x' })).status]).toEqual([wrong, 404])
    }
    const dump = JSON.stringify(
      await shop.cloud.db.database.reads.selectFrom('assistance_request').selectAll().execute(),
    )
    expect(dump).not.toContain(ticket)
  })

  it('enforces its limits', async () => {
    const path = new URL(zone.url).pathname
    expect((await send(path, { message: 'x'.repeat(501) })).status).toBe(400)
    expect((await send(path, { message: 'x'.repeat(9_000) })).status).toBe(400)
    expect((await send(path, { message: 'x'.repeat(500) })).status).toBe(303)
    expect((await shop.call('requestAssistance', { zoneId: zone.zoneId, message: '   ' })).status).toBe(400)
    const { url } = await shop.ok('requestAssistance', { zoneId: zone.zoneId })
    const chat = new URL(url).pathname
    for (let n = 0; n < 50; n++) expect((await send(chat, { message: `${n}` })).status).toBe(303)
    expect((await send(chat, { message: '50' })).status).toBe(409)
    expect((await shop.cloud.get(chat)).text).toContain('This request holds no more')
    const [request] = await requests({ limit: 1 })
    expect(request?.messages.length).toBe(50)
    expect(
      (await shop.call('answerAssistanceRequest', { requestId: request?.requestId, message: 'x' })).body,
    ).toMatchObject({ reason: 'too_many_messages' })
    expect((await shop.call('answerAssistanceRequest', { requestId: request?.requestId })).status).toBe(400)
  })

  it('pages neither skip nor repeat requests', async () => {
    const all = (await requests({ limit: 100 })).map((r) => r.requestId)
    const seen: string[] = []
    for (let cursor: string | undefined; ;) {
      const page: Json = await shop.ok('fetchAssistanceRequests', {
        storeId: shop.storeId,
        limit: 2,
        ...(cursor && { cursor }),
      })
      seen.push(...page.requests.map((r: Json) => r.requestId))
      cursor = page.nextCursor
      if (!cursor) break
    }
    expect(seen).toEqual(all)
    // Clients may request 500 rows, as in all lists.
    expect((await requests({ limit: 500 })).map((r) => r.requestId)).toEqual(all)
    expect((await shop.call('fetchAssistanceRequests', { storeId: shop.storeId, limit: 501 })).status).toBe(400)
  })

  it('goods that were denied at an exit open no request, but a receipt at its barrier does', async () => {
    const { database } = shop.cloud.db
    const { storeId } = shop
    const row = database.reads.selectFrom('store').select('tenant').where('store_id', '=', storeId)
    const { tenant } = await row.executeTakeFirstOrThrow()
    const nowMs = shop.cloud.platform.clock.wall()
    const denied = {
      type: 'protection.authorization.denied' as const,
      storeId,
      reason: 'manual_assistance_required',
      protectionAction: 'authorize_exit',
      deviceId: shop.devices.exit_gate,
    }
    const raise = (event: Json) =>
      database.write((db) =>
        raiseForEvent({ db, platform: shop.cloud.platform, nowMs, tenant }, { ...denied, ...event }, nowMs),
      )
    const ofGate = async () => (await requests({ limit: 100 })).filter((r) => r.deviceId === shop.devices.exit_gate)
    await raise({ epc: '3034257BF7194E4000001A85', purchaseId: 'pur_1' })
    expect(await ofGate()).toEqual([])
    await raise({ purchaseId: 'pur_2' })
    const [unknown] = await ofGate()
    expect(unknown).toMatchObject({ reason: 'manual_assistance_required', purchaseId: 'pur_2' })
    expect([unknown?.['tag'], unknown?.['products']]).toEqual([undefined, undefined])
    await shop.ok('answerAssistanceRequest', { requestId: (await ofGate())[0]?.requestId, status: 'closed' })
    await database.write((db) => db.deleteFrom('assistance_request').where('purchase_id', '=', 'pur_2').execute())
  })

  it('a denial that needs staff opens one request for each device and item', async () => {
    const { products } = await shop.ok('fetchProducts', { storeId: shop.storeId, limit: 500 })
    const dear = products.find((p: Json) => p.price >= 200)
    const { epc } = await shop.newItem(dear)
    const other = products.find((p: Json) => p.price >= 200 && p.name !== dear.name)
    const second = await shop.newItem(other)
    const { transactionId } = await shop.buy([
      { ean: dear.ean, quantity: 1, epcs: [epc] },
      { ean: other.ean, quantity: 1, epcs: [second.epc] },
    ])
    const requestRelease = (extra: Json = {}) =>
      shop.ok('verifyProtectedItem', {
        deviceId: shop.devices.self_checkout_detacher,
        protectionAction: 'detach_hard_tag',
        epc,
        purchaseId: transactionId,
        ...extra,
      })
    expect(await requestRelease()).toMatchObject({ authorized: false, reason: 'manual_assistance_required' })
    const ofDenial = async () =>
      (await requests({ limit: 100 })).filter((r) => r.reason === 'manual_assistance_required')
    expect(await ofDenial()).toMatchObject([
      {
        status: 'open',
        deviceId: shop.devices.self_checkout_detacher,
        purchaseId: transactionId,
        tag: epc,
        products: [dear.name],
        messages: [],
      },
    ])
    await Promise.all([1, 2, 3].map((n) => requestRelease({ firmwareVersion: `${n}` })))
    expect((await ofDenial()).length).toBe(1)
    expect(await requestRelease({ epc: second.epc, firmwareVersion: 'second' })).toMatchObject({ authorized: false })
    expect((await ofDenial()).map(({ tag, products: names }) => [tag, names])).toEqual([[second.epc, [other.name]]])
    // Old events open no request. After staff closed a request, the next denial opens a new one.
    await shop.ok('answerAssistanceRequest', { requestId: (await ofDenial())[0]?.requestId, status: 'closed' })
    await requestRelease({ occurredAt: new Date(shop.cloud.platform.clock.wall() - 3_600_000).toISOString() })
    expect((await ofDenial()).map((r) => r.status)).toEqual(['closed'])
    await requestRelease({ firmwareVersion: '4' })
    expect((await ofDenial()).map((r) => r.status).sort()).toEqual(['closed', 'open'])
  })

  describe('an item on hold at a gate', () => {
    const ofGate = async () =>
      (await requests({ limit: 100 })).filter((r) => r.deviceId === shop.devices.exit_gate && r.status === 'open')
    const closeAll = async () => {
      for (const { requestId } of await ofGate())
        await shop.ok('answerAssistanceRequest', { requestId, status: 'closed' })
    }
    const held = async () => {
      const { epc } = await shop.newItem(shop.products[0])
      await shop.ok('updateItemStatus', { storeId: shop.storeId, epc, itemStatus: 'exception_hold' })
      return epc
    }
    const alarmOf = (epc: string, itemStatus: ItemStatus, at = new Date().toISOString()): ProtectionEvent => ({
      type: 'protection.exception.raised',
      eventId: `evt-${epc}-${itemStatus}`,
      occurredAt: at,
      storeId: shop.storeId,
      deviceId: shop.devices.exit_gate,
      protectionAction: 'authorize_exit',
      reason: 'gate_alarm',
      epc,
      itemStatus,
    })

    it.each([
      [
        'refused by the cloud',
        async (epc: string) =>
          void (await shop.ok('verifyProtectedItem', {
            deviceId: shop.devices.exit_gate,
            protectionAction: 'authorize_exit',
            epc,
          })),
      ],
      [
        'reported by a gate without agent',
        async (epc: string) =>
          void (await shop.ok('reportProtectionEvents', { events: [alarmOf(epc, 'exception_hold')] })),
      ],
      [
        'reported by an agent',
        async (epc: string) => {
          const agent = await enrolTestAgent(shop)
          expect((await agent.report([agent.row({ event: alarmOf(epc, 'exception_hold') })])).status).toBe(200)
        },
      ],
    ])('opens one request: %s', async (_how, happen) => {
      const epc = await held()
      await happen(epc)
      expect(await ofGate()).toMatchObject([
        { reason: 'exception_hold', status: 'open', tag: epc, products: [shop.products[0].name] },
      ])
      await closeAll()
    })

    it('names the tag and its product, as far as the store knows them', async () => {
      const [gtinTag, strangeTag] = [sgtin(shop.products[1].ean), 'E280FFFFFFFFFFFFFFFFFFFF']
      const events = [gtinTag, strangeTag].map((epc) => alarmOf(epc, 'exception_hold'))
      await shop.ok('reportProtectionEvents', { events })
      const named = (await ofGate()).map(({ tag, products }) => JSON.stringify([tag, products]))
      expect(named.toSorted()).toEqual(
        [JSON.stringify([gtinTag, [shop.products[1].name]]), JSON.stringify([strangeTag, null])].toSorted(),
      )
      await closeAll()
    })

    it('opens no request for an unpaid item or for an alarm of an hour ago', async () => {
      const epc = await held()
      const past = new Date(shop.cloud.platform.clock.wall() - 3_600_000).toISOString()
      await shop.ok('reportProtectionEvents', {
        events: [alarmOf(epc, 'sellable'), alarmOf(epc, 'exception_hold', past)],
      })
      expect(await ofGate()).toEqual([])
    })
  })

  it('publishable keys can open requests and nothing else', async () => {
    const key = await shop.cloud.key('publishable')
    expect(
      (await shop.cloud.ok(key, 'requestAssistance', { zoneId: zone.zoneId, userId: 'shopper-9' })).requestId,
    ).toMatch(/^hlp_/)
    expect((await shop.cloud.call(key, 'fetchAssistanceRequests', { storeId: shop.storeId })).status).toBe(403)
  })

  it('many requests of shoppers leave room for requests of security tags', async () => {
    const { requestId } = await shop.ok('requestAssistance', { zoneId: zone.zoneId })
    const { database } = shop.cloud.db
    const row = await database.reads
      .selectFrom('assistance_request')
      .selectAll()
      .where('request_id', '=', requestId)
      .executeTakeFirstOrThrow()
    await database.write(async (db) => {
      for (let n = 0; n < 500; n++)
        await db
          .insertInto('assistance_request')
          .values({ ...row, request_id: `hlp_${String(n).padStart(26, '0')}`, ticket_hash: `flood ${n}` })
          .execute()
    })
    expect(await shop.call('requestAssistance', { zoneId: zone.zoneId })).toMatchObject({
      status: 409,
      body: { reason: 'too_many_requests_open' },
    })
    const { products } = await shop.ok('fetchProducts', { storeId: shop.storeId, limit: 500 })
    const dear = products.find((p: Json) => p.price >= 200)
    const { epc } = await shop.newItem(dear)
    const { transactionId } = await shop.buy([{ ean: dear.ean, quantity: 1, epcs: [epc] }])
    expect(
      await shop.ok('verifyProtectedItem', {
        deviceId: shop.devices.self_checkout_detacher,
        protectionAction: 'detach_hard_tag',
        epc,
        purchaseId: transactionId,
      }),
    ).toMatchObject({ reason: 'manual_assistance_required' })
    expect((await requests({ limit: 100 })).filter((r) => r.purchaseId === transactionId)).toHaveLength(1)
    await database.write((db) => db.deleteFrom('assistance_request').where('ticket_hash', 'like', 'flood %').execute())
  })

  it('of one network, 500 in number, refuse no other visitor: the oldest of them makes room', async () => {
    const key = await shop.cloud.key('publishable')
    const { requestId } = await shop.cloud.ok(key, 'requestAssistance', { zoneId: zone.zoneId })
    const { database } = shop.cloud.db
    const rows = () => database.reads.selectFrom('assistance_request').selectAll()
    const { network, ...row } = await rows().where('request_id', '=', requestId).executeTakeFirstOrThrow()
    const oldest = `hlp_${'0'.repeat(26)}`
    const flood = (from: string) =>
      database.write(async (db) => {
        await db.deleteFrom('assistance_request').where('ticket_hash', 'like', 'flood %').execute()
        const ids = Array.from({ length: 500 }, (_, n) => `hlp_${String(n).padStart(26, '0')}`)
        for (const id of ids)
          await db
            .insertInto('assistance_request')
            .values({ ...row, request_id: id, ticket_hash: `flood ${id}`, network: from })
            .execute()
      })
    const path = new URL(zone.url).pathname
    // The list is full of requests of this visitor.
    await flood(String(network))
    expect((await shop.cloud.call(key, 'requestAssistance', { zoneId: zone.zoneId })).body).toMatchObject({
      reason: 'too_many_requests_open',
    })
    expect((await send(path, { message: 'Hilfe' })).status).toBe(503)
    // It is full of requests of another network: page and key get in.
    await flood('another network')
    expect((await send(path, { message: 'Hilfe' })).status).toBe(303)
    expect((await shop.cloud.call(key, 'requestAssistance', { zoneId: zone.zoneId })).status).toBe(200)
    const closed = await rows().where('status', '=', 'closed').where('ticket_hash', 'like', 'flood %').execute()
    expect(closed.map((each) => [each.request_id, each.network])).toEqual(expect.arrayContaining([[oldest, null]]))
    await database.write((db) => db.deleteFrom('assistance_request').where('ticket_hash', 'like', 'flood %').execute())
  })

  it('keep no network after they are closed', async () => {
    const key = await shop.cloud.key('publishable')
    const { requestId } = await shop.cloud.ok(key, 'requestAssistance', { zoneId: zone.zoneId })
    const networkOf = async () =>
      (
        await shop.cloud.db.database.reads
          .selectFrom('assistance_request')
          .select('network')
          .where('request_id', '=', requestId)
          .executeTakeFirstOrThrow()
      ).network
    expect(await networkOf()).toMatch(/^[\w-]{43}$/)
    await shop.ok('answerAssistanceRequest', { requestId, status: 'closed' })
    expect(await networkOf()).toBeNull()
  })

  it('deletes a request 30 days after its last message', async () => {
    const { database } = shop.cloud.db
    const count = (await requests({ limit: 100 })).length
    const now = shop.cloud.platform.clock.wall()
    await database.write((db) => pruneRequests(db, now - 30 * 86_400_000))
    expect((await requests({ limit: 100 })).length).toBe(count)
    await database.write((db) => pruneRequests(db, now + 86_400_000))
    expect(await requests()).toEqual([])
    expect(await database.reads.selectFrom('assistance_message').selectAll().execute()).toEqual([])
  })

  it('logs no error', () => expect(shop.cloud.errors).toEqual([]))
})

describe('the page of a zone', () => {
  it('limits requests by address', async () => {
    const shop = await openShop('sqlite', { config: { rateLimit: 50 } })
    const { url } = await shop.ok('createZone', { storeId: shop.storeId, name: 'Herren' })
    const path = new URL(url).pathname
    const statuses: number[] = []
    for (let n = 0; n < 25; n++)
      statuses.push((await shop.cloud.cloud.app.request(path, form({ message: `${n}` }))).status)
    expect(new Set(statuses.slice(0, 20))).toEqual(new Set([303]))
    expect(statuses.at(-1)).toBe(429)
    await shop.stop()
  })
})
