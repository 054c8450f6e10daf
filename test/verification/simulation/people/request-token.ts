import type { AuthorizeRequest } from '../../../../edge-agent/decisions/request.ts'
import type { AgentNode } from '../nodes/agent-node.ts'
import type { Shop } from '../nodes/initial-shop.ts'
import type { Merchant } from '../nodes/merchant.ts'

/** A request for an agent. */
export interface DeviceRequest {
  node: AgentNode | undefined
  request: AuthorizeRequest
}

export interface RequestTokenParts {
  shop: Pick<Shop, 'devices'>
  merchant: Merchant
  agents: readonly AgentNode[]
}

/**
 * Requests a token from the cloud: for the purchase at the station, or for one tag at the detacher. If there is no
 * token, returns the reason as text.
 */
export async function requestToken(
  { shop, merchant, agents }: RequestTokenParts,
  purchaseId: string,
  epc: string | undefined,
): Promise<DeviceRequest | string> {
  const { station, detacher } = shop.devices
  const issued =
    epc === undefined
      ? await merchant.call('verifySecurityTagDeactivation', { purchaseId, deviceId: station }, { tries: 4 })
      : await merchant.call(
          'verifyProtectedItem',
          { purchaseId, epc, deviceId: detacher, protectionAction: 'detach_hard_tag' },
          { tries: 4 },
        )
  const token = issued?.ok ? issued.body['authorizationToken'] : undefined
  if (typeof token !== 'string') return issued?.ok ? String(issued.body['reason']) : (issued?.reason ?? 'no answer')
  return epc === undefined
    ? { node: agents[0], request: { deviceId: station, action: 'deactivate_label', token, identifiers: {} } }
    : { node: agents[1], request: { deviceId: detacher, action: 'detach_hard_tag', token, identifiers: { epc } } }
}
