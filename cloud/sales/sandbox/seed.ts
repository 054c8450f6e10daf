import { completeCapabilities } from '../../../policy/devices.ts'
import { splitGtin14, encodeSgtin } from '../../../policy/gs1/sgtin.ts'
import { toGtin14 } from '../../../policy/gs1/gtin.ts'
import { assert } from '../../../policy/assert.ts'
import { newId } from '../../../policy/ids.ts'
import { comparableIdentifier } from '../../../policy/item-identifiers.ts'
import type { Platform } from '../../../policy/platform.ts'
import { ProtectionPolicy } from '../../../policy/store-policy.ts'
import { newProductRow } from '../../shop/catalogue/queries.ts'
import { writeProducts } from '../../shop/catalogue/write-products.ts'
import type { Tenant, Package } from '../../platform/foundation/caller.ts'
import { eurosOf } from '../../platform/operations/fields.ts'
import type { Db } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { nextItemSeq } from '../../protection/items/item-sequence.ts'
import { SANDBOX_PRODUCTS, type SandboxProduct } from './catalogue.ts'
import type { DeviceType, SecurityTagMode, WorkflowType } from '../../../policy/vocabulary.ts'
import { blankProgram, withSettings, type ProgramSettings } from '../../shop/loyalty/program-operations.ts'
import { saveProgram } from '../../shop/loyalty/queries.ts'
import type { ProgramType } from '../../shop/loyalty/schema.ts'

/** The loyalty program of a test store. Names are invented. */
interface SandboxProgram extends ProgramSettings {
  readonly name: string
  readonly type: ProgramType
}

interface ProgramSeed {
  tenant: Tenant
  storeId: string
  program: SandboxProgram
  platform: Platform
}

/** Creates the loyalty program of a test store. */
async function seedLoyalty(db: Db, { tenant, storeId, program, platform }: ProgramSeed): Promise<void> {
  const { name, type } = program
  await saveProgram(
    db,
    withSettings(blankProgram({ tenant, storeId, package: 'PRIME', name, type }, platform), program, platform),
  )
}

/** The two test stores of every account (ADR accounts). Names and addresses are invented. */
interface SandboxStore {
  readonly legalName: string
  readonly tradingName: string
  readonly street: string
  readonly city: string
  readonly postalCode: string
  readonly lat: number
  readonly lng: number
  readonly phone: string
  readonly email: string
  readonly package: Package
  readonly securityTagMode: SecurityTagMode
  readonly policy: Partial<ProtectionPolicy>
  readonly devices: readonly {
    readonly deviceType: DeviceType
    readonly name: string
    readonly workflowType?: WorkflowType
    readonly laneId?: string
    readonly gateId?: string
  }[]
  readonly loyalty: SandboxProgram
  /** Number of items to register for each tagged product. */
  readonly itemsPerProduct: number
}

