import { knownCaller } from '../../platform/foundation/caller.ts'
import { notFound } from '../../platform/foundation/failure.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { Db } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { listDocuments } from '../catalogue/queries.ts'
import type { Product } from '../catalogue/schema.ts'
import { centsOf } from '../../platform/operations/fields.ts'
import { listStores } from '../../platform/stores/queries.ts'
import { toListed, toDetail, type OfferDetail } from './list-offers.ts'
import { discountedPrice } from './price-rules.ts'
import { newGroup, type OfferContent } from './make-offer.ts'
import { assertMayChangeAllBranches } from './queries.ts'
import { DEFAULT_COLOR } from './schema.ts'
import { hash } from 'node:crypto'
import { crockford } from '../../../policy/base32.ts'
import type { Randomness } from '../../../policy/platform.ts'

/**
 *  time 6 │ stores 4 │ branch 2 │ kind 1 │ random 3 │ check 5     bytes, as Crockford Base32
 *
 * Offers of test keys are not stored, so the id itself contains the mock offer. The check bytes bind the id to its
 * tenant, so the ids of other accounts are not found. The check is short, because it protects only mock data.
 */
interface SandboxId {
  /** ms since 1970 */
  createdMs: number
  /** Bit n is set if the offer is in the tenant's n-th store. */
  stores: number
  branch: number
  /** Index of a preconfigured offer, or `CREATED`. */
  kind: number
  randomPart: number
}

const CREATED = 255
/** Branch number in the id of a group. */
const GROUP = 0xffff
const PAYLOAD_BYTES = 16
const CHECK_BYTES = 5

function checkOf(tenant: string, payload: Uint8Array): Uint8Array {
  return hash('sha256', Buffer.concat([Buffer.from(`sandbox offer\0${tenant}\0`), payload]), 'buffer').subarray(
    0,
    CHECK_BYTES,
  )
}

function encode(prefix: string, tenant: string, { createdMs, stores, branch, kind, randomPart }: SandboxId): string {
  const payload = Buffer.alloc(PAYLOAD_BYTES)
  payload.writeUIntBE(createdMs, 0, 6)
  payload.writeUInt32BE(stores >>> 0, 6)
  payload.writeUInt16BE(branch, 10)
  payload.writeUInt8(kind, 12)
  payload.writeUIntBE(randomPart, 13, 3)
  return `${prefix}_${crockford.encode(Buffer.concat([payload, checkOf(tenant, payload)]))}`
}

/** Id of a branch document. */
export function branchId(tenant: string, id: SandboxId): string {
  return encode('off', tenant, id)
}

/** True if a text has the form of the ids that `branchId` returns. Ids of live offers are shorter. */
export function isSandboxOfferId(text: string): boolean {
  return /^off_[0-9A-HJKMNP-TV-Z]{34}$/.test(text)
}

/** Id of the group. */
export function groupIdOf(tenant: string, id: SandboxId): string {
  return encode('grp', tenant, { ...id, branch: GROUP })
}

/** Decodes an id of this tenant; undefined for any other text. */
export function readSandboxId(tenant: string, text: string): SandboxId | undefined {
  const match = /^(?:off|grp)_([0-9A-Z]{34})$/.exec(text)
  const bytes = match?.[1] === undefined ? undefined : crockford.decode(match[1])
  if (bytes?.length !== PAYLOAD_BYTES + CHECK_BYTES) return undefined
  const payload = Buffer.from(bytes.subarray(0, PAYLOAD_BYTES))
  if (!checkOf(tenant, payload).every((byte, i) => byte === bytes[PAYLOAD_BYTES + i])) return undefined
  const branch = payload.readUInt16BE(10)
  return {
    createdMs: payload.readUIntBE(0, 6),
    stores: payload.readUInt32BE(6),
    branch: branch === GROUP ? 0 : branch,
    kind: payload.readUInt8(12),
    randomPart: payload.readUIntBE(13, 3),
  }
}

/** Three random bytes, so that two offers that are created at the same time have different ids. */
function newRandomPart(random: Randomness): number {
  return Buffer.from(random.bytes(3)).readUIntBE(0, 3)
}

/** Mock offers for test keys. Nothing is stored. Responses have the form of live mode (ADR accounts). */

const DAY_MS = 24 * 3_600_000
/** Maximum number of stores that an id can refer to. */
const STORES_NAMED = 32
/** Bit mask of the stores of the preconfigured offers: the tenant's first two stores. */
const PRECONFIGURED = 0b11

interface MockOffer {
  title: string
  description: string
  /** Start, in days from today. */
  from: number
  to: number
  productCount: number
  discountPercent: number
}

const MOCK_OFFERS: readonly MockOffer[] = [
  {
    title: 'Herbstwochen',
    description: 'Jacken und Strick bis zu 30 % günstiger.',
    from: -3,
    to: 11,
    productCount: 4,
    discountPercent: 30,
  },
  {
    title: 'Adventsangebote',
    description: 'Ab nächster Woche: Spielwaren bis zu 20 % günstiger.',
    from: 7,
    to: 35,
    productCount: 6,
    discountPercent: 20,
  },
  {
    title: 'Sommerschlussverkauf',
    description: 'Restposten bis zu 50 % günstiger.',
    from: -40,
    to: -12,
    productCount: 3,
    discountPercent: 50,
  },
]

