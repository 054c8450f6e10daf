import type { Operation } from '../../../platform/operations/operation.ts'

/** Where the page finds an id of the caller's sandbox, by the prefix of the id. */
interface Source {
  /** A reading operation that lists objects. */
  operation: string
  /** True if the operation takes a store. The page passes the store that it found. */
  ofStore?: true
  /** Field of the answer with the list. */
  list: string
  /** Field of an object with its id. */
  id: string
  /** Field and value. The first object with this value is taken before others. */
  prefer?: readonly [string, string]
}

/**
 * Sources of the ids in the example requests. The forms of the reference replace example ids by the caller's own, so
 * that the first attempt finds its objects.
 */
export const OWN_IDS: Readonly<Record<string, Source>> = {
  st: { operation: 'fetchStores', list: 'stores', id: 'storeId', prefer: ['package', 'PRIME'] },
  prd: { operation: 'fetchProducts', ofStore: true, list: 'products', id: 'productId' },
  off: { operation: 'getManagerOffers', list: 'offers', id: 'id' },
  loy: { operation: 'getLoyaltyPrograms', list: 'programs', id: 'programId' },
  ord: { operation: 'fetchClickCollectOrders', ofStore: true, list: 'orders', id: 'orderId' },
  pur: { operation: 'fetchPurchaseHistory', list: 'purchases', id: 'transactionId', prefer: ['status', 'SUCCESS'] },
  dev: { operation: 'fetchDevices', ofStore: true, list: 'devices', id: 'deviceId' },
  agt: { operation: 'fetchAgents', ofStore: true, list: 'agents', id: 'agentId' },
  op: { operation: 'fetchOperators', ofStore: true, list: 'operators', id: 'operatorId' },
  evt: { operation: 'fetchAlarms', ofStore: true, list: 'alarms', id: 'eventId' },
  exc: { operation: 'fetchExceptions', ofStore: true, list: 'exceptions', id: 'exceptionId' },
  rcl: { operation: 'fetchRecalls', ofStore: true, list: 'recalls', id: 'recallId' },
  zon: { operation: 'fetchZones', ofStore: true, list: 'zones', id: 'zoneId' },
  hlp: { operation: 'fetchAssistanceRequests', ofStore: true, list: 'requests', id: 'requestId' },
  whk: { operation: 'fetchWebhooks', list: 'webhooks', id: 'webhookId' },
  whd: { operation: 'fetchWebhookDeliveries', list: 'deliveries', id: 'deliveryId' },
}

/** Operations that end something for good. The person must choose what ends. */
const FINAL = /^(?:remove|delete|revoke|decommission|roll|end)[A-Z]|Cancelled$/

/**
 * Which ids the form of an operation replaces. Undefined if no test key can call the operation: such an operation has no
 * form.
 */
export function ownIdsIn({ name, callers }: Pick<Operation, 'name' | 'callers'>): 'all' | 'store' | undefined {
  const isOpen = callers.some((caller) => caller === 'secret' || caller === 'publishable' || caller === 'anyone')
  if (!isOpen) return undefined
  return FINAL.test(name) ? 'store' : 'all'
}