const SANDBOX_STORES: readonly SandboxStore[] = [
  {
    legalName: 'Hafenkante Handels GmbH',
    tradingName: 'Hafenkante Hamburg',
    street: 'Am Speicher 12',
    city: 'Hamburg',
    postalCode: '20457',
    lat: 53.5446,
    lng: 9.9889,
    phone: '+4940555010100',
    email: 'hamburg@hafenkante.example',
    package: 'GROW',
    securityTagMode: 'station',
    policy: {},
    devices: [
      { deviceType: 'pos_deactivator', name: 'Servicestation', laneId: 'lane_1' },
      { deviceType: 'handheld_reader', name: 'Handgerät 1' },
    ],
    loyalty: {
      name: 'Hafenkante Stempelkarte',
      type: 'stamps',
      earningMethods: ['scan_and_go', 'qr_checkin'],
      rewards: [
        { name: 'Ein Heißgetränk', cost: 5 },
        { name: '10 € Einkaufsgutschein', cost: 10 },
      ],
      tiers: [],
    },
    itemsPerProduct: 1,
  },
  {
    legalName: 'Hafenkante Handels GmbH',
    tradingName: 'Hafenkante München',
    street: 'Lindenpassage 3',
    city: 'München',
    postalCode: '80331',
    lat: 48.1372,
    lng: 11.5755,
    phone: '+4989555010200',
    email: 'muenchen@hafenkante.example',
    package: 'PRIME',
    securityTagMode: 'rfid',
    policy: {
      // The default policy denies self service. The sandbox allows self service, so that developers can try it.
      allowedActionsByCategory: {
        '*': {
          detach_hard_tag: ['self_service', 'staff_assisted', 'pos_integrated'],
          deactivate_label: ['staff_assisted', 'pos_integrated'],
          authorize_exit: ['automatic_exit'],
          suppress_alarm: ['automatic_exit', 'staff_assisted'],
          unlock_fixture: ['staff_assisted'],
        },
      },
      requiresManualOverrideAboveValue: 200,
    },
    devices: [
      { deviceType: 'pos_deactivator', name: 'Servicestation', laneId: 'lane_1' },
      { deviceType: 'self_checkout_detacher', name: 'Selbstablöser 1', laneId: 'lane_2' },
      { deviceType: 'exit_gate', name: 'Ausgang', gateId: 'gate_1' },
      { deviceType: 'cabinet_unlocker', name: 'Vitrine Elektronik' },
    ],
    loyalty: {
      name: 'Hafenkante Club',
      type: 'tier',
      earningMethods: ['scan_and_go', 'click_collect', 'store_checkin', 'qr_checkin'],
      rewards: [
        { name: '5 € Einkaufsgutschein', cost: 250 },
        { name: 'Kostenlose Änderungsschneiderei', cost: 1_000 },
      ],
      tiers: [
        { name: 'Bronze', threshold: 100 },
        { name: 'Silber', threshold: 500 },
        { name: 'Gold', threshold: 2_000 },
      ],
    },
    itemsPerProduct: 3,
  },
]

/** Creates the sandbox of a new account: stores, products, devices and tagged items. */
export async function seedSandbox(db: Db, tenant: Tenant, platform: Platform): Promise<void> {
  const nowMs = platform.clock.wall()
  const products = SANDBOX_PRODUCTS.map((product) => productRow(product, tenant, newId('prd', platform), nowMs))
  await writeProducts(
    db,
    products.map((product) => ({ before: undefined, after: product, here: undefined, listing: undefined })),
  )
  for (const store of SANDBOX_STORES) await seedStore(db, tenant, store, products, platform)
}

/** Context for creating one store. */
interface Seeding {
  db: Db
  tenant: Tenant
  store: SandboxStore
  storeId: string
  platform: Platform
  nowMs: number
}

async function seedStore(
  db: Db,
  tenant: Tenant,
  store: SandboxStore,
  products: Row<'product'>[],
  platform: Platform,
): Promise<void> {
  const storeId = newId('st', platform)
  const seeding = { db, tenant, store, storeId, platform, nowMs: platform.clock.wall() }
  await insertStore(seeding)
  await listProducts(seeding, products)
  await insertDevices(seeding)
  await seedLoyalty(db, { tenant, storeId, program: store.loyalty, platform })
  await insertItems(seeding, products)
}

async function insertStore({ db, tenant, store, storeId, nowMs }: Seeding): Promise<void> {
  await db
    .insertInto('store')
    .values({
      store_id: storeId,
      tenant,
      legal_name: store.legalName,
      trading_name: store.tradingName,
      street: store.street,
      city: store.city,
      postal_code: store.postalCode,
      country_code: 'DE',
      lat: store.lat,
      lng: store.lng,
      phone: store.phone,
      email: store.email,
      package: store.package,
      has_scan_and_go: 1,
      has_offers: 1,
      security_tag_mode: store.securityTagMode,
      policy: JSON.stringify(ProtectionPolicy.parse(store.policy)),
      policy_version: 1,
      min_agent: null,
      document_version: 1,
      deny_seq: 0,
      created_ms: nowMs,
    })
    .execute()
}

async function listProducts({ db, storeId, nowMs }: Seeding, products: readonly Row<'product'>[]): Promise<void> {
  const listings = products.map((product) => ({
    before: product,
    after: product,
    here: undefined,
    listing: {
      store_id: storeId,
      price_cent: product.price_cent,
      old_price_cent: product.old_price_cent,
      updated_ms: nowMs,
    },
  }))
  await writeProducts(db, listings)
}

