import { z } from 'zod'
import { keyCaller, rolesFrom } from '../../platform/foundation/caller.ts'
import { invalid, notFound } from '../../platform/foundation/failure.ts'
import { Id, Success } from '../../platform/operations/fields.ts'
import { operation, type Call } from '../../platform/operations/operation.ts'
import {
  cursorField,
  pageAfter,
  readPageWithinText,
  toPage,
  pageLimits,
  type Page,
} from '../../platform/operations/paging.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { ownStores } from '../../platform/stores/own-store.ts'
import { presentOffers, OfferDetail, withProducts } from './list-offers.ts'
import { statusAt } from './offer-status.ts'
import { countGroups, findGroup, lengthsOfLists, listGroups } from './queries.ts'
import { isSandboxOfferId, isSandbox, mockDetail, mockOffer, mockOffers } from './sandbox-offers.ts'
import { Sandbox } from './schema.ts'

const DEFAULT_PAGE = 20
/** Maximum number of offers per page. It ends earlier if their products are long. */
const LARGEST_PAGE = 100

/** Maximum number of prices in one response, about 4 MB. */
const PRICES_LIMIT = 50_000

const STORE = 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B'

export const fetchOffer = operation({
  name: 'fetchOffer',
  area: 'offers',
  minimumPackage: 'GO',
  roles: rolesFrom('viewer'),
  summary: 'Returns an offer with its products and their prices in each store.',
  description:
    '`prices` has one entry for each store in `storeIds`, with `priceAdjustments` applied. `originalPrice` and ' +
    '`discountPrice` of a product are those of the first store. An offer with more than 50,000 prices needs ' +
    '`storeId`.',
  changes: false,
  request: z.strictObject({
    offerId: Id.describe('Any id of the group.'),
    storeId: Id.optional().describe('Returns only the prices of this store.'),
  }),
  response: z.strictObject({ ...Success, ...Sandbox, offer: OfferDetail }),
  example: { offerId: 'off_01KANX6Y7C3V9Q2M8R5T4W6Z1B' },
  async run(call, { offerId, storeId }) {
    if (storeId !== undefined) await ownStores(call, [storeId])
    const { tenant, storeIds: own } = keyCaller(call.caller)
    const storeIds = storeId === undefined ? own : [storeId]
    if (isSandbox(call)) {
      const offer = await mockDetail(call, await mockOffer(call, offerId), storeIds)
      if (offer.storeIds.length === 0) throw notFound('offer')
      return { success: true as const, _sandbox: true as const, offer }
    }
    const group = await findGroup(call.db, tenant, offerId)
    if (!group) throw notFound('offer')
    const [listed] = await presentOffers(call.db, [group], storeIds, call.nowMs)
    if (!listed || listed.storeIds.length === 0) throw notFound('offer')
    const prices = listed.storeIds.length * listed.productCount
    if (prices > PRICES_LIMIT)
      throw invalid(
        'storeId',
        `is required: this offer has ${prices} prices, and one response contains at most ${PRICES_LIMIT}`,
      )
    const [offer] = await withProducts(call.db, [{ listed, groupId: group.group_id }], storeId)
    if (!offer) throw notFound('offer')
    return { success: true as const, offer }
  },
})

/** An offer, and the characters of its products in one store. */
interface MeasuredGroup {
  group: Row<'offer_group'>
  length: number
}

export const fetchActiveOffers = operation({
  name: 'fetchActiveOffers',
  area: 'offers',
  minimumPackage: 'GO',
  roles: rolesFrom('viewer'),
  summary: 'Lists the active offers of a store with their products, the newest first.',
  description:
    'Prices are those of this store. An offer is listed from `validFrom` until `validTo`, or until it is deleted.',
  callers: ['secret', 'publishable'],
  changes: false,
  mayBeStale: true,
  request: z.strictObject({
    storeId: Id,
    limit: z.int().min(1).max(LARGEST_PAGE).optional(),
    cursor: cursorField('off', isSandboxOfferId).optional(),
  }),
  response: z.strictObject({
    ...Success,
    ...Sandbox,
    offers: z.array(OfferDetail),
    total: z.int(),
    nextCursor: z.string().optional(),
  }),
  example: { storeId: STORE },
  async run(call, { storeId, ...paging }) {
    await ownStores(call, [storeId])
    const page = pageLimits(paging, DEFAULT_PAGE)
    const { tenant } = keyCaller(call.caller)
    if (isSandbox(call)) return mockPage(call, storeId, page)
    const of = { tenant, storeIds: [storeId], only: 'active' as const, nowMs: call.nowMs }
    const { items, nextCursor } = await readPageWithinText(
      async (limit, last: MeasuredGroup | undefined): Promise<MeasuredGroup[]> => {
        const groups = await listGroups(call.db, of, { ...pageAfter(page, last?.group.lead_id), limit })
        const ids = groups.map((group) => group.group_id)
        const lengths = await lengthsOfLists(call.db, ids, storeId)
        return groups.map((group) => ({ group, length: lengths.get(group.group_id) ?? 0 }))
      },
      ({ group }) => group.lead_id,
      ({ length }) => length,
      page,
    )
    const total = await countGroups(call.db, of)
    const groups = items.map(({ group }) => group)
    const listed = await presentOffers(call.db, groups, [storeId], call.nowMs)
    const named = listed.flatMap((offer, i) => {
      const groupId = groups[i]?.group_id
      return groupId === undefined ? [] : [{ listed: offer, groupId }]
    })
    const offers = await withProducts(call.db, named, storeId)
    return { success: true as const, offers, total, ...(nextCursor && { nextCursor }) }
  },
})

async function mockPage(call: Call, storeId: string, page: Page) {
  const active = (await mockOffers(call)).filter(({ group, storeIds }) => {
    const status = statusAt({ fromMs: group.valid_from_ms, toMs: group.valid_to_ms }, call.nowMs)
    return status === 'ACTIVE' && storeIds.includes(storeId)
  })
  const { after } = page
  const rest = after === undefined ? active : active.filter(({ group }) => group.lead_id < after)
  const { items, nextCursor } = toPage(rest, ({ group }) => group.lead_id, page)
  return {
    success: true as const,
    _sandbox: true as const,
    offers: await Promise.all(items.map((offer) => mockDetail(call, offer, [storeId]))),
    total: active.length,
    ...(nextCursor && { nextCursor }),
  }
}