interface SandboxOffer {
  group: Row<'offer_group'>
  storeIds: string[]
  /** One id for each store. */
  offerIds: string[]
  /** Id of the branch document by which the response names the offer. */
  named: string
}

/** True if the caller uses a test key. */
export function isSandbox(call: Call): boolean {
  return knownCaller(call.caller).mode === 'test'
}

/** Builds the response of a creation without storing anything. */
export async function mockCreatedOffer(
  call: Call,
  content: OfferContent,
  storeIds: readonly string[],
  like: Pick<Row<'offer_group'>, 'discount_percent'>,
): Promise<SandboxOffer> {
  const { tenant } = knownCaller(call.caller)
  const known = (await listStores(call.db, tenant, STORES_NAMED)).map((store) => store.store_id)
  const stores = known.reduce((mask, id, n) => (storeIds.includes(id) ? mask | (1 << n) : mask), 0)
  const id: SandboxId = {
    createdMs: call.nowMs,
    stores,
    branch: 0,
    kind: CREATED,
    randomPart: newRandomPart(call.services.platform.random),
  }
  const group = newGroup(call, content, storeIds, [])
  const offerIds = storeIds.map((_, branch) => branchId(tenant, { ...id, branch }))
  const lead = offerIds[0] ?? ''
  return {
    group: { ...group, group_id: groupIdOf(tenant, id), lead_id: lead, discount_percent: like.discount_percent },
    storeIds: [...storeIds],
    offerIds,
    named: lead,
  }
}

/** Decodes a mock offer from its id. Throws 404 for other ids, as in live mode. */
export async function mockOffer(call: Call, offerId: string): Promise<SandboxOffer> {
  const id = readSandboxId(knownCaller(call.caller).tenant, offerId)
  if (!id) throw notFound('offer')
  const offer = await offerOf(call, id)
  assertMayChangeAllBranches(call, offer.storeIds, offer.storeIds[0] ?? '')
  return offer
}

/** The preconfigured offers of a sandbox, the newest first. */
export async function mockOffers(call: Call): Promise<SandboxOffer[]> {
  const { tenant } = knownCaller(call.caller)
  const [first] = await listStores(call.db, tenant, 1)
  if (!first) return []
  const ids = MOCK_OFFERS.map((_, kind) => ({
    createdMs: first.created_ms,
    stores: PRECONFIGURED,
    branch: 0,
    kind,
    randomPart: 0,
  }))
  const offers = await Promise.all(ids.map((id) => offerOf(call, id)))
  return offers.sort((a, b) => (a.group.lead_id < b.group.lead_id ? 1 : -1))
}

/**
 * Adds products to a mock offer: the first products of the sandbox's catalogue, reduced by the offer's discount.
 *
 * @param visible Stores that the caller may see; null for all.
 */
export async function mockDetail(
  call: Call,
  { group, storeIds }: SandboxOffer,
  visible: readonly string[] | null,
): Promise<OfferDetail> {
  const shown = storeIds.filter((id) => visible === null || visible.includes(id))
  const listed = toListed(group, shown, { clicks: 0, favorites: 0 }, call.nowMs)
  const page = { after: undefined, offset: 0, limit: group.product_count }
  const documents = storeIds[0] === undefined ? [] : await listDocuments(call.db, storeIds[0], page)
  const products = documents.map(({ doc }) => {
    const { ean, name, price } = JSON.parse(doc) as Product
    const oldPriceCent = centsOf(price)
    return { ean, name, oldPriceCent, priceCent: discountedPrice(oldPriceCent, group.discount_percent) }
  })
  return toDetail(
    listed,
    shown.map((storeId) => ({ storeId, products })),
  )
}

/** Stores that the id of a mock offer refers to. */
export async function storesNamedBy(db: Db, tenant: string, { stores }: Pick<SandboxId, 'stores'>): Promise<string[]> {
  return (await listStores(db, tenant, STORES_NAMED))
    .filter((_, n) => (stores & (1 << n)) !== 0)
    .map((store) => store.store_id)
}

async function offerOf(call: Call, id: SandboxId): Promise<SandboxOffer> {
  const { tenant } = knownCaller(call.caller)
  const storeIds = await storesNamedBy(call.db, tenant, id)
  const mock = MOCK_OFFERS[id.kind]
  const today = Math.floor(call.nowMs / DAY_MS) * DAY_MS
  const validity = mock
    ? { fromMs: today + mock.from * DAY_MS, toMs: today + mock.to * DAY_MS }
    : { fromMs: id.createdMs, toMs: id.createdMs + 14 * DAY_MS }
  const content: OfferContent = {
    title: mock?.title ?? 'Sandbox-Angebot',
    description: mock?.description ?? 'In der Sandbox wird kein Angebot gespeichert.',
    merchantColor: DEFAULT_COLOR,
    tags: [],
    imageUrl: null,
    quantity: null,
    validity,
  }
  const leadId = branchId(tenant, { ...id, branch: 0 })
  return {
    group: {
      ...newGroup(call, content, storeIds, []),
      group_id: groupIdOf(tenant, id),
      lead_id: leadId,
      product_count: mock?.productCount ?? 1,
      discount_percent: mock?.discountPercent ?? 0,
      created_ms: id.createdMs,
    },
    storeIds,
    offerIds: storeIds.map((_, branch) => branchId(tenant, { ...id, branch })),
    named: branchId(tenant, id),
  }
}
