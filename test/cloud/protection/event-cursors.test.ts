import { sql } from 'kysely'
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest'
import { pause } from '../../../policy/platform.ts'
import type { ProtectionEvent } from '../../../policy/protection-events.ts'
import type { Db } from '../../../cloud/platform/persistence/database.ts'
import { oldestOpen, raisePositions, skipLostPositions } from '../../../cloud/platform/persistence/positions.ts'
import { storeEvent } from '../../../cloud/protection/records/record-event.ts'
import { virtualPlatform } from '../../verification/simulation/virtual/virtual-platform.ts'
import type { Json } from '../../support/cloud.ts'
import { newDatabase, onEveryDatabase } from '../../support/databases.ts'
import { openShop, type Shop } from '../../support/shop.ts'
import { EXTENDED } from '../../support/extended.ts'

/** The two operations that return every event once, and how to read their pages. */
const LISTS = {
  fetchProtectionEvents: {
    idsOf: ({ events }: Json): string[] => events.map((event: Json) => event.eventId),
    next: 'nextCursor',
  },
  exportEpcisEvents: {
    idsOf: ({ epcisBody }: Json): string[] =>
      epcisBody.eventList.map((event: Json) => event['untag:eventId'].split(':').at(-1)),
    next: 'untag:nextCursor',
  },
} as const
type List = keyof typeof LISTS
const NAMES = Object.keys(LISTS) as List[]
const TYPE = 'protection.exception.raised'

let shop: Shop
let tenant: string

async function setUp(kind: 'sqlite' | 'postgres', options: Parameters<typeof openShop>[1] = {}) {
  shop = await openShop(kind, options)
  const { reads } = shop.cloud.db.database
  const row = await reads
    .selectFrom('store')
    .select('tenant')
    .where('store_id', '=', shop.storeId)
    .executeTakeFirstOrThrow()
  tenant = row.tenant
}

function eventOf(eventId: string, atMs: number): ProtectionEvent {
  const at = new Date(atMs).toISOString()
  return { type: TYPE, eventId, occurredAt: at, processedAt: at, storeId: shop.storeId, reason: 'gate_alarm' }
}

const store = (db: Db, eventId: string, nowMs: number) => storeEvent({ db, tenant, nowMs }, eventOf(eventId, nowMs))
const write = (eventId: string, nowMs: number) => shop.cloud.db.database.write((db) => store(db, eventId, nowMs))

/** Reads a list page by page. The last page has no next cursor, so the next read repeats it. */
function follow(list: List, limit: number, from?: string) {
  const { idsOf, next } = LISTS[list]
  const readIds: string[] = []
  let cursor = from
  return {
    /** All events so far. */
    async read(): Promise<string[]> {
      for (;;) {
        const body = { storeId: shop.storeId, type: TYPE, limit, ...(cursor !== undefined && { cursor }) }
        const page = await shop.ok(list, body)
        if (page[next] === undefined) return [...readIds, ...idsOf(page)]
        readIds.push(...idsOf(page))
        cursor = page[next]
      }
    },
  }
}

