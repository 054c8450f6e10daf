import { countsAsOverride, type DecisionFacts, type ItemFacts } from '../../policy/decide.ts'
import { decideUnits } from '../../policy/decide-units.ts'
import { parseEpc } from '../../policy/gs1/epc.ts'
import { ITEM_IDENTIFIER_KINDS, type IdentifierKind, type ItemIdentifiers } from '../../policy/item-identifiers.ts'
import { receiptEntry, type ReceiptClaims } from '../../policy/receipts/receipt-claims.ts'
import { openReceipt, RECEIPT_LIFE, type OpenedReceipt } from '../../policy/receipts/receipt-token.ts'
import { isolatedDenial } from '../../policy/isolated-agent.ts'
import { limitAt, riskClassCeiling } from '../../policy/store-policy.ts'
import { rightClassOf } from '../../policy/vocabulary.ts'
import { denyReasonOf } from '../../policy/documents/authorization.ts'
import { releasesByTag } from '../../policy/devices.ts'
import { validationTime } from '../trust/time/clock.ts'
import { findByIdentifiers } from '../items/find-item.ts'
import type { KnownItem } from '../items/item-table.ts'
import type { Replica } from '../items/replica.ts'
import type { Trust } from '../trust/trust.ts'
import type { TokenParts } from './by-token.ts'
import type { RequestContext, Grant, Verdict } from './request.ts'

/** How this agent relates to the receipt home in a decision. */
export interface HomeRole {
  /** True if the rules of the receipt home apply instead of the isolated rules. */
  decidesAsHome: boolean
  /** True if this agent is the receipt home. */
  isThisAgent?: boolean
  /** Trusted time since the last contact with the cloud or the receipt home, s. */
  isolatedSeconds: number
}

/**
 * Verifies a receipt of this store, and passes the document versions that the receipt names to `trust`. Checks the
 * expiry only if `at` is given.
 */
export function readReceipt(
  trust: Pick<Trust, 'keys' | 'noteIssuedVersions'>,
  scanned: string,
  storeId: string,
  at?: { now: number; nowIsLowerBound: boolean },
): OpenedReceipt {
  const opened = openReceipt(scanned, { keys: trust.keys, storeId, ...at })
  if (opened.ok)
    trust.noteIssuedVersions({ policy: opened.claims.policyVersion, issuedS: opened.claims.exp - RECEIPT_LIFE })
  return opened
}

/** Dependencies of receipt decisions. */
export type ReceiptParts = TokenParts & { items: Pick<Replica, 'find'> }

/**
 * Decides about a receipt with local data only (ADR 0012, ADR 0016). The rules judge each unit by its own facts, as in
 * the cloud.
 */
export function decideByReceipt(
  parts: ReceiptParts,
  home: HomeRole,
  context: RequestContext,
  scanned: string,
): Verdict {
  const { trust, clock, ledger, items } = parts
  const { request, device } = context
  const policy = trust.policy?.policy
  const rights = rightClassOf(request.action)
  const { nowMs, trust: clockTrust } = clock.now()
  const opened = readReceipt(trust, scanned, device.storeId, validationTime(clock))
  const cti = opened.ok ? Buffer.from(opened.claims.cti).toString('hex') : ''
  const token = opened.ok ? (ledger.claims.isDenied(cti) ? 'token_revoked' : undefined) : denyReasonOf(opened.fault)
  const stage = trust.stage()
  const covered =
    opened.ok && (rights === 'release' || rights === 'exit')
      ? coveredUnits(opened.claims, request.identifiers)
      : undefined
  const operator = request.operatorId !== undefined
  // The limits count a receipt at a gate once, even if several of its units leave.
  const isCounted = request.isAlreadyOpen !== true
  const free = covered && rights ? covered.filter((n) => ledger.claims.isFree(cti, rights, n, nowMs, operator)) : []
  const facts: Omit<DecisionFacts, 'item' | 'right'> = {
    action: request.action,
    storeId: device.storeId,
    device,
    token,
    clockTrusted: clockTrust !== 'none',
    stage,
    identifiedBy: ITEM_IDENTIFIER_KINDS.filter((kind) => request.identifiers[kind] !== undefined),
    hasOperator: operator,
    limit:
      opened.ok && policy && !home.decidesAsHome && isCounted
        ? isolatedDenial(policy, {
            riskClass: opened.claims.riskClass,
            stage,
            isolatedSeconds: home.isolatedSeconds,
            honouredReceipts: ledger.claims.isolatedCount,
          })
        : undefined,
  }
  const known = findByIdentifiers(items, request.identifiers)
  const units = free.map((n): DecisionFacts => ({
    ...facts,
    item: opened.ok ? unitFacts(opened.claims, n, known) : null,
    right: 'free',
  }))
  const [
    first = { ...facts, item: factsWithoutUnit(covered, request.identifiers), right: 'used' as const },
    ...others
  ] = units
  if (!policy) return { granted: false, reason: 'policy_stale' }
  if (opened.ok && rights === 'release' && !namesItem(request.identifiers) && releasesByTag(device))
    return { granted: false, reason: 'technology_mismatch' }
  if (opened.ok && home.decidesAsHome && home.isThisAgent && trust.isImporting(opened.claims.exp))
    return { granted: false, reason: 'manual_assistance_required' }
  const { decision, allowed, unknownFacts } = decideUnits([first, ...others], policy)
  const unknown = unknownFacts.length > 0 ? { unknownFacts } : {}
  if (!decision.allowed) return { granted: false, reason: decision.reason, ...unknown }
  if (!opened.ok || !rights) return { granted: false, reason: 'token_invalid' }
  const grant: Grant = {
    source: 'receipt',
    nonce: cti,
    candidates: free.filter((_, n) => allowed.includes(n)),
    all: rights === 'exit' && !namesItem(request.identifiers),
    count: opened.claims.units,
    exp: opened.claims.exp,
    home: { agentId: policy.home, epoch: policy.homeEpoch },
    ...(!home.decidesAsHome && isCounted && { isolated: { limit: limitAt(policy.offline.hardCount, stage) } }),
    ...(isCounted &&
      units.some((unit, n) => allowed.includes(n) && countsAsOverride(unit, policy)) &&
      request.operatorId !== undefined && {
        approval: { operatorId: request.operatorId, limit: policy.operatorOverridesPerHour },
      }),
    ...unknown,
  }
  return { granted: true, grant }
}

