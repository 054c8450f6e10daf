import type { AgentNode } from '../nodes/agent-node.ts'
import type { RequestRelease } from './request-release.ts'
import { requestToken, type DeviceRequest } from './request-token.ts'
import type { Chance } from '../virtual/chance.ts'
import type { Shop } from '../nodes/initial-shop.ts'
import type { Merchant } from '../nodes/merchant.ts'
import type { Payment } from './payment.ts'

export interface ProbeParts {
  shop: Shop
  merchant: Merchant
  agents: readonly AgentNode[]
  payment: Payment
  ask: RequestRelease
}

const EPC = 'E2800000FFFFFFFFFFFFFFFF'

/** Buys and releases one unit by receipt, token or tag, without faults. Returns the description of a failed step. */
export async function probe(parts: ProbeParts, chance: Chance): Promise<string | undefined> {
  const { shop, merchant, agents, payment, ask } = parts
  const { storeId, products, devices } = shop
  const way = chance.one(agents.length > 1 ? (['receipt', 'token', 'tag'] as const) : (['receipt', 'token'] as const))
  const { ean } = chance.one(products)
  const epcs = way === 'tag' ? [EPC] : []
  if (
    way === 'tag' &&
    !(
      await merchant.call('registerProtectedItems', {
        storeId,
        items: [{ epc: EPC, ean, protectionTechnology: 'uhf_rfid' }],
      })
    )?.ok
  )
    return 'the item cannot be registered'

  const session = await merchant.call('checkIn', { storeId })
  const items = [{ ean, quantity: 1, ...(epcs.length > 0 && { epcs }) }]
  const started = session?.ok
    ? await merchant.call('startCheckout', { sessionId: session.body['sessionId'], items })
    : undefined
  if (!started?.ok || !(await payment.pay(started.body, chance, { isProbe: true }))) return 'nothing can be bought'
  const purchaseId = String(started.body['transactionId'])

  const shown = way === 'receipt' ? await receipt() : await requestToken(parts, purchaseId, epcs[0])
  if (typeof shown === 'string') return `the paid purchase gets no ${way}: ${shown}`
  const answer = await ask(shown.node, shown.request)
  return answer?.outcome === 'confirmed'
    ? undefined
    : `the paid unit is not released by ${way}: ${answer?.reason ?? answer?.outcome ?? 'no answer'}`

  async function receipt(): Promise<DeviceRequest | string> {
    const made = await merchant.call('generateReceiptQR', { purchaseId })
    if (!made?.ok) return made?.reason ?? 'no answer'
    return {
      node: agents[0],
      request: {
        deviceId: devices.station,
        action: 'deactivate_label',
        receipt: String(made.body['url']),
        identifiers: {},
      },
    }
  }
}
