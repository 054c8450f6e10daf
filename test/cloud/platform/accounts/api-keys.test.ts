import { afterAll, beforeAll, expect, it } from 'vitest'
import { virtualPlatform, type VirtualPlatform } from '../../../verification/simulation/virtual/virtual-platform.ts'
import { startTestCloud, type Json, type TestCloud } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'

const HOUR_MS = 3_600_000

onEveryDatabase('API keys', (kind) => {
  let cloud: TestCloud
  let key: string
  let stores: string[]
  beforeAll(async () => {
    cloud = await startTestCloud(kind)
    key = await cloud.key('secret')
    stores = (await cloud.ok(key, 'fetchStores')).stores.map((s: Json) => s.storeId)
  })
  afterAll(async () => {
    await cloud.stop()
    expect(cloud.errors).toEqual([])
  })
  const status = async (of: string, on = cloud) => (await on.call(of, 'fetchStores')).status
  const keysSeenBy = async (of: string, on = cloud): Promise<Json[]> => (await on.ok(of, 'fetchApiKeys')).keys
  const recordOf = async (keyId: string) => (await keysSeenBy(key)).find((k) => k.keyId === keyId)

  it('have the mode of their creator, are listed without their secret, and end at once', async () => {
    const made = await cloud.ok(key, 'createApiKey', { kind: 'secret', name: 'Kasse 3' })
    expect(made).toEqual({
      success: true,
      keyId: expect.stringMatching(/^key_/),
      key: expect.stringMatching(/^untag_test_sk_/),
    })
    expect(await status(made.key)).toBe(200)
    const record = await recordOf(made.keyId)
    expect(record).toMatchObject({
      kind: 'secret',
      mode: 'test',
      name: 'Kasse 3',
      status: 'active',
      lastUsedAt: expect.any(String),
    })
    expect(JSON.stringify(await keysSeenBy(key))).not.toContain(made.key)
    expect(await cloud.ok(key, 'revokeApiKey', { keyId: made.keyId })).toMatchObject({
      success: true,
      keyId: made.keyId,
      status: 'revoked',
      revokedAt: expect.any(String),
    })
    expect(await status(made.key)).toBe(401)
    expect(await cloud.call(key, 'rollApiKey', { keyId: made.keyId })).toMatchObject({
      status: 409,
      body: { reason: 'key_ended' },
    })
    const publishable = await cloud.ok(key, 'createApiKey', { kind: 'publishable', name: 'Web' })
    expect(publishable.key).toMatch(/^untag_test_pk_/)
    expect((await cloud.call(publishable.key, 'createApiKey', { kind: 'publishable', name: 'x' })).status).toBe(403)
    expect((await cloud.call(key, 'createApiKey', { kind: 'admin', name: 'x' })).status).toBe(400)
    const live = await cloud.key('secret', 'live')
    expect((await cloud.ok(live, 'createApiKey', { kind: 'publishable', name: 'x' })).key).toMatch(/^untag_live_pk_/)
  })

  it('are revoked also before the time at which another process revoked them', async () => {
    const { keyId, key: revoked } = await cloud.ok(key, 'createApiKey', { kind: 'secret', name: 'Kasse' })
    const laterMs = Math.floor(cloud.platform.clock.wall()) + 5_000
    await cloud.db.database.write((db) =>
      db.updateTable('api_key').set({ revoked_ms: laterMs }).where('key_id', '=', keyId).execute(),
    )
    expect(await status(revoked)).toBe(401)
    expect(await cloud.call(key, 'rollApiKey', { keyId, overlapHours: 0 })).toMatchObject({
      status: 409,
      body: { reason: 'key_ended' },
    })
    expect((await cloud.ok(key, 'revokeApiKey', { keyId })).revokedAt).toBe(new Date(laterMs).toISOString())
  })

  it('serve requests that are on their way while they are rolled; keys that these create expire no later', async () => {
    const { keyId, key: old } = await cloud.ok(key, 'createApiKey', { kind: 'secret', name: 'Kasse 4' })
    const roll = (overlapHours: number) => () => cloud.ok(key, 'rollApiKey', { keyId, overlapHours })
    const wanted = { kind: 'publishable', name: 'shop' }
    const late = await cloud.callLate(old, 'createApiKey', wanted, roll(1))
    expect(late.status).toBe(200)
    expect(await recordOf(late.body.keyId)).toMatchObject({ expiresAt: (await recordOf(keyId))?.expiresAt })
    expect((await cloud.callLate(old, 'createApiKey', wanted, roll(0))).status).toBe(401)
  })

  it('cannot create keys with more rights than their own', async () => {
    const [one = '', other = ''] = stores
    const bound = await cloud.ok(key, 'createApiKey', { kind: 'secret', name: 'one store', storeIds: [one] })
    const seen = async (of: string) => (await cloud.ok(of, 'fetchStores')).stores.map((s: Json) => s.storeId)
    expect(await seen(bound.key)).toEqual([one])
    const child = await cloud.ok(bound.key, 'createApiKey', { kind: 'secret', name: 'child' })
    expect(await seen(child.key)).toEqual([one])
    expect(
      (await cloud.call(bound.key, 'createApiKey', { kind: 'secret', name: 'x', storeIds: [one, other] })).status,
    ).toBe(404)
    expect(
      (
        await cloud.call(bound.key, 'insertStore', {
          companyName: 'a',
          tradingName: 'b',
          address: { street: 's', city: 'c', zip: '1', country: 'DE' },
          phone: '+4940555010',
        })
      ).body.reason,
    ).toBe('key_bound_to_stores')
    expect((await keysSeenBy(bound.key)).map((k) => k.keyId).sort()).toEqual([bound.keyId, child.keyId].sort())
    const wide = (await keysSeenBy(key)).find((k) => !k.storeIds && k.kind === 'secret')
    for (const operation of ['rollApiKey', 'revokeApiKey'])
      expect((await cloud.call(bound.key, operation, { keyId: wide?.keyId })).status).toBe(404)
    await cloud.ok(key, 'submitStoreRegistration', {
      companyName: 'a',
      tradingName: 'b',
      address: { street: 's', city: 'c', zip: '1', country: 'DE' },
    })
    expect((await cloud.ok(bound.key, 'fetchRegistrations')).registrations).toEqual([])
    const log: Json[] = (await cloud.ok(bound.key, 'fetchAuditLog')).entries
    expect(log.map((e) => e.entityId)).toEqual([child.keyId])
    // The same entries from both ends, whole and in pages.
    const pages = async (fields: Json) => {
      const ids: string[] = []
      for (let cursor: string | undefined; ;) {
        const page = await cloud.ok(key, 'fetchAuditLog', { ...fields, ...(cursor && { cursor }) })
        ids.push(...page.entries.map((e: Json) => e.entryId))
        cursor = page.nextCursor
        if (cursor === undefined) return ids
      }
    }
    const oldestFirst = await pages({})
    expect(oldestFirst.length).toBeGreaterThan(2)
    expect(await pages({ latest: true })).toEqual(oldestFirst.toReversed())
    expect(await pages({ latest: true, limit: 2 })).toEqual(oldestFirst.toReversed())
    expect((await cloud.ok(bound.key, 'fetchAuditLog', { latest: true })).entries).toEqual(log)
    const stranger = await cloud.key('secret', 'test', { account: 'Stranger' })
    const foreign = (await cloud.ok(stranger, 'fetchStores')).stores[0].storeId
    expect((await cloud.call(key, 'createApiKey', { kind: 'secret', name: 'x', storeIds: [foreign] })).status).toBe(404)
  })

  it('of administrators, the other mode and other accounts cannot be rolled', async () => {
    const live = await cloud.key('secret', 'live')
    const admin = await cloud.key('admin', 'live')
    await cloud.key('secret', 'test', { account: 'Stranger' })
    const rows = await cloud.db.database.reads
      .selectFrom('api_key')
      .innerJoin('account', 'account.account_id', 'api_key.account_id')
      .select(['key_id', 'kind', 'mode', 'account.name'])
      .execute()
    const find = (fits: (row: (typeof rows)[number]) => boolean) => rows.find(fits)?.key_id ?? ''
    for (const [caller, keyId] of [
      [live, find((r) => r.kind === 'admin')],
      [live, find((r) => r.mode === 'test' && r.name === 'Hafenkante')],
      [key, find((r) => r.mode === 'live' && r.kind === 'secret')],
      [key, find((r) => r.name === 'Stranger')],
    ] as const) {
      expect(keyId).not.toBe('')
      for (const operation of ['rollApiKey', 'revokeApiKey'])
        expect(await cloud.call(caller, operation, { keyId })).toMatchObject({
          status: 404,
          body: { error: 'no such key' },
        })
      expect((await keysSeenBy(caller)).map((k) => k.keyId)).not.toContain(keyId)
    }
    expect((await cloud.call(admin, 'createApiKey', { kind: 'secret', name: 'x' })).status).toBe(403)
  })

  it('for client code may call only the listed operations', async () => {
    const { OPERATION_TABLE } = await import('../../../../cloud/service/operation-table.ts')
    const listed = [
      'checkIn',
      'startCheckout',
      'fetchStore',
      'fetchStores',
      'fetchProduct',
      'fetchProducts',
      'searchProducts',
      'fetchActiveOffers',
      'fetchPurchase',
      'getLoyaltyProgram',
      'recordEngagement',
      'requestAssistance',
      'fetchPushKey',
      'registerPushSubscription',
      'removePushSubscription',
    ]
    const may = [...OPERATION_TABLE.values()]
      .filter((operation) => operation.callers.includes('publishable'))
      .map(({ name }) => name)
    expect(may.filter((name) => !listed.includes(name))).toEqual([])
    expect(listed.filter((name) => OPERATION_TABLE.has(name) && !may.includes(name))).toEqual([])
  })

  it('return warnings when they revoke themselves', async () => {
    const lonely = await cloud.key('secret', 'test', { account: 'Lonely' })
    const [{ keyId }] = (await keysSeenBy(lonely)) as [Json]
    const answer = await cloud.ok(lonely, 'revokeApiKey', { keyId })
    expect(answer.warnings).toEqual([
      expect.stringContaining('the next call with this key gets 401'),
      expect.stringContaining('no test secret key of the account is left'),
    ])
    expect(await status(lonely)).toBe(401)
  })

  it('return the same secret and the same errors for the same Idempotency-Key', async () => {
    const again = (body: Json, idempotencyKey: string) =>
      cloud.call(key, 'createApiKey', body, { 'idempotency-key': idempotencyKey })
    const first = await again({ kind: 'secret', name: 'once' }, 'create-1')
    const second = await again({ kind: 'secret', name: 'once' }, 'create-1')
    expect([second.text, second.headers.get('idempotency-replayed')]).toEqual([first.text, 'true'])
    expect((await keysSeenBy(key)).filter((k) => k.name === 'once')).toHaveLength(1)
    await cloud.ok(key, 'revokeApiKey', { keyId: first.body.keyId })
    const roll = () => cloud.call(key, 'rollApiKey', { keyId: first.body.keyId }, { 'idempotency-key': 'roll-1' })
    const refused = await roll()
    expect(refused.status).toBe(409)
    expect(await roll()).toMatchObject({ status: 409, text: refused.text })
  })

  it('are limited to 1,000; adding a key deletes revoked ones first', async () => {
    const crowd = await cloud.key('secret', 'test', { account: 'Crowd' })
    const [{ keyId }] = (await keysSeenBy(crowd)) as [Json]
    const { account_id } = await cloud.db.database.reads
      .selectFrom('api_key')
      .select('account_id')
      .where('key_id', '=', keyId)
      .executeTakeFirstOrThrow()
    const row = (i: number) => ({
      key_id: `key_crowd_${i}`,
      account_id,
      mode: 'test',
      kind: 'secret',
      hash: `crowd ${i}`,
      shown: '…',
      name: 'crowd',
      created_ms: 1,
    })
    await cloud.db.database.write((db) =>
      db
        .insertInto('api_key')
        .values(Array.from({ length: 999 }, (_, i) => row(i)))
        .execute(),
    )
    expect(await cloud.call(crowd, 'createApiKey', { kind: 'secret', name: 'x' })).toMatchObject({
      status: 409,
      body: { reason: 'too_many_keys' },
    })
    await cloud.ok(crowd, 'revokeApiKey', { keyId: 'key_crowd_5' })
    expect((await cloud.call(crowd, 'createApiKey', { kind: 'secret', name: 'x' })).status).toBe(200)
    expect(await keysSeenBy(crowd)).toHaveLength(1_000)
  })

  it('overlap when rolled, expire, and store the time of their last use', async () => {
    const world: VirtualPlatform = virtualPlatform({ seed: 3 })
    const timed = await startTestCloud(kind, { platform: world })
    try {
      const first = await timed.key('secret')
      const [{ keyId }] = (await keysSeenBy(first, timed)) as [Json]
      const rolled = await timed.ok(first, 'rollApiKey', { keyId, overlapHours: 2 })
      const records = await keysSeenBy(rolled.key, timed)
      expect(records.find((k) => k.keyId === keyId)).toMatchObject({
        status: 'active',
        replacedBy: rolled.keyId,
        expiresAt: new Date(world.clock.wall() + 2 * HOUR_MS).toISOString(),
      })
      const brief = await timed.ok(rolled.key, 'createApiKey', {
        kind: 'secret',
        name: 'brief',
        expiresAt: new Date(world.clock.wall() + HOUR_MS).toISOString(),
      })
      expect(
        (
          await timed.call(rolled.key, 'createApiKey', {
            kind: 'secret',
            name: 'x',
            expiresAt: new Date(world.clock.wall()).toISOString(),
          })
        ).status,
      ).toBe(400)
      // A key with an expiry creates only keys that expire no later. Otherwise a key for one hour could renew itself.
      const child = await timed.ok(brief.key, 'createApiKey', { kind: 'secret', name: 'child' })
      const later = await timed.ok(rolled.key, 'createApiKey', { kind: 'secret', name: 'later' })
      const taken = await timed.ok(brief.key, 'rollApiKey', { keyId: later.keyId })
      const ends = Object.fromEntries((await keysSeenBy(rolled.key, timed)).map((k) => [k.keyId, k.expiresAt]))
      expect([ends[child.keyId], ends[taken.keyId]]).toEqual([ends[brief.keyId], ends[brief.keyId]])
      world.setWall(world.clock.wall() + HOUR_MS)
      expect([await status(first, timed), await status(brief.key, timed), await status(rolled.key, timed)]).toEqual([
        200, 401, 200,
      ])
      world.setWall(world.clock.wall() + HOUR_MS)
      expect([await status(first, timed), await status(rolled.key, timed)]).toEqual([401, 200])
      const atOnce = await timed.ok(rolled.key, 'rollApiKey', { keyId: rolled.keyId, overlapHours: 0 })
      expect([await status(rolled.key, timed), await status(atOnce.key, timed)]).toEqual([401, 200])

      const written = async () =>
        (
          await timed.db.database.reads
            .selectFrom('api_key')
            .select('last_used_ms')
            .where('key_id', '=', atOnce.keyId)
            .executeTakeFirstOrThrow()
        ).last_used_ms
      expect(await written()).toBeNull()
      await timed.cloud.services.keyUsage.flush(timed.db.database)
      expect(await written()).toBe(world.clock.wall())
    } finally {
      await timed.stop()
    }
  })

  it('the cloud stops cleanly even if it cannot store their last use', async () => {
    const full = await startTestCloud('sqlite')
    try {
      await full.ok(await full.key('secret'), 'fetchStores')
      full.db.database.write = () => Promise.reject(new Error('database or disk is full'))
      await full.cloud.stop()
      expect(full.errors).toMatchObject([{ err: { message: 'database or disk is full' } }])
    } finally {
      await full.stop()
    }
  })
})
