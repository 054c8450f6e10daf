import { afterAll, beforeAll, expect, it } from 'vitest'
import { eventHashId } from '../../../../cloud/sales/epcis/event.ts'
import { iso } from '../../../../cloud/platform/operations/fields.ts'
import { virtualPlatform, type VirtualPlatform } from '../../../verification/simulation/virtual/virtual-platform.ts'
import type { Json } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { faultsOfDocument, faultsOfEvent } from '../../../support/epcis-rules.ts'
import { newEan, openShop, type Shop } from '../../../support/shop.ts'

onEveryDatabase('exportEpcisEvents', (kind) => {
  let shop: Shop
  let platform: VirtualPlatform
  let bought: Json
  let item: { epc: string }
  const SGTIN = '3034257BF7194E4000001A85'
  const ITEM = 'https://id.gs1.org/01/80614141123458/21/6789'

  const exported = async (request: Json = {}): Promise<Json> =>
    shop.ok('exportEpcisEvents', { storeId: shop.storeId, format: 'json-ld', ...request })
  const eventsOf = async (request: Json = {}): Promise<Json[]> => (await exported(request)).epcisBody.eventList
  const setStatus = (epc: string, itemStatus: string) =>
    shop.ok('updateItemStatus', { storeId: shop.storeId, epc, itemStatus })

  beforeAll(async () => {
    platform = virtualPlatform({ startMs: Date.parse('2026-11-20T09:00:00Z') })
    shop = await openShop(kind, { platform })
    const water = await shop.ok('insertProduct', {
      storeId: shop.storeId,
      ean: newEan(),
      name: 'Wasser',
      price: 1,
      vat: 7,
      deposit: 0.25,
      tagged: false,
    })
    await shop.ok('insertProduct', { storeId: shop.storeId, ean: '2957770000007', name: 'Äpfel', price: 3.49, vat: 7 })
    const [shirt] = shop.products
    item = await shop.newItem(shirt)
    await platform.advance(60_000)
    bought = await shop.buy([
      { ean: shirt.ean, quantity: 2, epcs: [item.epc] },
      { ean: water.ean, quantity: 6 },
      { ean: water.ean, quantity: 2, lot: 'L/1' },
      { ean: '2957776004085', quantity: 1 },
    ])
    await platform.advance(60_000)
    const detacher = shop.devices.self_checkout_detacher
    const grant = await shop.ok('verifyProtectedItem', {
      deviceId: detacher,
      protectionAction: 'detach_hard_tag',
      epc: item.epc,
      purchaseId: bought.transactionId,
    })
    await shop.ok('redeemProtectionAuthorization', {
      authorizationToken: grant.authorizationToken,
      deviceId: detacher,
      redemptionId: 'r1',
      outcome: 'confirmed',
    })
    const stolen = await shop.newItem(shirt)
    await shop.ok('verifyProtectedItem', {
      deviceId: shop.devices.exit_gate,
      protectionAction: 'authorize_exit',
      epc: stolen.epc,
      gateId: 'gate north/1',
    })
    for (const status of ['transfer_in_transit', 'sellable', 'exception_hold', 'sellable'])
      await setStatus(stolen.epc, status)
    await shop.ok('reportProtectionEvents', {
      events: [
        {
          type: 'protection.action.failed',
          eventId: 'evt-4711',
          occurredAt: '2026-11-20T10:00:00+01:00',
          storeId: shop.storeId,
          deviceId: detacher,
          laneId: 'lane-2',
          protectionAction: 'detach_hard_tag',
          epc: SGTIN,
          reason: 'no_answer',
        },
        {
          type: 'protection.action.completed',
          eventId: 'evt-4712',
          occurredAt: '2026-11-20T09:00:01-08:00',
          storeId: shop.storeId,
          protectionAction: 'authorize_exit',
          tagId: 'AM 7/3',
          reason: 'Wörter von sonstwo',
        },
        {
          type: 'protection.exception.raised',
          eventId: 'evt-4713',
          occurredAt: '2026-11-20T09:00:00Z',
          storeId: shop.storeId,
          reason: 'double_redeem',
        },
      ],
    })
  })
  afterAll(() => shop.stop())

  it('is a valid document, and contains the same events with the same hashes in each export', async () => {
    const answer = await shop.call('exportEpcisEvents', { storeId: shop.storeId, format: 'json-ld' })
    expect(await exported({ format: 'json' })).toEqual({ success: true, ...answer.body })
    expect(answer.headers.get('content-type')).toBe('application/ld+json')
    expect(faultsOfDocument(answer.body)).toEqual([])
    const { eventList } = answer.body.epcisBody
    expect(eventList.length).toBeGreaterThan(8)
    for (const event of eventList) expect(event.eventID).toBe(eventHashId(event))
    await platform.advance(60_000)
    expect(await eventsOf()).toEqual(eventList)
    expect(eventList.map((event: Json) => event.recordTime)).toEqual(
      eventList.map((event: Json) => event.recordTime).sort(),
    )
    // Checks that the schema can be violated at all.
    expect(
      faultsOfEvent({
        type: 'ObjectEvent',
        action: 'LOOK',
        eventTime: 'x',
        eventTimeZoneOffset: '+15:00',
        bizStep: 'selling',
        readPoint: { id: 'no uri' },
        more: 1,
      }).length,
    ).toBe(7)
  })

  it('contains a purchase: named items, other goods by product, weight in kilograms, no deposits', async () => {
    const [sold, ...others] = await eventsOf({ type: 'checkout.completed', purchaseId: bought.transactionId })
    expect(others).toEqual([])
    expect(sold).toMatchObject({
      action: 'OBSERVE',
      bizStep: 'retail_selling',
      disposition: 'retail_sold',
      eventTime: '2026-11-20T09:01:00.000Z',
      eventTimeZoneOffset: '+00:00',
    })
    expect(sold.epcList).toEqual([`urn:untag:epc:${item.epc}`])
    const quantities = sold.quantityList.map((element: Json) => [
      element.epcClass.slice(-14),
      element.quantity,
      element.uom,
    ])
    expect(quantities).toEqual([
      [`0${shop.products[0].ean}`, 1, undefined],
      [expect.any(String), 6, undefined],
      // The lot L/1 of the water, as canonical Digital Link.
      [expect.stringMatching(/\/10\/L%2F1$/), 2, undefined],
      ['02957770000007', 0.408, 'KGM'],
    ])
    expect(sold.bizTransactionList).toEqual([
      { type: 'inv', bizTransaction: `urn:untag:purchase:${bought.transactionId}` },
    ])
  })

  it('contains each status change of an item once', async () => {
    const moves = await eventsOf({ type: 'item.status_changed' })
    expect(moves.map((event) => [event.action, event.bizStep, event.disposition])).toEqual([
      ['ADD', 'commissioning', 'sellable_accessible'],
      ['ADD', 'commissioning', 'sellable_accessible'],
      ['OBSERVE', 'shipping', 'in_transit'],
      ['OBSERVE', 'receiving', 'sellable_accessible'],
      ['OBSERVE', 'holding', 'non_sellable_other'],
      ['OBSERVE', 'inspecting', 'sellable_accessible'],
    ])
  })

  it('contains actions on tags and alarms', async () => {
    const [detached] = await eventsOf({ type: 'protection.action.completed', purchaseId: bought.transactionId })
    expect(detached).toMatchObject({
      epcList: [`urn:untag:epc:${item.epc}`],
      bizStep: 'removing',
      disposition: 'retail_sold',
      readPoint: { id: expect.stringContaining('urn:untag:place:') },
      'untag:protectionAction': 'detach_hard_tag',
    })
    const [failed] = await eventsOf({ type: 'protection.action.failed' })
    expect(failed).toMatchObject({
      epcList: [ITEM],
      eventTime: '2026-11-20T09:00:00.000Z',
      eventTimeZoneOffset: '+01:00',
      readPoint: { id: `urn:untag:place:${shop.storeId}:lane-2` },
    })
    expect(failed.sensorElementList[0].sensorReport[0]).toMatchObject({
      exception: 'ERROR_CONDITION',
      stringValue: 'no_answer',
    })
    const [alarm, ...more] = await eventsOf({
      deviceId: shop.devices.exit_gate,
      type: 'protection.authorization.denied',
    })
    expect(more).toEqual([])
    expect(alarm).toMatchObject({
      bizStep: 'entering_exiting',
      disposition: 'unknown',
      'untag:reason': 'item_not_paid',
      'untag:itemStatus': 'sellable',
    })
    expect(alarm.sensorElementList[0].sensorReport[0].exception).toBe('ALARM_CONDITION')
    expect(alarm.readPoint.id).toBe(`urn:untag:place:${shop.storeId}:gate%20north%2F1`)
    // Requests and grants have no EPCIS event.
    expect(await eventsOf({ type: 'protection.authorization.granted' })).toEqual([])
    const passed = (await eventsOf({ type: 'protection.action.completed' })).find(
      (event) => event.epcList?.[0] === 'urn:untag:tag:am%207%2F3',
    )
    expect(passed).toMatchObject({
      bizStep: 'entering_exiting',
      disposition: 'retail_sold',
      eventTimeZoneOffset: '-08:00',
    })
    expect(JSON.stringify(passed)).not.toContain('sonstwo')
  })

  it('pages of any size neither skip nor repeat events, also as lines', async () => {
    const all = (await eventsOf()).map((event) => event.eventID)
    for (const limit of [1, 2, 3, all.length, all.length + 1]) {
      const ids: string[] = []
      for (let cursor: string | undefined, pages = 0; pages === 0 || cursor !== undefined; pages++) {
        const page = await exported({ limit, ...(cursor && { cursor }) })
        expect(faultsOfDocument(page)).toEqual([])
        ids.push(...page.epcisBody.eventList.map((event: Json) => event.eventID))
        cursor = page['untag:nextCursor']
      }
      expect(ids).toEqual(all)
    }
    const lines = async (request: Json) => {
      const { text, headers } = await shop.call('exportEpcisEvents', {
        storeId: shop.storeId,
        format: 'ndjson',
        ...request,
      })
      expect(headers.get('content-type')).toBe('application/x-ndjson')
      return text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as Json)
    }
    const whole = await lines({})
    expect(whole.map((event) => event.eventID)).toEqual(all)
    for (const event of whole) expect([faultsOfEvent(event), event['@context'].length]).toEqual([[], 2])
    const [first, next] = await lines({ limit: 1 })
    expect(first?.eventID).toBe(all[0])
    expect((await lines({ cursor: next?.['untag:nextCursor'] })).map((event) => event.eventID)).toEqual(all.slice(1))
  })

  it('starts at `since`, and may be empty', async () => {
    const since = '2026-11-20T09:01:00Z'
    const later = await eventsOf({ since })
    expect(later.length).toBeGreaterThan(0)
    expect(later).toEqual((await eventsOf()).filter((event) => Date.parse(event.recordTime) >= Date.parse(since)))
    expect((await eventsOf({ purchaseId: 'pur_nobody' })).length).toBe(0)
    expect((await eventsOf({ since: '2027-01-01T00:00:00Z' })).length).toBe(0)
    expect((await shop.call('exportEpcisEvents', { storeId: 'st_nobody' })).status).toBe(404)
  })

  it('rejects a cursor that it did not write', async () => {
    const texts = [
      'x',
      '1/item/abc.zz',
      '1/item/abc',
      '1/item/abc.',
      `1/item/abc.${'9'.repeat(30)}`,
      '1/other/a',
      '1/item/',
    ]
    for (const text of texts)
      expect([
        text,
        await shop.call('exportEpcisEvents', {
          storeId: shop.storeId,
          cursor: Buffer.from(text).toString('base64url'),
        }),
      ]).toMatchObject([text, { status: 400, body: { error: expect.stringContaining('cursor') } }])
  })

  it('names a store and its places by its GLN', async () => {
    await shop.ok('updateStore', { storeId: shop.storeId, gln: '4012345000009' })
    expect((await shop.call('updateStore', { storeId: shop.storeId, gln: '4012345000008' })).status).toBe(400)
    const events = await eventsOf()
    expect(faultsOfDocument(await exported())).toEqual([])
    expect(new Set(events.map((event) => event.bizLocation.id))).toEqual(
      new Set(['https://id.gs1.org/414/4012345000009']),
    )
    expect(events.find((event) => event['untag:eventId'] === 'urn:untag:event:evt-4711')?.readPoint.id).toBe(
      'https://id.gs1.org/414/4012345000009/254/lane-2',
    )
    expect(events.find((event) => event.bizStep === 'retail_selling')?.bizTransactionList[0].bizTransaction).toBe(
      `urn:epcglobal:cbv:bt:4012345000009:${bought.transactionId}`,
    )
    await shop.ok('updateStore', { storeId: shop.storeId, gln: null })
  })

  it('reads only as fast as the client consumes the response', async () => {
    const { database } = shop.cloud.db
    const nowMs = platform.clock.wall()
    const rows = Array.from({ length: 1_000 }, (_, i) => {
      const event = {
        type: 'protection.action.completed',
        eventId: `many-${String(i).padStart(4, '0')}`,
        occurredAt: iso(nowMs),
        processedAt: iso(nowMs),
        storeId: shop.otherStoreId,
        protectionAction: 'authorize_exit',
      }
      return {
        event_id: event.eventId,
        tenant: '',
        store_id: shop.otherStoreId,
        type: event.type,
        device_id: null,
        purchase_id: null,
        occurred_ms: nowMs,
        processed_ms: nowMs,
        body: JSON.stringify(event),
        position: 1,
      }
    })
    for (let i = 0; i < rows.length; i += 100)
      await database.write((db) =>
        db
          .insertInto('protection_event')
          .values(rows.slice(i, i + 100))
          .execute(),
      )
    expect((await eventsOf({ storeId: shop.otherStoreId, type: 'protection.action.completed' })).length).toBe(1_000)
    const response = await shop.cloud.cloud.app.request('/api/v1/exportEpcisEvents', {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${shop.key}` },
      body: JSON.stringify({ storeId: shop.otherStoreId }),
    })
    const reader = (response.body as ReadableStream<Uint8Array>).getReader()
    await reader.read()
    await reader.cancel()
    expect(shop.cloud.errors).toEqual([])
  })
})
