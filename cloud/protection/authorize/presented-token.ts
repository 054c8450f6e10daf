import { CLOUD_LEDGER, denyReasonOf, openAuthorization } from '../../../policy/documents/authorization.ts'
import type { DecisionFacts } from '../../../policy/decide.ts'
import { openReceipt } from '../../../policy/receipts/receipt-token.ts'
import type { Tenant } from '../../platform/foundation/caller.ts'
import { invalid } from '../../platform/foundation/failure.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { findPurchase, findPurchaseOfReceipt } from '../../shop/purchases/queries.ts'
import { openAgentReceipt } from '../../shop/receipts/agent-receipts.ts'
import type { RequestContext } from './request-context.ts'
import { findAuthorization, redemptionsOf } from '../leases/authorizations.ts'
import { isBeingRevoked } from '../leases/token-revocations.ts'
import { coversRecalled } from '../recalls/publish-recalls.ts'

/**
 * While an agent's ledger is untrusted, programs get tokens of the cloud's ledger (`led: cloud`). If a person presents
 * such a token at a device, the agent sends the token to the cloud, like a receipt. In exchange, the cloud issues a
 * token for the agent's ledger. The new token covers the rights that are still free, and is valid for this request
 * only.
 *
 * An exchange uses one step of the presented token (`exchanges`). The token stays subject to revocation.
 *
 * The result describes what the presented receipt or token covers.
 */
export interface PresentedDocument {
  purchase?: Row<'purchase'>
  /** Why the receipt or token is invalid. */
  token?: DecisionFacts['token']
  /** The presented token. */
  authorization?: Row<'protection_authorization'>
}

interface PresentedTokenRequest {
  authorizationToken: string
  protectionAction: string
}

/** Verifies a presented token, and finds what it covers. Throws `invalid_request` if the caller is no agent. */
export async function verifyPresentedToken(
  call: Call,
  { caller, device }: RequestContext,
  { authorizationToken, protectionAction }: PresentedTokenRequest,
): Promise<PresentedDocument> {
  if (caller.kind !== 'agent')
    throw invalid(
      'authorizationToken',
      'is for agents: programs redeem their tokens with redeemProtectionAuthorization',
    )
  if (!device || device.row.agent_id !== caller.agentId) return { token: 'token_invalid' }
  const { authority } = call.services
  const opened = openAuthorization(authorizationToken, {
    keys: authority.keysOf(caller.tenant).ring,
    audience: device.row.device_id,
    now: authority.clock.nowMs() / 1_000,
  })
  if (!opened.ok) return { token: denyReasonOf(opened.fault) }
  const row = await findAuthorization(call.db, opened.authorization.jti)
  if (row?.tenant !== caller.tenant || row.ledger !== CLOUD_LEDGER || row.action !== protectionAction)
    return { token: 'token_invalid' }
  if (row.revoked_ms !== null || (await isBeingRevoked(call.db, row, call.nowMs, coversRecalled)))
    return { token: 'token_revoked' }
  const purchase = row.purchase_id === null ? undefined : await findPurchase(call.db, caller.tenant, row.purchase_id)
  // A token without a right, for example for a fixture, has no other stop.
  const isUsedUp = row.exchanges + (await redemptionsOf(call.db, row.nonce)).length >= row.count
  return { ...(purchase && { purchase }), authorization: row, ...(isUsedUp && { token: 'already_redeemed' }) }
}

type PresentedReceipt =
  | { ok: true; purchase: Row<'purchase'> }
  /** `purchase` is set for an expired receipt. */
  | { ok: false; reason: 'token_invalid' | 'token_expired' | 'token_revoked'; purchase?: Row<'purchase'> }

/**
 * Verifies a presented receipt of any supported format, and finds its purchase. `pastMs`: time at which the shopper presented the
 * receipt; if undefined, the present time.
 */
export async function verifyReceipt(
  call: Pick<Call, 'db' | 'services'>,
  tenant: Tenant,
  text: string,
  pastMs: number | undefined,
): Promise<PresentedReceipt> {
  const { db, services } = call
  const keys = services.authority.keysOf(tenant).ring
  const opened = openReceipt(text, { keys })
  const genuine = opened.ok ? opened : ((await openAgentReceipt(db, text, services.platform.clock.wall())) ?? opened)
  if (!genuine.ok) return { ok: false, reason: genuine.fault === 'key_revoked' ? 'token_revoked' : 'token_invalid' }
  const purchase = await findPurchaseOfReceipt(db, Buffer.from(genuine.claims.cti).toString('hex'))
  if (purchase?.tenant !== tenant) return { ok: false, reason: 'token_invalid' }
  // Throws while the cloud distrusts its own clock. The agent then decides with its own trusted time.
  if (genuine.claims.exp * 1_000 <= (pastMs ?? services.authority.clock.nowMs()))
    return { ok: false, reason: 'token_expired', purchase }
  return { ok: true, purchase }
}