onEveryDatabase('a client that follows the events', (kind) => {
  beforeEach(() => setUp(kind))
  afterEach(() => shop.stop())

  it('receives events of eight concurrent writers once, in the same order as other clients', async () => {
    const { db, platform } = shop.cloud
    // On PostgreSQL two more processes write.
    const others = kind === 'postgres' ? [await db.again(), await db.again()] : []
    const followers = NAMES.map((list) => follow(list, 10))
    const written: string[] = []
    let isWriting = true
    const writeMany = async (writer: number) => {
      for (let n = 0; n < 12; n++) {
        const ids = [`w${writer}-${n}-a`, `w${writer}-${n}-b`]
        // Clocks of processes differ by a little.
        const nowMs = Math.floor(platform.clock.wall()) + (writer % 2) * 40 - (n % 5) * 7
        await (others[writer % 2] ?? db.database).write(async (tx) => {
          await store(tx, ids[0]!, nowMs)
          // Some transactions stay open longer.
          if (kind === 'postgres') await sql`select pg_sleep(${((writer * 7 + n * 13) % 40) / 1_000})`.execute(tx)
          await store(tx, ids[1]!, nowMs)
        })
        written.push(...ids)
      }
    }
    const following = followers.map(async ({ read }) => {
      while (isWriting) {
        await read()
        await pause(platform.timers, 1)
      }
    })
    await Promise.all(Array.from({ length: 8 }, (_, writer) => writeMany(writer)))
    isWriting = false
    await Promise.all(following)
    const seen = await Promise.all(followers.map(({ read }) => read()))
    for (const other of others) await other.close()
    expect(seen[0]?.toSorted()).toEqual(written.toSorted())
    for (const each of seen) expect(each).toEqual(seen[0])
    for (const list of NAMES) expect(await follow(list, 500).read()).toEqual(seen[0])
  })

  it('receives an event whose time is before that of an earlier one', async () => {
    for (const [n, id] of ['a', 'b', 'c'].entries()) await write(id, 2_000 + n)
    const followers = NAMES.map((list) => follow(list, 2))
    for (const { read } of followers) expect(await read()).toEqual(['a', 'b', 'c'])
    await write('late', 1_000)
    for (const { read } of followers) expect(await read()).toEqual(['a', 'b', 'c', 'late'])
  })

  it('starts with `since` at the first event that the cloud stored at or after it', async () => {
    const hourMs = 3_600_000
    const base = Date.parse('2026-11-20T00:00:00Z')
    for (const [id, hours] of Object.entries({ a: 1, b: 2.1, c: 1.9, d: 2, e: 5, f: 1.5, g: 9 }))
      await write(id, base + hours * hourMs)
    for (const list of NAMES) {
      const listed = async (hours: number, fields: Json = {}) => {
        const since = new Date(base + hours * hourMs).toISOString()
        return LISTS[list].idsOf(await shop.ok(list, { storeId: shop.storeId, type: TYPE, since, ...fields }))
      }
      expect(await listed(0)).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g'])
      expect(await listed(2)).toEqual(['b', 'd', 'e', 'g'])
      expect(await listed(5)).toEqual(['e', 'g'])
      expect(await listed(10)).toEqual([])
      const page = await shop.ok(list, { storeId: shop.storeId, type: TYPE, limit: 4 })
      expect(await listed(2, { cursor: page[LISTS[list].next] })).toEqual(['e', 'g'])
      expect(await listed(8, { cursor: page[LISTS[list].next] })).toEqual(['g'])
    }
  })

  it('misses nothing after a restore, even events that the restore lost', async () => {
    const nowMs = shop.cloud.platform.clock.wall()
    for (const id of ['a', 'b', 'c', 'd']) await write(id, nowMs)
    const followers = NAMES.map((list) => follow(list, 3))
    for (const { read } of followers) await read()
    // The backup ends before `c`. The restored server may count its transactions from a lower number.
    const { database } = shop.cloud.db
    await database.write(async (db) => {
      await db.deleteFrom('protection_event').where('event_id', 'in', ['c', 'd']).execute()
      await skipLostPositions(db, nowMs + 1_000)
    })
    await shop.cloud.restart()
    await write('after', nowMs)
    for (const { read } of followers) expect(await read()).toEqual(['a', 'b', 'c', 'after'])
    expect(await follow('fetchProtectionEvents', 500).read()).toEqual(['a', 'b', 'after'])
  })

  it('misses nothing after a cloud restart, also on a server with lower transaction ids', async () => {
    const { database } = shop.cloud.db
    const lower = (by: number) =>
      database.write((db) =>
        db
          .updateTable('position_offset')
          .set((eb) => ({ value: eb('value', '-', by) }))
          .execute(),
      )
    for (const id of ['a', 'b', 'c']) await write(id, 1_000)
    const followers = NAMES.map((list) => follow(list, 2))
    for (const { read } of followers) await read()
    await lower(1_000_000)
    await shop.cloud.restart()
    await write('d', 1_000)
    await shop.cloud.restart()
    await write('e', 1_000)
    for (const { read } of followers) expect(await read()).toEqual(['a', 'b', 'c', 'd', 'e'])
  })
})

