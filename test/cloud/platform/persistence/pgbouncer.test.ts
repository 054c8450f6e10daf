// @module-tag extended
import { sql } from 'kysely'
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest'
import { realPlatform } from '../../../../host/platform.ts'
import type { Database, Db } from '../../../../cloud/platform/persistence/database.ts'
import { openDatabase } from '../../../../cloud/platform/persistence/open-database.ts'
import type { Json } from '../../../support/cloud.ts'
import { eventually } from '../../../support/journey.ts'
import { NO_PGBOUNCER, startPgBouncer } from '../../../support/pgbouncer.ts'
import { newEan, openShop, type Shop } from '../../../support/shop.ts'

const missing = NO_PGBOUNCER ?? (inject('postgresUrl') === '' ? 'there is no PostgreSQL' : undefined)

describe.skipIf(missing !== undefined)(
  `a cloud behind PgBouncer in transaction mode${missing === undefined ? '' : ` (skipped: ${missing})`}`,
  () => {
    let shop: Shop
    let bouncer: Awaited<ReturnType<typeof startPgBouncer>>
    let others: Database[]
    beforeEach(async () => {
      shop = await openShop('postgres')
      bouncer = await startPgBouncer((shop.cloud.db.location as { url: string }).url)
      others = []
    })
    afterEach(async () => {
      for (const other of others) await other.close()
      await shop.stop()
      await bouncer.stop()
    })

    const open = (pooling: 'session' | 'transaction') =>
      openDatabase({ url: bouncer.url, ...realPlatform(), pooling }, (failure) => {
        throw failure
      })
    const openOther = async () => {
      const database = await open('transaction')
      others.push(database)
      return database
    }

    it('sells and releases once, with many calls at the same time', async () => {
      const { storeId, ok, call, products, devices } = shop
      await shop.cloud.restart(() => {
        shop.cloud.db.again = () => open('transaction')
      })
      const inserted = await Promise.all(
        Array.from({ length: 40 }, (_, n) =>
          ok('insertProduct', { storeId, ean: newEan(), name: `Ware ${n}`, price: 1, vat: 7 }),
        ),
      )
      const ids = inserted.map((answer: Json) => answer.productId)
      for (const productId of ids.slice(0, 5))
        expect(await ok('fetchProduct', { productId })).toMatchObject({ productId })

      await ok('setStock', { productId: ids[0], storeId, quantity: 3 })
      const orders = await Promise.all(
        Array.from({ length: 8 }, (_, n) =>
          call('submitClickCollectOrder', { storeId, userId: `s${n}`, items: [{ productId: ids[0], quantity: 1 }] }),
        ),
      )
      expect(orders.filter((order) => order.status === 200)).toHaveLength(3)

      const { transactionId } = await shop.buy([{ ean: products[0].ean, quantity: 1 }])
      const deviceId = devices.pos_deactivator
      const { replayProtectedNonce } = await ok('verifySecurityTagDeactivation', {
        purchaseId: transactionId,
        deviceId,
      })
      const claims = await Promise.all(
        Array.from({ length: 16 }, (_, n) =>
          call('redeemProtectionAuthorization', { deviceId, redemptionId: `r${n}`, replayProtectedNonce }),
        ),
      )
      expect(claims.filter(({ status }) => status === 200)).toHaveLength(1)
      expect(shop.cloud.errors).toEqual([])
    })

    it('keeps settings, gates and locks inside of transactions', async () => {
      const [one, two] = [await openOther(), await openOther()]
      const settings = await one.write(async (db) => ({
        seqscan: (await sql<Json>`SHOW enable_seqscan`.execute(db)).rows[0]?.enable_seqscan,
        jit: (await sql<Json>`SHOW jit`.execute(db)).rows[0]?.jit,
        idle: (await sql<Json>`SHOW idle_in_transaction_session_timeout`.execute(db)).rows[0],
      }))
      expect(settings).toEqual({ seqscan: 'off', jit: 'off', idle: { idle_in_transaction_session_timeout: '30s' } })
      expect((await sql<Json>`SHOW enable_seqscan`.execute(one.reads)).rows).toEqual([{ enable_seqscan: 'on' }])

      const name = 'counter'
      await one.write((db) => db.insertInto('installation').values({ name, value: '0' }).execute())
      const increment = async (db: Db) => {
        const row = await db
          .selectFrom('installation')
          .select('value')
          .where('name', '=', name)
          .executeTakeFirstOrThrow()
        const value = String(Number(row.value) + 1)
        await db.updateTable('installation').set({ value }).where('name', '=', name).execute()
      }
      // At the level read committed, only the lock of the job keeps one increment from hiding another one.
      await Promise.all(
        Array.from({ length: 20 }, (_, n) => (n % 2 === 0 ? one : two).writeAlone('sealAudit', increment)),
      )
      expect(
        await one.reads.selectFrom('installation').select('value').where('name', '=', name).executeTakeFirst(),
      ).toEqual({ value: '20' })
      // A lock of a session would stay. Jobs of the cloud hold theirs for some milliseconds.
      await eventually('no locks', async () => {
        const held = await sql`
          SELECT FROM pg_locks JOIN pg_database ON oid = database
          WHERE locktype = 'advisory' AND datname = current_database()`.execute(one.reads)
        return held.rows.length === 0
      })
      const prepared = await sql<Json>`SELECT name FROM pg_prepared_statements`.execute(one.reads)
      expect(prepared.rows).toEqual([])
    })

    it('is named with the fix if the setting is missing', async () => {
      await expect(open('session')).rejects.toThrow(
        'a connection pooler in transaction mode refuses the settings of this connection: use --database-pooling transaction',
      )
    })
  },
)
