// @module-tag extended
import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest'
import { copyDatabase, type CopyRequest } from '../../host/database-copy/copy.ts'
import { realPlatform } from '../../host/platform.ts'
import { openDatabase } from '../../cloud/platform/persistence/open-database.ts'
import type { Json } from '../support/cloud.ts'
import { asAdmin } from '../support/databases.ts'
import { IS_FULL_SIZE } from '../support/full-size.ts'
import { newEan, openShop, type Shop } from '../support/shop.ts'

const server = inject('postgresUrl')
/** Rows of a transaction, which the test interrupts again and again. Fewer rows give more interruptions. */
const CHUNK_ROWS = IS_FULL_SIZE ? 250 : 2_000
const fail = (error: Error) => {
  throw error
}

describe.skipIf(server === '')(
  `a copy from SQLite to PostgreSQL${server === '' ? ' (skipped: install the package postgresql)' : ''}`,
  () => {
    let shop: Shop
    let url: string
    let name: string
    let isComplete: boolean
    beforeEach(async () => {
      shop = await openShop('sqlite')
      name = `copy_${randomBytes(6).toString('hex')}`
      // Sorts texts in another order than SQLite.
      await asAdmin(
        server,
        `CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'UTF8' LOCALE_PROVIDER icu ICU_LOCALE 'de'`,
      )
      const place = new URL(server)
      place.pathname = `/${name}`
      url = place.href
      isComplete = false
    })
    afterEach(async () => {
      await shop.stop()
      await asAdmin(server, `DROP DATABASE ${name} WITH (FORCE)`)
    })

    const file = () => (shop.cloud.db.location as { file: string }).file
    const copy = (more: Partial<CopyRequest> = {}) =>
      copyDatabase({
        file: file(),
        url,
        begin: (_target, startedId) => startedId ?? 'first',
        complete: () => void (isComplete = true),
        ...more,
      })
    const query = async (text: string): Promise<Json[]> => {
      const client = new pg.Client({ connectionString: url })
      await client.connect()
      try {
        return (await client.query(text)).rows
      } finally {
        await client.end()
      }
    }

    /** A day in the store: sales, refunds, releases, tagged goods, orders and points. */
    async function trade(): Promise<Json> {
      const { storeId, products, devices, programId, ok } = shop
      await ok('insertProduct', { storeId, ean: newEan(), name: 'Käse „Ö“ 𝄞', price: 1.99, vat: 7 })
      const sold = await shop.buy([{ ean: products[0].ean, quantity: 2 }])
      const cancelled = await shop.buy([{ ean: products[1].ean, quantity: 1 }])
      await ok('markPurchaseCancelled', { purchaseId: cancelled.transactionId })
      const item = await shop.newItem(products[2])
      const verified = await ok('verifyProtectedItem', {
        deviceId: devices.exit_gate,
        storeId,
        protectionAction: 'verify_item_status',
        epc: item.epc,
      })
      await ok('addLoyaltyPoints', { programId, userId: 'shopper-1', amount: 3 })
      await ok('setStock', { productId: products[1].productId, storeId, quantity: 5 })
      return { sold, item, verified }
    }

    /** What callers can read of the store. */
    async function readAll(purchaseId: string, epc: string): Promise<Json> {
      const { storeId, programId, products } = shop
      const reads: [string, Json][] = [
        ['fetchStores', {}],
        ['fetchStore', { storeId }],
        ['fetchProducts', { storeId, limit: 5 }],
        ['fetchProducts', { storeId, limit: 500 }],
        ['searchProducts', { storeId, q: 'käse' }],
        ['searchProducts', { storeId, q: 'lei' }],
        ['fetchProduct', { productId: products[0].productId }],
        ['fetchStock', { storeId, productId: products[1].productId }],
        ['fetchPurchase', { transactionId: purchaseId }],
        ['fetchPurchaseHistory', { storeId }],
        ['fetchProtectedItem', { storeId, epc }],
        ['fetchProtectionEvents', { storeId }],
        ['fetchProtectionPolicy', { storeId }],
        ['fetchDevices', { storeId }],
        ['fetchAuditLog', {}],
        ['fetchWebhookEvents', {}],
        ['fetchExceptions', { storeId }],
        ['fetchClosings', { storeId }],
        ['fetchAnalytics', { storeId, from: '2026-01-01', to: '2026-12-31' }],
        ['getLoyaltyProgram', { programId }],
        ['getLoyaltyAnalytics', { storeId }],
        ['fetchActiveOffers', { storeId }],
        ['fetchZones', { storeId }],
        ['exportCustomerData', { userId: 'shopper-1' }],
      ]
      const answers: Json = {}
      for (const [operation, body] of reads) {
        const { requestId: _id, ...answer } = (await shop.call(operation, body)).body
        answers[`${operation} ${JSON.stringify(body)}`] = answer
      }
      return answers
    }

    /** Reads a list to its end in pages of two. `again` continues with the last cursor. */
    async function follow(operation: string, body: Json): Promise<{ ids: string[]; again(): Promise<string[]> }> {
      const full: string[] = []
      let cursor: string | undefined
      const read = async (): Promise<string[]> => {
        for (;;) {
          const page = await shop.ok(operation, { ...body, limit: 2, ...(cursor !== undefined && { cursor }) })
          const ids = page.events.map((event: Json) => event.eventId ?? event.id)
          if (page.nextCursor === undefined) return [...full, ...ids]
          full.push(...ids)
          cursor = page.nextCursor
        }
      }
      return { ids: await read(), again: read }
    }

    async function continueOnCopy(): Promise<void> {
      await shop.cloud.restart(async () => {
        await copy()
        shop.cloud.db.again = () => openDatabase({ url, ...realPlatform() }, fail)
      })
      expect(shop.cloud.db.database.dialect).toBe('postgres')
    }

    it('answers like the original, and the store goes on', async () => {
      const { storeId, ok, products, devices } = shop
      const { sold, item } = await trade()
      const deviceId = devices.pos_deactivator
      const release = { purchaseId: sold.transactionId, deviceId }
      const { replayProtectedNonce } = await ok('verifySecurityTagDeactivation', release)
      const before = await readAll(sold.transactionId, item.epc)
      expect(Object.values<Json>(before).filter(({ error }) => error === undefined).length).toBeGreaterThan(20)
      // A follower has read all but the last page.
      const events = await follow('fetchProtectionEvents', { storeId })
      const webhooks = await follow('fetchWebhookEvents', {})
      const first = await ok('fetchProducts', { storeId, limit: 3 })

      await continueOnCopy()
      expect(isComplete).toBe(true)
      expect(await readAll(sold.transactionId, item.epc)).toEqual(before)

      // Cursors of the original continue on the copy.
      const second = await ok('fetchProducts', { storeId, limit: 3, cursor: first.nextCursor })
      expect(second.products[0].productId > first.products.at(-1).productId).toBe(true)
      // New listings get numbers above those of the original.
      const numbers = `SELECT (SELECT last_value FROM listing_number) > max(listing_no) AS free FROM store_product`
      expect(await query(numbers)).toEqual([{ free: true }])
      const later = await trade()
      for (const followed of [events, webhooks]) {
        const next = await followed.again()
        expect(next.slice(0, followed.ids.length)).toEqual(followed.ids)
        expect(next.length).toBeGreaterThan(followed.ids.length)
        expect(new Set(next).size).toBe(next.length)
      }

      // A token of the original releases its two units once.
      const redeem = (redemptionId: string) =>
        shop.call('redeemProtectionAuthorization', { deviceId, redemptionId, replayProtectedNonce })
      expect(await redeem('r1')).toMatchObject({ status: 200, body: { success: true } })
      expect(await redeem('r2')).toMatchObject({ status: 200, body: { remaining: 0 } })
      expect(await redeem('r3')).toMatchObject({ status: 409, body: { reason: 'already_redeemed' } })
      expect(await ok('verifySecurityTagDeactivation', release)).toMatchObject({ deactivationAuthorized: false })
      expect(later.sold.transactionId).not.toBe(sold.transactionId)
      expect(await ok('fetchStock', { storeId, productId: products[1].productId })).toMatchObject({ success: true })
    })

    it('continues after an interruption at any transaction, and refuses clouds until it is complete', async () => {
      let runs = 0
      const step = async (): Promise<boolean> => {
        let reports = 0
        try {
          await copy({
            chunkRows: CHUNK_ROWS,
            // Ends each run after the second transaction.
            onCopied: () => void (reports++ === 2 && fail(new Error('killed'))),
          })
          return true
        } catch (error) {
          expect((error as Error).message).toBe('killed')
          return false
        }
      }
      while (!(await step())) {
        if (runs++ > 0) continue
        await expect(openDatabase({ url, ...realPlatform() }, fail)).rejects.toThrow(
          'the database contains an incomplete copy: run untag database copy again',
        )
        expect(isComplete).toBe(false)
      }
      expect(runs).toBeGreaterThan(5)
      expect(isComplete).toBe(true)
      expect(await query(`SELECT name FROM migration WHERE name LIKE 'copying%'`)).toEqual([])
      await expect(copy()).rejects.toThrow(/is not empty, and its content is no incomplete copy/)
    })

    it('finds each row that is missing, too many or changed', async () => {
      const stop = { complete: () => fail(new Error('stopped before the end')) }
      const tables = await copy({ ...stop }).catch((error: unknown) => String(error))
      expect(tables).toBe('Error: stopped before the end')
      const change = async (statement: string, back: string, found: RegExp) => {
        await query(statement)
        await expect(copy({ ...stop })).rejects.toThrow(found)
        await query(back)
      }
      await change(
        `UPDATE store SET lat = lat + 0.000001 WHERE lat IS NOT NULL`,
        `UPDATE store SET lat = lat - 0.000001 WHERE lat IS NOT NULL`,
        /the copy differs in 1 table \(store: a row differs: store_id = st_/,
      )
      await change(
        `INSERT INTO installation VALUES ('extra', 'x')`,
        `DELETE FROM installation WHERE name = 'extra'`,
        /installation: a row is not in SQLite: name = extra/,
      )
      await change(
        `DELETE FROM product_word WHERE word = (SELECT min(word) FROM product_word)`,
        'SELECT 1',
        /duplicate key|a row is missing: store_id/,
      )
    })

    it('refuses a database in use, and texts that PostgreSQL cannot store', async () => {
      const client = new pg.Client({ connectionString: url })
      await client.connect()
      await expect(copy()).rejects.toThrow('the database has 1 other connection: stop every program that uses it')
      // PostgreSQL hides from a role what the sessions of other roles are.
      const role = `copier_${randomBytes(4).toString('hex')}`
      await client.query(`CREATE ROLE ${role} LOGIN PASSWORD 'x'`)
      const asRole = Object.assign(new URL(url), { username: role, password: 'x' }).href
      await expect(copy({ url: asRole })).rejects.toThrow('the database has 1 other connection')
      await client.query(`DROP ROLE ${role}`)
      await client.end()
      await shop.cloud.db.database.write((db) =>
        db.insertInto('installation').values({ name: 'odd', value: 'a\0b' }).execute(),
      )
      await expect(copy()).rejects.toThrow(/installation contains a NUL character.*\(name = .*odd/)
    })
  },
)
