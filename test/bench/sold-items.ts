import { assert } from '../../policy/assert.ts'
import { newId } from '../../policy/ids.ts'
import { nextItemSeq } from '../../cloud/protection/items/item-sequence.ts'
import type { Platform } from '../../policy/platform.ts'
import type { Tenant } from '../../cloud/platform/foundation/caller.ts'
import type { Database, Db } from '../../cloud/platform/persistence/database.ts'
import type { Row } from '../../cloud/platform/persistence/schema.ts'

/** EPCs of paid items, and the device that may release them. */
export interface SoldItems {
  deviceId: string
  epcs: string[]
}

/** Rows per statement. SQLite accepts at most 32,766 values. */
const AT_ONCE = 500

/**
 * Inserts paid items, each in a separate purchase, so that each verification is a new grant. Writes directly to the
 * database, because a thousand checkouts would take longer than the bench.
 */
export async function sellItems(
  database: Database,
  tenant: Tenant,
  count: number,
  platform: Platform,
): Promise<SoldItems> {
  const { store, product, deviceId } = await findShop(database.reads, tenant)
  const epcs: string[] = []
  for (let done = 0; done < count; done += AT_ONCE) {
    epcs.push(
      ...(await database.write((db) => sellSome(db, store, product, Math.min(AT_ONCE, count - done), platform))),
    )
  }
  return { deviceId, epcs }
}

/** Finds the sandbox store with RFID, a product, and the self-checkout detacher. */
async function findShop(
  db: Db,
  tenant: Tenant,
): Promise<{ store: Row<'store'>; product: Row<'product'>; deviceId: string }> {
  const stores = db.selectFrom('store').selectAll().where('tenant', '=', tenant)
  const store = await stores.where('security_tag_mode', '=', 'rfid').executeTakeFirst()
  assert(store, 'the sandbox has no store with RFID')
  const products = db.selectFrom('product').selectAll().where('tenant', '=', tenant)
  const product = await products
    .where('category', '=', 'Bekleidung')
    .where('price_cent', '<', 10_000)
    .executeTakeFirst()
  assert(product, 'the sandbox sells no clothes')
  const devices = db.selectFrom('device').select('device_id').where('store_id', '=', store.store_id)
  const device = await devices.where('device_type', '=', 'self_checkout_detacher').executeTakeFirst()
  assert(device, 'the sandbox store has no detacher')
  return { store, product, deviceId: device.device_id }
}

/** The ids of the rows of one sold item. */
interface Sale {
  purchaseId: string
  lineId: string
  itemId: string
  epc: string
  cti: string
}

/** Values that all sales of one call share. */
interface Selling {
  db: Db
  store: Row<'store'>
  product: Row<'product'>
  platform: Platform
  nowMs: number
}

async function sellSome(
  db: Db,
  store: Row<'store'>,
  product: Row<'product'>,
  count: number,
  platform: Platform,
): Promise<string[]> {
  const selling = { db, store, product, platform, nowMs: platform.clock.wall() }
  const sales = Array.from({ length: count }, () => ({
    purchaseId: newId('pur', platform),
    lineId: newId('lin', platform),
    itemId: newId('itm', platform),
    epc: `30${Buffer.from(platform.random.bytes(11)).toString('hex').toUpperCase()}`,
    cti: Buffer.from(platform.random.bytes(16)).toString('hex'),
  }))
  await insertPurchases(selling, sales)
  await insertLines(selling, sales)
  await insertItems(selling, sales)
  return sales.map(({ epc }) => epc)
}

async function insertPurchases(
  { db, store, product, platform, nowMs }: Selling,
  sales: readonly Sale[],
): Promise<void> {
  await db
    .insertInto('purchase')
    .values(
      sales.map(({ purchaseId, cti }) => ({
        purchase_id: purchaseId,
        tenant: store.tenant,
        store_id: store.store_id,
        session_id: newId('ses', platform),
        checkout_session_id: newId('chk', platform),
        status: 'SUCCESS',
        currency: 'EUR',
        total_cent: product.price_cent,
        value_cent: product.price_cent,
        security_tag_mode: store.security_tag_mode,
        security_tag_status: 'pending',
        price_origin: 'server',
        cti,
        receipt_token: 'x'.repeat(300),
        receipt_exp: Math.floor(nowMs / 1_000) + 86_400,
        created_ms: nowMs,
        completed_ms: nowMs,
        rev: 2,
      })),
    )
    .execute()
}

/** Inserts the purchase lines, each with its one unit. */
async function insertLines({ db, store, product }: Selling, sales: readonly Sale[]): Promise<void> {
  await db
    .insertInto('purchase_line')
    .values(
      sales.map(({ purchaseId, lineId }) => ({
        line_id: lineId,
        purchase_id: purchaseId,
        tenant: store.tenant,
        line_no: 0,
        name: product.name,
        ean: product.ean,
        product_id: product.product_id,
        price_cent: product.price_cent,
        quantity: 1,
        vat: product.vat,
        category: product.category,
        brand: product.brand,
        price_origin: 'server',
        tagged: 1,
        came_back: 0,
      })),
    )
    .execute()
  await db
    .insertInto('purchase_unit')
    .values(
      sales.map(({ purchaseId, lineId, itemId }) => ({
        line_id: lineId,
        unit_no: 1,
        purchase_id: purchaseId,
        item_id: itemId,
        bound: 1,
        receipt_index: 0,
        taken_back: null,
      })),
    )
    .execute()
}

async function insertItems({ db, store, product, nowMs }: Selling, sales: readonly Sale[]): Promise<void> {
  const first = await nextItemSeq(db, store.store_id, sales.length)
  await db
    .insertInto('protected_item')
    .values(
      sales.map(({ purchaseId, lineId, itemId, epc }, i) => ({
        item_id: itemId,
        tenant: store.tenant,
        store_id: store.store_id,
        epc,
        protection_technology: 'uhf_rfid',
        product_id: product.product_id,
        ean: product.ean,
        brand: product.brand,
        category: product.category,
        item_status: 'paid',
        purchase_id: purchaseId,
        line_id: lineId,
        unit_no: 1,
        rev: 2,
        created_ms: nowMs,
        updated_ms: nowMs,
        item_seq: first + i,
      })),
    )
    .execute()
}
