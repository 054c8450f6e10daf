import { z } from 'zod'
import { knownCaller, rolesFrom } from '../../platform/foundation/caller.ts'
import { iso, Limit, Offset, Success } from '../../platform/operations/fields.ts'
import { operation, type Call } from '../../platform/operations/operation.ts'
import { cursorField, toPage, pageLimits } from '../../platform/operations/paging.ts'
import { ownStores } from '../../platform/stores/own-store.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { Day } from '../analytics/schema.ts'
import { addDays, startOfDay } from '../analytics/store-days.ts'
import { cloneOffer as makeClone, makeOffer, type OfferContent } from './make-offer.ts'
import { presentOffers, toListed } from './list-offers.ts'
import { discountOf, offerProducts } from './offer-products.ts'
import {
  scopeOf,
  offerIdOf,
  offerOfCaller,
  type OfferOfCaller,
  countGroups,
  listGroups,
  deleteBranches,
  deleteGroup,
  dropUnusedLists,
} from './queries.ts'
import { OFFER_FILTERS, statusAt, type OfferFilter, type OfferStatus } from './offer-status.ts'
import { isSandboxOfferId, isSandbox, mockCreatedOffer, mockOffer, mockOffers } from './sandbox-offers.ts'
import {
  CloneOffer,
  CreateOffer,
  DEFAULT_COLOR,
  DeleteOffer,
  ListedOffer,
  CreatedOffer,
  Sandbox,
  UpdateOffer,
} from './schema.ts'
import { newValidity, storeChanges, updatedFieldsOf, updateOffer as change } from './update-offer.ts'
import { invalid } from '../../platform/foundation/failure.ts'

/** Maximum number of offers of a page for managers: each may run in a thousand stores. */
const MANAGER_PAGE = 50

/** Counters that may have grown since the client read them. */
const COUNTERS = ['clickCount', 'favoritedCount'] as const
const FIXED = ['groupId', 'storeCount', 'productCount', 'isActive', 'status', 'scope', 'discountPercent'] as const

/** True if an update contains a field that the system sets. */
function hasSystemFields(input: UpdateOffer): boolean {
  return [...COUNTERS, ...FIXED, 'createdAt' as const, 'offerIds' as const].some((field) => input[field] !== undefined)
}

/** Throws 400 if a field that the system sets differs from the offer (ADR requests). */
function assertUnchanged(
  input: UpdateOffer,
  offer: ListedOffer,
  ids: { groupId: string; offerIds: readonly string[] },
): void {
  const wrong = (field: string) => invalid(field, 'is set by the system and cannot be changed')
  for (const field of FIXED) {
    const sent = input[field]
    if (sent !== undefined && sent !== offer[field] && !(field === 'groupId' && sent === ids.groupId))
      throw wrong(field)
  }
  for (const field of COUNTERS) if ((input[field] ?? 0) > offer[field]) throw wrong(field)
  if (input.createdAt !== undefined && Date.parse(input.createdAt) !== Date.parse(offer.createdAt))
    throw wrong('createdAt')
  const { offerIds } = input
  if (offerIds && (offerIds.length !== ids.offerIds.length || offerIds.some((id) => !ids.offerIds.includes(id))))
    throw wrong('offerIds')
}

/** Deletes an offer with all its documents. Returns the number of branches that were active before. */
async function removeOffer(call: Call, { group, branches, active }: OfferOfCaller): Promise<number> {
  await deleteBranches(call.db, group.group_id)
  await deleteGroup(call.db, group.group_id)
  await dropUnusedLists(
    call.db,
    branches.map((row) => row.list_id),
  )
  call.changed(group.lead_id)
  call.afterCommit(call.services.offersChanged.notify)
  return active.length
}

const DEFAULT_PAGE = 50
const OFFER = 'off_01KANX6Y7C3V9Q2M8R5T4W6Z1B'
const STORE = 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B'

