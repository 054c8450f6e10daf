import type { Chance } from '../virtual/chance.ts'
import type { Shop } from '../nodes/initial-shop.ts'
import type { Json, Merchant } from '../nodes/merchant.ts'
import { HOLD_ENDED } from '../oracles/cloud-oracle.ts'
import type { DeviceVisits, OwnedPurchase } from './device-visits.ts'

/** What managers and staff do in the shop, apart from the devices. */
export interface Staff {
  shop: Shop
  merchant: Merchant
  linger: DeviceVisits['linger']
}

/** Category and brand for which the policy has special rules. */
export const RULED_CATEGORY = 'schmuck'
export const RULED_BRAND = 'Luxus'

/** Staff put one item on hold and perhaps end the hold. The customer goes on meanwhile. */
export async function holdItem(
  { shop, merchant, linger }: Staff,
  { epcs, chance: visit }: OwnedPurchase,
): Promise<void> {
  const chance = visit.fork('hold-item')
  const epc = epcs.length > 0 ? chance.one(epcs) : undefined
  if (epc === undefined) return
  const { storeId } = shop
  const held = await merchant.call('updateItemStatus', { storeId, epc, itemStatus: 'exception_hold' })
  if (!held?.ok || chance.happens(0.6)) return
  await linger(chance)
  await merchant.call('updateItemStatus', { storeId, epc, itemStatus: 'paid', reason: HOLD_ENDED })
}

/** The manager recalls the lot of one item and perhaps ends the recall. The customer goes on meanwhile. */
export async function recallItem(
  { shop, merchant, linger }: Staff,
  { epcs, chance: visit }: OwnedPurchase,
): Promise<void> {
  const chance = visit.fork('recall-item')
  const epc = epcs.length > 0 ? chance.one(epcs) : undefined
  if (epc === undefined) return
  const { storeId } = shop
  const item = await merchant.call('fetchProtectedItem', { storeId, epc })
  const ean = item?.ok ? item.body['ean'] : undefined
  if (typeof ean !== 'string') return
  const lot = `L-${epc.slice(-12)}`
  await merchant.call('registerProtectedItems', { storeId, items: [{ epc, lot }] })
  const started = await merchant.call('recallProducts', { storeIds: [storeId], ean, lot, reason: 'Splitter' })
  if (!started?.ok || chance.happens(0.6)) return
  await linger(chance)
  await merchant.call('endRecall', { recallId: started.body['recallId'] })
}

/** The manager changes the policy. */
export async function changePolicy({ shop: { storeId }, merchant }: Staff, chance: Chance): Promise<void> {
  const now = await merchant.call('fetchProtectionPolicy', { storeId })
  if (!now?.ok) return
  const former = now.body['policy'] as Json
  const rules = chance.fork('rules')
  const policy = {
    ...former,
    requiresManualOverrideAboveValue: chance.between(150, 500),
    allowedActionsByCategory: {
      ...(former['allowedActionsByCategory'] as Json),
      [RULED_CATEGORY]: rules.one([{}, { deactivate_label: ['staff_assisted'], authorize_exit: ['automatic_exit'] }]),
    },
    requiresStaffForBrand: rules.happens(0.5) ? [RULED_BRAND] : [],
    offline: {
      ...(former['offline'] as Json),
      hardCount: rules.between(1, 3),
      maxRiskClass: rules.one([0, 1, 2]),
    },
  }
  await merchant.call('updateProtectionPolicy', { storeId, policy })
}
