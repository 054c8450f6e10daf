import { createHash } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { decodeJwt, decodeProtectedHeader } from 'jose'
import sharp from 'sharp'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { itemPage } from '../../../cloud/protection/agents/documents/item-pages.ts'
import { pruneRemovedNames, renumberItems, refreshItems } from '../../../cloud/protection/items/item-sequence.ts'
import { findStore } from '../../../cloud/platform/stores/queries.ts'
import { openItemFile } from '../../../edge-agent/items/item-file.ts'
import { Replica } from '../../../edge-agent/items/replica.ts'
import { ItemsClaims, PICTURE_BYTES_LIMIT } from '../../../policy/documents/item-documents.ts'
import type { FreshClaims } from '../../../policy/documents/store-documents.ts'
import { virtualPlatform } from '../../verification/simulation/virtual/virtual-platform.ts'
import type { Json } from '../../support/cloud.ts'
import { inFullSizeOnEveryDatabase, temporaryFolder } from '../../support/databases.ts'
import { newEan, newEpc, openShop, type Shop } from '../../support/shop.ts'
import { enrolTestAgent, type TestAgent } from '../../support/test-agent.ts'

inFullSizeOnEveryDatabase('the item sequence of a store', (kind) => {
  let shop: Shop
  let agent: TestAgent
  let replica: Replica
  const folder = temporaryFolder('items')
  const log = {
    info: () => undefined,
    warn: () => undefined,
    error: (fields: object) => expect(fields).toBeUndefined(),
  }

  beforeAll(async () => {
    // The cloud's own refresh of items would change the sequence during a test.
    shop = await openShop(kind, { platform: virtualPlatform() })
    agent = await enrolTestAgent(shop)
    replica = new Replica({
      disk: openItemFile(join(folder, 'items.db'), (error) => expect(error).toBeUndefined()),
      platform: virtualPlatform(),
      log,
    })
  })
  afterAll(async () => {
    replica.close()
    await shop.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  async function fetchOnce(cursor?: string): Promise<string | undefined> {
    const { status, body } = await agent.call('fetchSignedDocuments', {
      have: { items: replica.position() },
      ...(cursor !== undefined && { cursor }),
    })
    expect(status).toBe(200)
    for (const jws of body.documents as string[]) {
      const { typ } = decodeProtectedHeader(jws)
      if (typ === 'items+jwt') replica.applyPage(ItemsClaims.parse(decodeJwt(jws)))
      if (typ === 'fresh+jwt') replica.compareHead(decodeJwt<FreshClaims>(jws).items, shop.cloud.platform.clock.wall())
    }
    return body.nextCursor
  }

  async function sync(): Promise<void> {
    let cursor: string | undefined
    do cursor = await fetchOnce(cursor)
    while (cursor !== undefined)
    expect(replica.isBehind).toBe(false)
  }

  const rows = () =>
    shop.cloud.db.database.reads.selectFrom('protected_item').selectAll().where('store_id', '=', shop.storeId).execute()
  /** Expects that the replica finds every item of the store by each of its names. */
  async function expectSame(): Promise<void> {
    await sync()
    const expected = (await rows()).flatMap((row) =>
      [row.epc, row.tag_uid, row.tag_id]
        .map((name, i) => [i, name, row.item_status] as const)
        .filter(([, name]) => name !== null),
    )
    const kinds = ['epc', 'tagUid', 'tagId'] as const
    expect(expected.map(([i, name]) => [i, name, replica.find(kinds[i] ?? 'epc', name ?? '')?.status])).toEqual(
      expected,
    )
    expect(replica.size).toBe(expected.length)
  }
  const statusOf = (epc: string) => replica.find('epc', epc)

  it('begins with the existing items of the sandbox', async () => {
    await expectSame()
    expect(replica.size).toBeGreaterThan(50)
    const [row] = await rows()
    expect(statusOf(row?.epc ?? '')).toMatchObject({
      status: 'sellable',
      category: expect.any(String),
      priceCent: expect.any(Number),
      paying: false,
    })
  })

  it('contains brand, technology and, after the sale, the paid price', async () => {
    const [product] = shop.products
    const epc = newEpc()
    const own = { epc, ean: product.ean, price: 777, brand: 'Nordhof', protectionTechnology: 'uhf_rfid' }
    await shop.ok('registerProtectedItems', { storeId: shop.storeId, items: [own] })
    await sync()
    expect(statusOf(epc)).toMatchObject({ priceCent: 77_700, brand: 'Nordhof', technology: 'uhf_rfid' })
    const { sessionId } = await shop.ok('checkIn', { storeId: shop.storeId, userId: 'shopper-1' })
    const { transactionId } = await shop.ok('startCheckout', {
      sessionId,
      items: [{ ean: product.ean, quantity: 1, epcs: [epc] }],
    })
    await shop.ok('completeTestCheckout', { transactionId })
    await sync()
    expect(statusOf(epc)?.priceCent).toBeLessThan(77_700)
    expect(statusOf(epc)).toMatchObject({ status: 'paid', brand: 'Nordhof' })
  })

  it('publishes when an item is being paid, paid, cancelled and returned', async () => {
    const [product] = shop.products
    const { epc } = await shop.newItem(product)
    await sync()
    expect(statusOf(epc)).toMatchObject({ status: 'sellable', paying: false })
    const { sessionId } = await shop.ok('checkIn', { storeId: shop.storeId, userId: 'shopper-1' })
    const { transactionId } = await shop.ok('startCheckout', {
      sessionId,
      items: [{ ean: product.ean, quantity: 1, epcs: [epc] }],
    })
    await sync()
    expect(statusOf(epc)).toMatchObject({ status: 'sellable', paying: true })
    await shop.ok('completeTestCheckout', { transactionId })
    await sync()
    expect(statusOf(epc)).toMatchObject({ status: 'paid', paying: false })
    await shop.ok('markPurchaseCancelled', { purchaseId: transactionId })
    await sync()
    expect(statusOf(epc)).toMatchObject({ status: 'cancelled', paying: false })
    await shop.ok('updateItemStatus', { storeId: shop.storeId, epc, itemStatus: 'sellable' })
    const again = await shop.ok('startCheckout', { sessionId, items: [{ ean: product.ean, quantity: 1, epcs: [epc] }] })
    await shop.ok('completeTestCheckout', { transactionId: again.transactionId, result: 'declined' })
    await expectSame()
    expect(statusOf(epc)).toMatchObject({ status: 'sellable', paying: false })
  })

  it('publishes items reserved for an order, handed over and freed', async () => {
    const [, product] = shop.products
    const { epc } = await shop.newItem(product)
    const order = async () =>
      (await shop.ok('submitClickCollectOrder', {
        storeId: shop.storeId,
        userId: 'shopper-1',
        items: [{ ean: product.ean, quantity: 1 }],
      })) as Json
    const { orderId } = await order()
    await expectSame()
    await shop.ok('updateClickCollectStatus', { orderId, status: 'cancelled' })
    await expectSame()
    expect(statusOf(epc)?.status).toBe('sellable')
  })

  it('removes a name that moves to another item', async () => {
    const [product] = shop.products
    const [first, second] = [newEpc(), newEpc()]
    const register = (fields: Json) =>
      shop.ok('registerProtectedItems', { storeId: shop.storeId, items: [{ ean: product.ean, ...fields }] })
    await register({ tagId: 'HT-give', epc: first })
    await sync()
    await register({ tagId: 'HT-give', epc: second })
    await expectSame()
    expect([statusOf(first), statusOf(second)?.status]).toEqual([undefined, 'sellable'])
    await register({ tagId: 'HT-take', epc: first, itemStatus: 'exception_hold' })
    await expectSame()
    expect(statusOf(first)?.status).toBe('exception_hold')
  })

  it('removes goods that move to another store and adds them when they return', async () => {
    const [product] = shop.products
    const epc = newEpc()
    const register = (storeId: string) =>
      shop.ok('registerProtectedItems', { storeId, items: [{ epc, tagId: 'HT-sent' }] })
    const send = (storeId: string) => shop.ok('updateItemStatus', { storeId, epc, itemStatus: 'transfer_in_transit' })
    await shop.ok('registerProtectedItems', {
      storeId: shop.storeId,
      items: [{ ean: product.ean, epc, tagId: 'HT-sent' }],
    })
    await send(shop.storeId)
    await expectSame()
    expect(statusOf(epc)?.status).toBe('transfer_in_transit')
    expect(await register(shop.otherStoreId)).toMatchObject({ registered: 1 })
    await expectSame()
    expect([statusOf(epc), replica.find('tagId', 'HT-sent')]).toEqual([undefined, undefined])
    await send(shop.otherStoreId)
    expect(await register(shop.storeId)).toMatchObject({ registered: 1 })
    await expectSame()
    expect([statusOf(epc)?.status, replica.find('tagId', 'HT-sent')?.status]).toEqual(['sellable', 'sellable'])
  })

  it('makes only agents that missed a deleted removal load all items again', async () => {
    const [product] = shop.products
    const epc = newEpc()
    await shop.ok('registerProtectedItems', {
      storeId: shop.storeId,
      items: [{ ean: product.ean, tagId: 'HT-late', epc }],
    })
    await sync()
    const before = replica.position()
    await shop.ok('registerProtectedItems', {
      storeId: shop.storeId,
      items: [{ ean: product.ean, tagId: 'HT-late', epc: newEpc() }],
    })
    await shop.newItem(product)
    await shop.cloud.db.database.write((db) =>
      pruneRemovedNames(db, shop.cloud.platform.clock.wall() + 31 * 86_400_000),
    )
    await fetchOnce()
    expect(replica.position()).toEqual([0, 0])
    expect(replica.isBehind).toBe(true)
    await expectSame()
    expect(statusOf(epc)).toBeUndefined()
    expect(replica.position()[1]).toBeGreaterThan(before[1])
  })

  it('numbers concurrent changes without gaps, and concurrent readers miss none', async () => {
    const [product] = shop.products
    const epcs = Array.from({ length: 12 }, newEpc)
    await Promise.all([
      ...epcs.map((epc) =>
        shop.ok('registerProtectedItems', { storeId: shop.storeId, items: [{ ean: product.ean, epc }] }),
      ),
      ...Array.from({ length: 6 }, () => fetchOnce()),
    ])
    await Promise.all([
      ...epcs.map((epc) =>
        shop.ok('updateItemStatus', { storeId: shop.storeId, epc, itemStatus: 'transfer_in_transit' }),
      ),
      ...Array.from({ length: 6 }, () => fetchOnce()),
    ])
    await expectSame()
    const numbers = (await rows()).map((row) => row.item_seq)
    expect(new Set(numbers).size).toBe(numbers.length)
  })

  it('is split into pages that fit a bundle, several in one response', async () => {
    const [product] = shop.products
    const long = (n: number) => `${'X'.repeat(120)}${String(n).padStart(6, '0')}`
    for (let i = 0; i < 5; i++) {
      const items = Array.from({ length: 400 }, (_, n) => ({
        ean: product.ean,
        epc: newEpc(),
        tagId: long(i * 1_000 + n),
        category: `Kategorie ${i * 400 + n} ${'ü'.repeat(90)}`,
      }))
      await shop.ok('registerProtectedItems', { storeId: shop.storeId, items })
    }
    const { body } = await agent.call('fetchSignedDocuments', { have: { items: [0, 0] } })
    const pages = (body.documents as string[]).filter((jws) => decodeProtectedHeader(jws).typ === 'items+jwt')
    expect(pages.length).toBeGreaterThan(2)
    expect(Math.max(...pages.map((jws) => jws.length))).toBeLessThan(262_144)
    await expectSame()
  })

  it('publishes the changes of an account although another one changes many products', async () => {
    const { cloud, db } = shop.cloud
    const key = await shop.cloud.key('secret', 'test', { account: `younger-${newEan()}`, package: 'PRIME' })
    const { stores } = await shop.cloud.ok(key, 'fetchStores')
    const [other] = [...(stores as Json[])]
      .map(({ storeId }) => storeId as string)
      .sort()
      .reverse()
    const change = async (of: string, storeId: string, eans: readonly string[], price: number) => {
      const products = eans.map((ean) => ({ ean, name: 'Hemd', price, vat: 19 }))
      await shop.cloud.ok(of, 'bulkImportProducts', { storeId, products })
    }
    const many = Array.from({ length: 450 }, newEan)
    const tags = (eans: readonly string[]) => eans.map((ean) => ({ ean, epc: newEpc() }))
    await change(shop.key, shop.storeId, many, 10)
    await shop.ok('registerProtectedItems', { storeId: shop.storeId, items: tags(many) })
    const few = [newEan()]
    await change(key, other ?? '', few, 10)
    await shop.cloud.ok(key, 'registerProtectedItems', { storeId: other, items: tags(few) })
    await change(shop.key, shop.storeId, many, 11)
    await change(key, other ?? '', few, 11)
    const turns: string[] = []
    const agents = {
      ...cloud.services.agents,
      itemsChanged: (storeId: string) => Promise.resolve(void turns.push(storeId)),
    }
    await refreshItems(db.database, { log, agents, platform: cloud.services.platform })
    expect(turns.slice(0, 4)).toContain(other)
    expect(turns.filter((storeId) => storeId === shop.storeId).length).toBeGreaterThan(20)
    await sync()
  })

  it('publishes the items of a product again after its price, name or picture changed', async () => {
    const [, , product] = shop.products
    const { services } = shop.cloud.cloud
    const refresh = () => refreshItems(shop.cloud.db.database, services)
    const waiting = async () =>
      (await shop.cloud.db.database.reads.selectFrom('item_refresh').selectAll().execute()).filter(
        ({ store_id }) => store_id === shop.storeId,
      ).length
    await refresh()
    const epcs = Array.from({ length: 130 }, newEpc)
    const own = newEpc()
    await shop.ok('registerProtectedItems', {
      storeId: shop.storeId,
      items: [...epcs.map((epc) => ({ ean: product.ean, epc })), { ean: product.ean, epc: own, price: 12 }],
    })
    await sync()
    const { productId } = product
    await shop.ok('updateProduct', { productId, storeId: shop.storeId, price: 55, brand: 'Elbtuch' })
    expect(await waiting()).toBe(1)
    await refresh()
    expect(await waiting()).toBe(0)
    await sync()
    for (const epc of epcs) expect(statusOf(epc)).toMatchObject({ priceCent: 5_500, brand: 'Elbtuch' })
    expect(statusOf(own)).toMatchObject({ priceCent: 1_200, brand: 'Elbtuch' })
    await expectSame()
    // An unchanged product, and products without items, publish nothing.
    await shop.ok('updateProduct', { productId, storeId: shop.storeId, price: 55, brand: 'Elbtuch' })
    await shop.ok('insertProduct', {
      storeId: shop.storeId,
      ean: newEan(),
      name: 'Neu',
      price: 3,
      vat: 19,
      category: 'x',
    })
    expect(await waiting()).toBe(0)
    await shop.ok('removeProductFromStore', { productId, storeId: shop.storeId })
    expect(await waiting()).toBe(1)
    await refresh()
    await expectSame()
  })

  it('names a small picture by its hash, and returns it to agents that request it', async () => {
    const [product] = shop.products
    const width = 900
    const photo = sharp({
      create: {
        width,
        height: 600,
        channels: 3,
        background: '#808080',
        noise: { type: 'gaussian', mean: 128, sigma: 90 },
      },
    })
    const imageBase64 = (await photo.png().toBuffer()).toString('base64')
    await shop.ok('uploadImageToProduct', { productId: product.productId, imageBase64 })
    await shop.ok('registerProtectedItems', { storeId: shop.storeId, items: [{ ean: product.ean, epc: newEpc() }] })
    const { body } = await agent.call('fetchSignedDocuments', { have: { items: replica.position() } })
    const page = (body.documents as string[]).find((jws) => decodeProtectedHeader(jws).typ === 'items+jwt') ?? ''
    const { entries, pictures = [] } = ItemsClaims.parse(decodeJwt(page))
    const named = pictures[entries.at(-1)?.picture ?? -1] ?? ''
    const answer = await agent.call('fetchSignedDocuments', { have: {}, pictures: [named, 'A'.repeat(43)] })
    const [bytes, ...others] = (answer.body.pictures as string[]).map((text) => Buffer.from(text, 'base64url'))
    expect(others).toEqual([])
    expect(
      createHash('sha256')
        .update(bytes ?? '')
        .digest('base64url'),
    ).toBe(named)
    expect(bytes?.length).toBeLessThanOrEqual(PICTURE_BYTES_LIMIT)
    expect(await sharp(bytes).metadata()).toMatchObject({ format: 'webp' })
    await sync()
  })

  it('stores the position of each agent', async () => {
    await sync()
    const [, reported] = replica.position()
    await fetchOnce()
    const row = await shop.cloud.db.database.reads
      .selectFrom('agent')
      .select('item_seq')
      .where('agent_id', '=', agent.agentId)
      .executeTakeFirstOrThrow()
    expect(row.item_seq).toBe(reported)
  })

  it('returns an empty page for a position behind the end', async () => {
    const { database } = shop.cloud.db
    const store = await findStore(database.reads, shop.storeId)
    if (!store) throw new Error('no store')
    const { jws, ver } = await itemPage(database.reads, store, 1_000_000, shop.cloud.cloud.services)
    expect([ver, decodeJwt<ItemsClaims>(jws).entries]).toEqual([1_000_000, []])
    await database.write((db) => renumberItems(db, shop.storeId, []))
    await expectSame()
  })
})