function createdOffer(group: Row<'offer_group'>) {
  return {
    success: true as const,
    groupId: group.group_id,
    storeCount: group.store_count,
    scope: scopeOf(group.store_count),
    status: group.status as OfferStatus,
    discountPercent: group.discount_percent,
    createdAt: iso(group.created_ms),
  }
}

function contentOf(input: CreateOffer): OfferContent {
  return {
    title: input.title,
    description: input.description ?? '',
    merchantColor: input.merchantColor ?? DEFAULT_COLOR,
    tags: input.tags ?? [],
    imageUrl: input.imageUrl ?? null,
    quantity: input.quantity ?? null,
    validity: { fromMs: Date.parse(input.validFrom), toMs: Date.parse(input.validTo ?? input.validUntil ?? '') },
  }
}

export const createOffer = operation({
  name: 'createOffer',
  area: 'offers',
  minimumPackage: 'GO',
  roles: rolesFrom('manager'),
  summary: 'Publishes an offer to one or many stores.',
  description:
    'Creates one document for each store; `groupId` links them. The offer is active from `validFrom`, or at ' +
    'once if that time has passed. Products with an `ean` must be in the catalogue of every store; the offer ' +
    'then lowers their price at checkout.',
  changes: true,
  emits: ['offer.published'],
  refusals: ['too_many_offers'],
  request: CreateOffer,
  response: z.strictObject({ ...CreatedOffer, offerId: z.string(), offerIds: z.array(z.string()) }),
  example: {
    storeIds: [STORE],
    title: 'Herbstwochen',
    validFrom: '2026-11-20T08:00:00+01:00',
    validTo: '2026-12-04T00:00:00+01:00',
    products: [
      { name: 'Regenschirm', price: 9.99, oldPrice: 14.99 },
      { ean: '4012345678901', discountPrice: 1.49, originalPrice: 1.99 },
    ],
  },
  async run(call, input) {
    const { storeIds } = input
    await ownStores(call, storeIds)
    const products = await offerProducts(call, input.products, storeIds)
    if (isSandbox(call)) {
      const { group, offerIds } = await mockCreatedOffer(call, contentOf(input), storeIds, {
        discount_percent: discountOf(products),
      })
      return { ...createdOffer(group), _sandbox: true as const, offerId: group.lead_id, offerIds }
    }
    const { group, branches } = await makeOffer(call, contentOf(input), storeIds, [{ storeIds, products }])
    return { ...createdOffer(group), offerId: group.lead_id, offerIds: branches.map((row) => row.offer_id) }
  },
})

export const updateOffer = operation({
  name: 'updateOffer',
  area: 'offers',
  minimumPackage: 'GO',
  roles: rolesFrom('manager'),
  summary: 'Changes an offer in all its branches. Omitted fields keep their values.',
  description:
    '`products` and `storeIds` replace the whole list. Added stores get new documents, documents of removed ' +
    'stores are deactivated. If the dates change, the status is computed from them again.',
  changes: true,
  emits: ['offer.published'],
  refusals: ['too_many_offers'],
  request: UpdateOffer,
  response: z.strictObject({
    ...Success,
    ...Sandbox,
    offerId: z.string(),
    updatedFields: z.array(z.string()),
    siblingUpdates: z.int().describe('Other branch documents with the same changes.'),
    addedStores: z.array(z.string()),
    removedStores: z.array(z.string()),
  }),
  example: { offerId: OFFER, title: 'Winterwochen', validTo: '2026-12-31T00:00:00+01:00' },
  async run(call, input) {
    const offerId = offerIdOf(input)
    if (isSandbox(call)) return mockUpdate(call, offerId, input)
    const offer = await offerOfCaller(call, offerId)
    await ownStores(call, input.storeIds ?? offer.active.map((row) => row.store_id))
    if (hasSystemFields(input)) {
      const [listed] = await presentOffers(call.db, [offer.group], null, call.nowMs)
      const ids = { groupId: offer.group.group_id, offerIds: offer.active.map((row) => row.offer_id) }
      if (listed) assertUnchanged(input, listed, ids)
    }
    return { success: true as const, offerId: offer.named.offer_id, ...(await change(call, offer, input)) }
  },
})

