import type { Json } from '../nodes/merchant.ts'
import type { DayStore } from './day-store.ts'
import { LOCKED_CATEGORY, STAFF_BRAND, STAFF_FROM_PRICE } from './goods.ts'

const GOODS_IN_CALL = 500
/** Rules of the policy for category, brand and price. Each rule applies to some goods of the day. */
const DAY_RULES = {
  allowedActionsByCategory: {
    '*': {
      detach_hard_tag: ['self_service', 'staff_assisted'],
      deactivate_label: ['staff_assisted'],
      authorize_exit: ['automatic_exit'],
    },
    [LOCKED_CATEGORY]: { deactivate_label: ['staff_assisted'], authorize_exit: ['automatic_exit'] },
  },
  requiresStaffForBrand: [STAFF_BRAND],
  requiresManualOverrideAboveValue: STAFF_FROM_PRICE,
  // The limit is high, because one operator works all day.
  operatorOverridesPerHour: 1_000,
}

/** Registers the goods and sets the policy of the day. */
export async function prepareStore({ system, stock, station, shop, tills }: DayStore): Promise<void> {
  const { storeId } = shop
  const must = async (operation: string, body: Json) => {
    const answer = await system.call(operation, body)
    if (!answer?.ok) throw new Error(`${operation}: ${answer?.reason ?? 'no answer'}`)
    return answer.body
  }
  for (let n = 0; n < stock.length; n += GOODS_IN_CALL) {
    const items = stock.slice(n, n + GOODS_IN_CALL).map((good) => ({ ...good, protectionTechnology: 'uhf_rfid' }))
    await must('registerProtectedItems', { storeId, items })
  }
  const { policy } = await must('fetchProtectionPolicy', { storeId })
  const tillSales = { agents: [station.identity.agentId] }
  const rules = { ...(policy as Json), ...DAY_RULES, ...(tills && { tillSales }) }
  await must('updateProtectionPolicy', { storeId, policy: rules })
  await tills?.open()
  // The station is the receipt home, because it must accept receipts during the network outage.
  await must('moveReceiptHome', { storeId, home: station.identity.agentId })
}
