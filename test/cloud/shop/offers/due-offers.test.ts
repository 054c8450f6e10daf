import { expect, it } from 'vitest'
import { secretFiles } from '../../../../host/secret-files.ts'
import { keysOf, loadKeyFiles } from '../../../../cloud/platform/authority/key-files.ts'
import { createCloud, type Cloud } from '../../../../cloud/cloud.ts'
import type { Database } from '../../../../cloud/platform/persistence/database.ts'
import { letPromisesSettle, virtualPlatform } from '../../../verification/simulation/virtual/virtual-platform.ts'
import { startTestCloud, TEST_CONFIG, type Json } from '../../../support/cloud.ts'
import { inFullSizeOnEveryDatabase, type DatabaseKind } from '../../../support/databases.ts'
import { liveStores } from '../../../support/live-store.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** Waits for a condition without advancing the virtual clock. */
async function until(what: string, condition: () => Promise<boolean> | boolean): Promise<void> {
  for (const end = Date.now() + 30_000; Date.now() < end;) {
    if (await condition()) return
    await letPromisesSettle()
  }
  throw new Error(`${what}: the condition was not met within 30 s`)
}

/** Waits until a number is stable. */
async function stableNumber(read: () => number): Promise<number> {
  let last = read()
  let since = Date.now()
  await until('rest', () => {
    if (read() !== last) since = Date.now()
    last = read()
    // A database on a busy machine may be slow.
    return Date.now() - since > 400
  })
  return last
}

/** Starts a cloud and a live account with three stores. Only the test moves the clock. */
async function openWorld(kind: DatabaseKind) {
  const world = virtualPlatform({ seed: 3 })
  const cloud = await startTestCloud(kind, { platform: world })
  const timersAtRest = await stableNumber(() => world.pending)
  const key = await cloud.key('secret', 'live')
  const stores = await liveStores(cloud, key, { count: 3 })
  const { reads } = cloud.db.database
  const at = (ms: number) => new Date(world.clock.wall() + ms).toISOString()
  const others: { cloud: Cloud; database: Database }[] = []
  return {
    world,
    cloud,
    key,
    stores,
    at,
    create: (fromMs: number, toMs: number, title = 'Herbstwochen') =>
      cloud.ok(key, 'createOffer', {
        storeIds: stores,
        title,
        validFrom: at(fromMs),
        validTo: at(toMs),
        products: [{ name: 'Schirm', price: 5 }],
      }),
    stored: async (groupId: string) =>
      (await reads.selectFrom('offer_group').select('status').where('group_id', '=', groupId).executeTakeFirst())
        ?.status,
    listed: async (id: string): Promise<Json> =>
      (await cloud.ok(key, 'getManagerOffers', {})).offers.find((o: Json) => o.id === id),
    published: async () => {
      const rows = await reads.selectFrom('outbox_event').selectAll().where('type', '=', 'offer.published').execute()
      return rows.map((row) => JSON.parse(row.data).offerId as string).sort()
    },
    until,
    /** Waits until every process has done its work and set its timers. */
    idle: () =>
      until(
        `idle, with ${timersAtRest} timers for each process`,
        () => world.pending === timersAtRest * (1 + others.length),
      ),
    /** Starts another process on the same database. */
    async another() {
      const database = await cloud.db.again()
      const log = {
        info: () => undefined,
        warn: () => undefined,
        error: (fields: object) => void cloud.errors.push(fields),
      }
      const more = await createCloud({
        config: TEST_CONFIG,
        platform: world,
        log,
        database,
        keyFiles: await loadKeyFiles(keysOf(cloud.keyFolder), secretFiles, world.random),
        images: cloud.cloud.services.images,
        outgoing: cloud.cloud.services.outgoing,
      })
      others.push({ cloud: more, database })
      return more
    },
    async stop() {
      for (const { cloud: other, database } of others) {
        await other.stop()
        await database.close()
      }
      const { errors } = cloud
      await cloud.stop()
      expect(errors).toEqual([])
    },
  }
}