async function insertDevices({ db, tenant, store, storeId, platform, nowMs }: Seeding): Promise<void> {
  const rows = store.devices.map(({ deviceType, name, workflowType, laneId, gateId }) => {
    const { capabilities, supportedTechnologies } = completeCapabilities(deviceType, {})
    return {
      device_id: newId('dev', platform),
      tenant,
      store_id: storeId,
      device_type: deviceType,
      name,
      lane_id: laneId ?? null,
      gate_id: gateId ?? null,
      workflow_type: workflowType ?? null,
      till_id: null,
      capabilities: JSON.stringify(capabilities),
      technologies: JSON.stringify(supportedTechnologies),
      registered_ms: nowMs,
    }
  })
  await db.insertInto('device').values(rows).execute()
}

async function insertItems(
  { db, tenant, store, storeId, platform, nowMs }: Seeding,
  products: readonly Row<'product'>[],
): Promise<void> {
  const tagged = products.filter((p) => p.tagged === 1)
  const items = tagged.flatMap((product, n) =>
    Array.from({ length: store.itemsPerProduct }, (_, i) =>
      itemRow(product, {
        tenant,
        storeId,
        storeNo: SANDBOX_STORES.indexOf(store) + 1,
        itemId: newId('itm', platform),
        n,
        i,
        random: platform.random.bytes(7),
        nowMs,
      }),
    ),
  )
  const first = await nextItemSeq(db, storeId, items.length)
  await db
    .insertInto('protected_item')
    .values(items.map((item, i) => ({ ...item, item_seq: first + i })))
    .execute()
}

function productRow(
  { ean, name, vat, category, brand, tagged, requiresHumanVerification, ...product }: SandboxProduct,
  tenant: Tenant,
  productId: string,
  nowMs: number,
): Row<'product'> {
  const { priceCent, oldPriceCent, allergens, ...optional } = product
  const prices = { price: eurosOf(priceCent), ...(oldPriceCent !== undefined && { oldPrice: eurosOf(oldPriceCent) }) }
  const input = {
    name,
    vat,
    category,
    brand,
    tagged: tagged ?? true,
    ...prices,
    ...optional,
    ...(allergens && { allergens: [...allergens] }),
  }
  const flags = { requiresHumanVerification: requiresHumanVerification ?? false }
  return newProductRow({ ...input, flags }, { productId, tenant, ean, nowMs })
}

interface ItemSeed {
  tenant: Tenant
  storeId: string
  storeNo: number
  itemId: string
  /** Index of the product, and index of the item within the product. */
  n: number
  i: number
  random: Uint8Array
  nowMs: number
}

/** Every item has an EPC and a printed tag number. Every third item also has an NFC tag. */
function itemRow(
  product: Row<'product'>,
  { tenant, storeId, storeNo, itemId, n, i, random, nowMs }: ItemSeed,
): Omit<Row<'protected_item'>, 'item_seq'> {
  const serial = String(random.subarray(0, 4).reduce((sum, byte) => sum * 256 + byte, 0))
  const hasNfc = (n + i) % 3 === 0
  const tagId = `HT-${storeNo}-${String(n + 1).padStart(3, '0')}-${i + 1}`
  return {
    item_id: itemId,
    tenant,
    store_id: storeId,
    epc: epcOf(product.ean, serial),
    tag_uid: hasNfc ? `E004${Buffer.from(random.subarray(1, 7)).toString('hex').toUpperCase()}` : null,
    tag_id: tagId,
    tag_id_folded: comparableIdentifier('tagId', tagId),
    tag_technology: hasNfc ? 'NfcV' : null,
    protection_technology: 'uhf_rfid',
    serial_number: serial,
    product_id: product.product_id,
    ean: product.ean,
    brand: product.brand,
    category: product.category,
    price_cent: null,
    lot: null,
    expiry: null,
    serial,
    item_status: 'sellable',
    purchase_id: null,
    line_id: null,
    unit_no: null,
    rev: 1,
    created_ms: nowMs,
    updated_ms: nowMs,
  }
}

function epcOf(ean: string, serial: string): string {
  const gtin14 = toGtin14(ean)
  const split = gtin14 && splitGtin14(gtin14, ean.length === 8 ? 8 : 7)
  const encoded = split ? encodeSgtin({ scheme: 'sgtin-96', filter: 1, ...split, serial }) : undefined
  assert(encoded?.ok, `the sandbox catalogue has an EAN that cannot be an EPC: ${ean}`)
  return encoded.hex
}