async function mockUpdate(call: Call, offerId: string, input: UpdateOffer) {
  const { group, storeIds, offerIds, named } = await mockOffer(call, offerId)
  const stores = input.storeIds ?? storeIds
  await ownStores(call, stores)
  if (hasSystemFields(input))
    assertUnchanged(input, toListed(group, storeIds, { clicks: 0, favorites: 0 }, call.nowMs), {
      groupId: group.group_id,
      offerIds,
    })
  // Mock offers do not store their dates, so a single new date cannot be compared with the other date.
  if (input.validFrom !== undefined && (input.validTo ?? input.validUntil) !== undefined)
    newValidity({ fromMs: 0, toMs: 0 }, input)
  if (input.products) await offerProducts(call, input.products, stores)
  const updatedFields = updatedFieldsOf(input)
  const changes = storeChanges(storeIds, input.storeIds)
  const stay = storeIds.length - changes.removedStores.length
  const siblingUpdates = updatedFields.length === 0 ? 0 : Math.max(0, stay - 1)
  return { success: true as const, _sandbox: true as const, offerId: named, updatedFields, siblingUpdates, ...changes }
}

export const deleteOffer = operation({
  name: 'deleteOffer',
  area: 'offers',
  minimumPackage: 'GO',
  roles: rolesFrom('manager'),
  summary: 'Deletes an offer and all its branch documents immediately.',
  changes: true,
  request: DeleteOffer,
  response: z.strictObject({
    ...Success,
    ...Sandbox,
    offerId: z.string(),
    deletedCount: z.int().describe('Branch documents.'),
  }),
  example: { offerId: OFFER },
  async run(call, input) {
    const offerId = offerIdOf(input)
    if (isSandbox(call)) {
      const { named, storeIds } = await mockOffer(call, offerId)
      await ownStores(call, storeIds)
      return { success: true as const, _sandbox: true as const, offerId: named, deletedCount: storeIds.length }
    }
    const offer = await offerOfCaller(call, offerId)
    await ownStores(
      call,
      offer.active.map((row) => row.store_id),
    )
    return { success: true as const, offerId: offer.named.offer_id, deletedCount: await removeOffer(call, offer) }
  },
})

const ONLY = { active: 'active', expired: 'expired', scheduled: 'scheduled', draft: 'scheduled' } as const

export const getManagerOffers = operation({
  name: 'getManagerOffers',
  area: 'offers',
  minimumPackage: 'GO',
  roles: rolesFrom('viewer'),
  summary: 'Lists the offers of the account, the newest first, one entry for all branches of an offer.',
  description: '`scheduled` and `draft` are offers that start later. `expired` includes archived offers.',
  changes: false,
  request: z.strictObject({
    status: z.enum(Object.keys(OFFER_FILTERS) as [OfferFilter, ...OfferFilter[]]).optional(),
    from: Day.optional().describe('Offers that run on this day or later.'),
    to: Day.optional().describe('Offers that run on this day or earlier.'),
    limit: Limit.optional().describe(`A page contains at most ${MANAGER_PAGE} offers, each with all its stores.`),
    offset: Offset.optional(),
    cursor: cursorField('off', isSandboxOfferId).optional(),
  }),
  response: z.strictObject({
    ...Success,
    ...Sandbox,
    offers: z.array(ListedOffer),
    total: z.int(),
    nextCursor: z.string().optional(),
  }),
  example: { status: 'active' },
  async run(call, input) {
    const asked = pageLimits(input, DEFAULT_PAGE)
    const page = { ...asked, limit: Math.min(asked.limit, MANAGER_PAGE) }
    const caller = knownCaller(call.caller)
    const storeIds = caller.kind === 'agent' ? [caller.storeId] : caller.storeIds
    const within = {
      fromMs: input.from === undefined ? 0 : startOfDay(input.from),
      endMs: input.to === undefined ? Number.MAX_SAFE_INTEGER : startOfDay(addDays(input.to, 1)),
    }
    if (isSandbox(call)) return mockPage(call, { filter: input.status, ...within }, page, storeIds)
    const of = {
      tenant: caller.tenant,
      storeIds,
      only: input.status ? ONLY[input.status] : ('all' as const),
      ...within,
      nowMs: call.nowMs,
    }
    const rows = await listGroups(call.db, of, { ...page, limit: page.limit + 1 })
    const total = await countGroups(call.db, of)
    const { items, nextCursor } = toPage(rows, (row) => row.lead_id, page)
    const offers = await presentOffers(call.db, items, storeIds, call.nowMs)
    return { success: true as const, offers, total, ...(nextCursor && { nextCursor }) }
  },
})