const hasPostgres = inject('postgresUrl') !== ''
describe.skipIf(!hasPostgres)(
  `open transactions${hasPostgres ? '' : ' (skipped: install the package postgresql)'}`,
  EXTENDED,
  () => {
    beforeEach(() => setUp('postgres'))
    afterEach(() => shop.stop())

    /** A transaction that stays open until `end`. */
    async function begin(
      database: { write<T>(work: (db: Db) => Promise<T>): Promise<T> },
      work: (db: Db) => Promise<unknown>,
    ) {
      let end = () => {}
      const ended = new Promise<void>((resolve) => void (end = resolve))
      let done: Promise<unknown> = Promise.resolve()
      await new Promise<void>((resolve) => {
        done = database.write(async (db) => {
          await work(db)
          resolve()
          await ended
        })
      })
      return { end: () => (end(), done) }
    }

    it.each(NAMES)('%s lists no event while an older open transaction may add events before it', async (list) => {
      const first = await begin(shop.cloud.db.database, (db) => store(db, 'early', 1_000))
      for (const id of ['b', 'c', 'd']) await write(id, 2_000)
      const { read } = follow(list, 1)
      const before = await read()
      const oldest = await oldestOpen(shop.cloud.db.database.reads)
      await first.end()
      expect(await read()).toEqual(['early', 'b', 'c', 'd'])
      expect(before).toEqual([])
      // The cloud can log which transaction is open.
      expect(oldest).toEqual({ id: expect.any(Number), pid: expect.any(Number), application: expect.any(String) })
    })

    it.each(NAMES)('delay %s by real time, also if the timers of the cloud are simulated', async (list) => {
      await shop.stop()
      await setUp('postgres', { platform: virtualPlatform({ startMs: Date.now() }) })
      const first = await begin(shop.cloud.db.database, (db) => store(db, 'early', 1_000))
      await write('late', 2_000)
      const { read } = follow(list, 500)
      expect(await read()).toEqual([])
      await first.end()
      expect(await read()).toEqual(['early', 'late'])
    })

    it('delay no unaffected events, nor other databases of the cluster', async () => {
      const other = await newDatabase('postgres')
      const elsewhere = await begin(other.database, (db) =>
        db.insertInto('installation').values({ name: 'open', value: '' }).execute(),
      )
      await write('a', 1_000)
      const here = await begin(shop.cloud.db.database, (db) => store(db, 'b', 1_000))
      const during = await Promise.all(NAMES.map((list) => follow(list, 500).read()))
      await here.end()
      const after = await Promise.all(NAMES.map((list) => follow(list, 500).read()))
      await elsewhere.end()
      await other.database.close()
      await other.remove()
      expect(during).toEqual([['a'], ['a']])
      expect(after).toEqual([
        ['a', 'b'],
        ['a', 'b'],
      ])
    })

    it('are ended by PostgreSQL when their process sends nothing for 30 seconds', async () => {
      const { rows } = await sql<{
        value: string
      }>`select current_setting('idle_in_transaction_session_timeout') as value`.execute(shop.cloud.db.database.reads)
      expect(rows[0]?.value).toBe('30s')
    })

    it('do not make a second process raise the positions of the first', async () => {
      await write('a', 1_000)
      const offset = () =>
        shop.cloud.db.database.reads.selectFrom('position_offset').select('value').executeTakeFirstOrThrow()
      const before = await offset()
      const second = await shop.cloud.db.again()
      await second.write(raisePositions)
      await second.close()
      expect(await offset()).toEqual(before)
    })
  },
)