function namesItem(identifiers: ItemIdentifiers): boolean {
  return ITEM_IDENTIFIER_KINDS.some((kind) => identifiers[kind] !== undefined)
}

/** Units of the receipt that the request is about: those that match the named tag, or all if no tag is named. */
function coveredUnits(claims: ReceiptClaims, identifiers: ItemIdentifiers): number[] | undefined {
  const all = Array.from({ length: claims.units }, (_, n) => n)
  if (!namesItem(identifiers)) return all
  // A receipt has no entries if it has over 32 units, or if its prices come only from the shopper's app. Then no tag
  // can be matched: all units count as covered, and `unitFacts` requires staff.
  if (!claims.entries) return all
  const { entries, cti } = claims
  const wanted = namesOf(identifiers).map(([kind, id]) => Buffer.from(receiptEntry(cti, kind, id)))
  return all.filter((n) => wanted.some((entry) => entry.equals(entries[n] ?? new Uint8Array())))
}

/** Identifiers of a tag, and the GTIN in its EPC. */
function namesOf(identifiers: ItemIdentifiers): [IdentifierKind, string][] {
  const names: [IdentifierKind, string][] = ITEM_IDENTIFIER_KINDS.flatMap((kind) => {
    const id = identifiers[kind]
    return id === undefined ? [] : [[kind, id] as [IdentifierKind, string]]
  })
  const gtin = identifiers.epc === undefined ? undefined : parseEpc(identifiers.epc)?.gtin14
  return gtin === undefined ? names : [...names, ['gtin', gtin]]
}

/**
 * Facts about a unit of a receipt: from the replica if the request names an item, else from the receipt, else unknown.
 * While the replica lists the item as sellable, the price comes from the receipt.
 */
function unitFacts(claims: ReceiptClaims, n: number, known: KnownItem | undefined): ItemFacts {
  const signed = claims.facts?.[n]
  return {
    status: 'paid',
    paidBy: 'purchase',
    category: known?.category ?? signed?.category,
    brand: known?.brand ?? signed?.brand,
    priceCent: known && known.status !== 'sellable' ? known.priceCent : signed?.priceCent,
    priceBelowCent: riskClassCeiling(claims.riskClass),
    technology: known?.technology,
    ...(!claims.entries && {
      staffReason:
        'the receipt does not tell its goods apart: they are too many, or only the shopper’s app states the price',
    }),
  }
}

/**
 * Returns the facts for the decision if no unit is free: the tag does not belong to the receipt, or all covered units
 * are used. Returns null if receipts do not authorize this action.
 */
function factsWithoutUnit(covered: readonly number[] | undefined, identifiers: ItemIdentifiers): ItemFacts | null {
  if (covered === undefined) return null
  return covered.length > 0 || !namesItem(identifiers) ? { status: 'paid', paidBy: 'purchase' } : { status: 'sellable' }
}