inFullSizeOnEveryDatabase('offers in time', (kind) => {
  it('start, end and are archived in time, with one event per document', async () => {
    const w = await openWorld(kind)
    const made = await w.create(10_000, DAY_MS)
    expect([made.status, await w.published()]).toEqual(['DRAFT', []])
    await w.idle()
    await w.world.advance(9_999)
    expect(await w.listed(made.offerId)).toMatchObject({ status: 'DRAFT', isActive: false })
    expect([await w.stored(made.groupId), await w.published()]).toEqual(['DRAFT', []])

    await w.world.advance(1)
    expect(await w.listed(made.offerId)).toMatchObject({ status: 'ACTIVE', isActive: true })
    await w.until('live', async () => (await w.stored(made.groupId)) === 'ACTIVE')
    expect(await w.published()).toEqual([...made.offerIds].sort())
    const audit = await w.cloud.db.database.reads
      .selectFrom('audit_entry')
      .selectAll()
      .where('operation', '=', 'moveDueOffers')
      .execute()
    expect(audit.map((row) => [row.actor, row.entity_id, row.tenant.endsWith('.live')])).toEqual([
      ['scheduler', made.offerId, true],
    ])

    for (const [pass, status] of [
      [DAY_MS, 'EXPIRED'],
      [90 * DAY_MS, 'ARCHIVED'],
    ] as const) {
      await w.idle()
      w.world.sleep(pass)
      // Responses depend on the clock, so they change before a job runs.
      expect(await w.listed(made.offerId)).toMatchObject({ status, isActive: false })
      await w.world.advance(1)
      await w.until(status, async () => (await w.stored(made.groupId)) === status)
      // Checked at EXPIRED, because the cloud deletes events after 30 days.
      if (status === 'EXPIRED') expect(await w.published()).toHaveLength(3)
    }
    expect((await w.cloud.ok(w.key, 'getManagerOffers', { status: 'expired' })).total).toBe(1)
    await w.stop()
  })

  it('reset their timer for an earlier offer, and ignore deleted offers', async () => {
    const w = await openWorld(kind)
    const late = await w.create(20_000, DAY_MS)
    const early = await w.create(5_000, DAY_MS)
    const gone = await w.create(6_000, DAY_MS)
    await w.cloud.ok(w.key, 'deleteOffer', { offerId: gone.offerId })
    const moved = await w.create(25_000, DAY_MS)
    await w.cloud.ok(w.key, 'updateOffer', { offerId: moved.offerId, validFrom: w.at(7_000) })
    await w.idle()
    await w.world.advance(5_000)
    await w.until('the early one', async () => (await w.stored(early.groupId)) === 'ACTIVE')
    await w.idle()
    await w.world.advance(2_000)
    await w.until('the moved one', async () => (await w.stored(moved.groupId)) === 'ACTIVE')
    expect(await w.stored(late.groupId)).toBe('DRAFT')
    expect(await w.published()).toEqual([...early.offerIds, ...moved.offerIds].sort())
    await w.stop()
  })

  it('are moved after a restart; offers that have already ended are not announced', async () => {
    const w = await openWorld(kind)
    const live = await w.create(HOUR_MS, 10 * HOUR_MS)
    const over = await w.create(HOUR_MS, 2 * HOUR_MS)
    await w.cloud.cloud.stop()
    w.world.sleep(5 * HOUR_MS)
    expect([await w.stored(live.groupId), await w.stored(over.groupId)]).toEqual(['DRAFT', 'DRAFT'])
    expect((await w.listed(live.offerId)).status).toBe('ACTIVE')
    await w.another()
    await w.until('live', async () => (await w.stored(live.groupId)) === 'ACTIVE')
    await w.until('over', async () => (await w.stored(over.groupId)) === 'EXPIRED')
    expect(await w.published()).toEqual([...live.offerIds].sort())
    await w.stop()
  })

  // Only one process can use a SQLite file.
  if (kind === 'postgres')
    it('are moved by exactly one of several clouds', async () => {
      const w = await openWorld(kind)
      const made: Json[] = []
      for (let i = 0; i < 104; i++) made.push(await w.create(60_000 + (i % 3), DAY_MS, `Angebot ${i}`))
      await w.another()
      await w.idle()
      w.world.sleep(61_000)
      await w.world.advance(1)
      const { reads } = w.cloud.db.database
      await w.until(
        'all live',
        async () =>
          (await reads.selectFrom('offer_group').select('group_id').where('status', '=', 'DRAFT').limit(1).execute())
            .length === 0,
      )
      await w.idle()
      await w.world.advance(60_000)
      const ids = made.flatMap((m) => m.offerIds as string[])
      expect(await w.published()).toEqual([...ids].sort())
      const audit = await reads
        .selectFrom('audit_entry')
        .select('entity_id')
        .where('operation', '=', 'moveDueOffers')
        .execute()
      expect(audit.map((row) => row.entity_id).sort()).toEqual(made.map((m) => m.offerId).sort())
      await w.stop()
    })
})
