// @module-tag extended
import { generateKeyPairSync } from 'node:crypto'
import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { benchProduct } from './catalogue/products.ts'
import { askPool, barePool, hashOf, type BareCall, type BareCaller } from './postgres/bare-context.ts'
import { fetchProducts, insertProduct } from './postgres/bare-products.ts'
import { checkIn, completeTestCheckout, startCheckout } from './postgres/bare-purchase.ts'
import { verifyProtectedItem } from './postgres/bare-verify.ts'
import { prepareShops, type Shop } from './postgres/prepare-shops.ts'
import { CALLER, OWN_TABLES } from './postgres/statements.ts'
import { realPlatform } from '../../host/platform.ts'
import { newDatabase, type TestDatabase } from '../support/databases.ts'

const has = inject('postgresUrl') !== ''

describe.skipIf(!has)(`the statements of bare pg${has ? '' : ' (skipped: install the package postgresql)'}`, () => {
  const platform = realPlatform()
  const { privateKey: key } = generateKeyPairSync('ed25519')
  let server: TestDatabase
  let pool: pg.Pool
  let shops: Shop[]
  let call: BareCall

  beforeAll(async () => {
    server = await newDatabase('postgres')
    shops = await prepareShops(server.database, { items: [3, 0], products: 60 }, platform)
    const { url } = server.location as { url: string }
    pool = barePool(url)
    await pool.query(OWN_TABLES)
    call = await callOf(shops[0]!)
  })
  afterAll(async () => {
    await pool.end()
    await server.database.close()
    await server.remove()
  })

  async function callOf(shop: Shop): Promise<BareCall> {
    const ask = askPool(pool)
    const nowMs = platform.clock.wall()
    const [caller] = await ask<BareCaller>(CALLER, [hashOf(shop.authorization.slice('Bearer '.length)), nowMs])
    return { caller: caller!, nowMs, platform, key, ask }
  }
  const rows = async (table: string) =>
    (await pool.query<{ count: number }>(`select count(*) from ${table}`)).rows[0]?.count

  it('lease a right to one of several requests at the same time', async () => {
    const { deviceId, epcs } = shops[0]!
    const request = { deviceId, protectionAction: 'detach_hard_tag', epc: epcs[0]! } as const
    const results = await Promise.allSettled(Array.from({ length: 8 }, () => verifyProtectedItem(call, request)))
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect(await rows('unit_right')).toBe(1)
    expect(await rows('protection_authorization')).toBe(1)
    expect(await rows('protection_event')).toBe(2)
  })

  it('grant nothing on an item or a purchase that has changed since it was read', async () => {
    const { deviceId, epcs } = shops[0]!
    const ask: BareCall['ask'] = async (statement, values) => {
      if (statement.name === 'grant') await pool.query('update purchase set rev = rev + 1')
      return call.ask(statement, values)
    }
    const request = { deviceId, protectionAction: 'detach_hard_tag', epc: epcs[1]! } as const
    await expect(verifyProtectedItem({ ...call, ask }, request)).rejects.toThrow('another device was faster')
    expect(await rows('protection_authorization')).toBe(1)
    expect(await rows('unit_right')).toBe(1)
  })

  it('store a product once, and count it', async () => {
    const { growingStoreId: storeId } = shops[0]!
    const insert = () => insertProduct(call, { storeId, ...benchProduct(1_000) })
    const inserted = await Promise.allSettled([insert(), insert(), insert()])
    expect(inserted.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected', 'rejected'])
    const page = JSON.parse(await fetchProducts(call, { storeId, limit: 50 })) as { total: number; products: object[] }
    expect(page).toMatchObject({ total: 1, products: [{ ean: benchProduct(1_000).ean }] })
    expect(await rows('outbox_event')).toBe(1)
  })

  it('pay a purchase once', async () => {
    const { sessionId } = JSON.parse(await checkIn(call, { storeId: shops[0]!.storeId })) as { sessionId: string }
    const { ean } = benchProduct(3)
    const { transactionId } = JSON.parse(await startCheckout(call, { sessionId, items: [{ ean }] })) as {
      transactionId: string
    }
    const before = (await rows('outbox_event')) ?? 0
    const pay = () => completeTestCheckout(call, { transactionId })
    const paid = await Promise.allSettled([pay(), pay(), pay()])
    expect(paid.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected', 'rejected'])
    expect(await rows('outbox_event')).toBe(before + 1)
  })

  it('show nothing to another account', async () => {
    const other = await callOf(shops[1]!)
    const { storeId, growingStoreId, deviceId, epcs } = shops[0]!
    await expect(fetchProducts(other, { storeId, limit: 50 })).rejects.toThrow('no such store')
    await expect(insertProduct(other, { storeId: growingStoreId, ...benchProduct(2_000) })).rejects.toThrow('no such')
    await expect(checkIn(other, { storeId })).rejects.toThrow('no such store')
    const request = { deviceId, protectionAction: 'detach_hard_tag', epc: epcs[2]! } as const
    await expect(verifyProtectedItem(other, request)).rejects.toThrow()
  })
})
