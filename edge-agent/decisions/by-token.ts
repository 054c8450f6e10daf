import { decide, type DecisionFacts, type ItemFacts } from '../../policy/decide.ts'
import {
  CLOUD_LEDGER,
  denyReasonOf,
  isForItem,
  openAuthorization,
  type AuthorizationClaims,
  type OpenedAuthorization,
} from '../../policy/documents/authorization.ts'
import { ITEM_IDENTIFIER_KINDS, type ItemIdentifiers } from '../../policy/item-identifiers.ts'
import { DEFAULT_POLICY } from '../../policy/store-policy.ts'
import type { DenyReason } from '../../policy/vocabulary.ts'
import { findByIdentifiers, type Replica } from '../items/replica.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { CloudLink } from '../link/cloud-link.ts'
import { validationTime, type AgentClock } from '../trust/time/clock.ts'
import type { Trust } from '../trust/trust.ts'
import type { RequestContext, Verdict } from './request.ts'
import { isBackSince, keysOfTag } from './sale-goods.ts'

export interface TokenParts {
  trust: Trust
  clock: AgentClock
  ledger: Ledger
  items: Pick<Replica, 'find' | 'keysOf'>
}

/** Verifies signature, device and time of a token, and passes the document versions that the token names to `trust`. */
function openToken(
  { trust, clock }: Pick<TokenParts, 'trust' | 'clock'>,
  { device }: RequestContext,
  token: string,
): OpenedAuthorization {
  const opened = openAuthorization(token, { keys: trust.keys, audience: device.deviceId, ...validationTime(clock) })
  if (opened.ok)
    trust.noteIssuedVersions({
      policy: opened.authorization.pv,
      keys: opened.authorization.kv,
      issuedS: opened.authorization.iat,
    })
  return opened
}

/**
 * Like `openToken`. If the key is unknown, an online agent first fetches the newest key set: the cloud may have rotated
 * its key.
 */
export async function openWithNewestKeys(
  parts: Pick<TokenParts, 'trust' | 'clock'>,
  link: Pick<CloudLink, 'isOnline' | 'refreshDocuments'>,
  context: RequestContext,
  token: string,
): Promise<OpenedAuthorization> {
  const opened = openToken(parts, context, token)
  if (opened.ok || opened.fault !== 'unknown_key' || !link.isOnline) return opened
  await link.refreshDocuments()
  return openToken(parts, context, token)
}

/** Judges a verified token with local data only: ledger, action, item. */
export function judgeByToken(
  { trust, clock, ledger, items }: TokenParts,
  context: RequestContext,
  opened: OpenedAuthorization,
  isFetchedForRequest: boolean,
): Verdict {
  const { request, device } = context
  const { trust: clockTrust } = clock.now()
  const failed = opened.ok
    ? mismatch(opened.authorization, context, ledger, isFetchedForRequest)
    : denyReasonOf(opened.fault)
  const facts: DecisionFacts = {
    action: request.action,
    storeId: device.storeId,
    device,
    token: failed,
    clockTrusted: clockTrust !== 'none',
    stage: trust.stage(),
    item: isFetchedForRequest
      ? { status: null, paidBy: 'purchase' }
      : factsNow({ ledger, items }, request.identifiers, opened),
    identifiedBy: [],
    right: 'free',
    hasOperator: request.operatorId !== undefined,
    hasValidToken: true,
  }
  const decision = decide(facts, DEFAULT_POLICY)
  if (!decision.allowed) return { granted: false, reason: decision.reason }
  if (!opened.ok) return { granted: false, reason: 'token_invalid' }
  const { jti, cnt, iat, exp, eid } = opened.authorization
  const candidates = Array.from({ length: cnt }, (_, i) => i)
  return {
    granted: true,
    grant: { source: 'token', nonce: jti, candidates, all: false, count: cnt, exp, issuedS: iat, eventId: eid },
  }
}

/**
 * The cloud checked item and policy when it issued the token. The status of the item may have changed since, for example
 * to a hold, or its goods came back. Null if the request names several items.
 */
function factsNow(
  { ledger, items }: Pick<TokenParts, 'ledger' | 'items'>,
  identifiers: ItemIdentifiers,
  opened: OpenedAuthorization,
): ItemFacts | null {
  const known = findByIdentifiers(items, identifiers)
  if (known === 'several') return null
  const issuedMs = opened.ok ? opened.authorization.iat * 1_000 : 0
  const isBack = isBackSince(ledger.till, keysOfTag(items, identifiers), issuedMs)
  return { status: known?.status ?? null, recalled: known?.recalled, ...(!isBack && { paidBy: 'purchase' as const }) }
}

/**
 * True for a genuine token that only the cloud may redeem, because this ledger was untrusted when the cloud issued the
 * token.
 */
export function isOnlyForCloud(opened: OpenedAuthorization, { request }: RequestContext): boolean {
  if (!opened.ok) return false
  const { led, act } = opened.authorization
  return led === CLOUD_LEDGER && act === request.action && !isForOtherItem(opened.authorization, request)
}

function mismatch(
  authorization: AuthorizationClaims,
  { request }: RequestContext,
  ledger: Ledger,
  isFetchedForRequest: boolean,
): Extract<DenyReason, 'token_invalid' | 'token_revoked'> | undefined {
  if (authorization.act !== request.action || authorization.led !== `${ledger.ledgerId}.${ledger.generation}`)
    return 'token_invalid'
  // Skips this check for a token that the agent fetched for this request. The claim checks that token, and answers
  // `already_redeemed` if this ledger used the right.
  if (!isFetchedForRequest && ledger.claims.isDenied(authorization.jti)) return 'token_revoked'
  // If the cloud was restored to a backup from before this token, the cloud does not know the token and may grant the
  // right again.
  if (authorization.iat < ledger.cloudGeneration.tokensSince) return 'token_revoked'
  // If the agent fetched the token for this request, the cloud chose the item and may name the item by another
  // identifier.
  return !isFetchedForRequest && isForOtherItem(authorization, request) ? 'token_invalid' : undefined
}

/** True if the request names an item and the token is for another item. */
function isForOtherItem(authorization: AuthorizationClaims, { identifiers }: RequestContext['request']): boolean {
  if (authorization.ith === undefined) return false
  const named = ITEM_IDENTIFIER_KINDS.flatMap((kind) => {
    const id = identifiers[kind]
    return id === undefined ? [] : [isForItem(authorization, kind, id)]
  })
  return named.length > 0 && !named.includes(true)
}