async function mockPage(
  call: Call,
  { filter, fromMs, endMs }: { filter: OfferFilter | undefined; fromMs: number; endMs: number },
  page: ReturnType<typeof pageLimits>,
  visible: readonly string[] | null,
) {
  const all = (await mockOffers(call)).filter(({ group, storeIds }) => {
    const status = statusAt({ fromMs: group.valid_from_ms, toMs: group.valid_to_ms }, call.nowMs)
    return (
      (filter === undefined || OFFER_FILTERS[filter].includes(status)) &&
      group.valid_to_ms > fromMs &&
      group.valid_from_ms < endMs &&
      (visible === null || storeIds.some((id) => visible.includes(id)))
    )
  })
  const { after, offset } = page
  const rest = after === undefined ? all.slice(offset) : all.filter(({ group }) => group.lead_id < after)
  const { items, nextCursor } = toPage(rest, ({ group }) => group.lead_id, page)
  const offers = items.map(({ group, storeIds }) =>
    toListed(
      group,
      storeIds.filter((id) => visible === null || visible.includes(id)),
      { clicks: 0, favorites: 0 },
      call.nowMs,
    ),
  )
  return {
    success: true as const,
    _sandbox: true as const,
    offers,
    total: all.length,
    ...(nextCursor && { nextCursor }),
  }
}

export const cloneOffer = operation({
  name: 'cloneOffer',
  area: 'offers',
  minimumPackage: 'GO',
  roles: rolesFrom('manager'),
  summary: 'Copies an offer to other stores, optionally with adjusted prices.',
  description:
    'Takes the prices of the named branch. `priceAdjustments` changes them by a percentage (−100 … 1000) or a ' +
    'fixed amount in EUR, rounded half up to a cent, at least 0.',
  changes: true,
  emits: ['offer.published'],
  refusals: ['too_many_offers'],
  request: CloneOffer,
  response: z.strictObject({ ...CreatedOffer, clonedOfferId: z.string(), clonedOfferIds: z.array(z.string()) }),
  example: {
    offerId: OFFER,
    targetStoreIds: [STORE],
    priceAdjustments: { [STORE]: { type: 'percentage', value: -5 } },
  },
  async run(call, input) {
    const offerId = offerIdOf(input)
    if (isSandbox(call)) {
      const { group: source } = await mockOffer(call, offerId)
      await ownStores(call, input.targetStoreIds)
      const content = {
        title: source.title,
        description: source.description,
        merchantColor: source.merchant_color,
        tags: [],
        imageUrl: null,
        quantity: null,
      }
      const validity = { fromMs: source.valid_from_ms, toMs: source.valid_to_ms }
      const { group, offerIds } = await mockCreatedOffer(call, { ...content, validity }, input.targetStoreIds, source)
      return { ...createdOffer(group), _sandbox: true as const, clonedOfferId: group.lead_id, clonedOfferIds: offerIds }
    }
    const offer = await offerOfCaller(call, offerId)
    await ownStores(call, input.targetStoreIds)
    const { group, branches } = await makeClone(call, offer, input)
    return { ...createdOffer(group), clonedOfferId: group.lead_id, clonedOfferIds: branches.map((row) => row.offer_id) }
  },
})
