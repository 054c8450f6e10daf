import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Json } from '../../support/cloud.ts'
import { onEveryDatabase } from '../../support/databases.ts'
import { openShop, type Shop } from '../../support/shop.ts'
import { enrolTestAgent } from '../../support/test-agent.ts'

onEveryDatabase('exceptions', (kind) => {
  let shop: Shop
  beforeAll(async () => {
    shop = await openShop(kind)
  })
  afterAll(() => shop.stop())

  const open = async (filter: Json = {}) =>
    (await shop.ok('fetchExceptions', { storeId: shop.storeId, ...filter })).exceptions as Json[]
  const event = (eventId: string, fields: Json): Json => ({
    type: 'protection.exception.raised',
    eventId,
    occurredAt: new Date().toISOString(),
    storeId: shop.storeId,
    deviceId: shop.devices.exit_gate,
    ...fields,
  })

  it('fetchExceptions lists exceptions of cloud, agents and devices, counted by kind and subject', async () => {
    const agent = await enrolTestAgent(shop)
    await agent.report([
      agent.row({ evidence: { kind: 'outcome', redemptionId: 'red-nobody', outcome: 'confirmed' } }),
      agent.row({ event: event('evt-1', { reason: 'gate_alarm', epc: 'E2AA', detail: 'siren: not_paid' }) }),
      agent.row({ event: event('evt-2', { reason: 'gate_alarm', epc: 'E2AA' }) }),
      agent.row({ event: event('evt-3', { reason: 'gate_alarm', epc: 'E2BB' }) }),
    ])
    const reported = [event('evt-4', { reason: 'tray_open' })]
    await shop.ok('reportProtectionEvents', { events: reported })
    await shop.ok('reportProtectionEvents', { events: reported })
    const all = await open()
    expect(all.map((e) => [e.kind, e.times, e.state]).sort()).toEqual([
      ['gate_alarm', 1, 'open'],
      ['gate_alarm', 2, 'open'],
      ['tray_open', 1, 'open'],
      ['unapplied', 1, 'open'],
    ])
    expect((await open({ kind: 'gate_alarm' })).find((e) => e.times === 2)).toMatchObject({
      eventId: 'evt-2',
      deviceId: shop.devices.exit_gate,
      storeId: shop.storeId,
    })
  })

  it('fetchExceptions pages, the newest first, and shows each exception once', async () => {
    const seen: string[] = []
    let cursor: string | undefined
    do {
      const page = await shop.ok('fetchExceptions', {
        storeId: shop.storeId,
        limit: 1,
        ...(cursor !== undefined && { cursor }),
      })
      seen.push(...page.exceptions.map((e: Json) => e.exceptionId))
      cursor = page.nextCursor
    } while (cursor !== undefined)
    expect(seen).toEqual((await open()).map((e) => e.exceptionId))
    expect(new Set(seen).size).toBe(4)
  })

  it('acknowledgeException stores the key; only repeated reports open an exception again', async () => {
    for (const { exceptionId } of await open()) {
      expect(await shop.ok('acknowledgeException', { exceptionId, note: 'angesehen' })).toMatchObject({
        state: 'acknowledged',
        note: 'angesehen',
        acknowledgedBy: expect.stringMatching(/^key_/),
      })
    }
    expect(await open({ state: 'open' })).toEqual([])
    await shop.ok('reportProtectionEvents', { events: [event('evt-5', { reason: 'tray_open' })] })
    expect(await open({ state: 'open' })).toMatchObject([{ kind: 'tray_open', times: 2 }])
    expect(await open({ state: 'acknowledged' })).toHaveLength(3)
  })

  it('other accounts see no exceptions of this account', async () => {
    const [{ exceptionId } = {} as Json] = await open()
    const stranger = await shop.cloud.key('secret', 'test', { account: 'Stranger', package: 'PRIME' })
    const elsewhere = await shop.cloud.key('secret', 'test', { storeIds: [shop.otherStoreId] })
    for (const key of [stranger, elsewhere]) {
      expect((await shop.cloud.call(key, 'acknowledgeException', { exceptionId })).status).toBe(404)
      expect((await shop.cloud.call(key, 'fetchExceptions', { storeId: shop.storeId })).status).toBe(404)
    }
    expect(shop.cloud.errors).toEqual([])
  })
})
