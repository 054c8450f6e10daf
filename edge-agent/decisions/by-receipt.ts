import { decide, restsOnOperator, type DecisionFacts, type ItemFacts } from '../../policy/decide.ts'
import { parseEpc } from '../../policy/gs1/epc.ts'
import { ITEM_IDENTIFIER_KINDS, type IdentifierKind, type ItemIdentifiers } from '../../policy/identifiers.ts'
import { receiptEntry, type ReceiptClaims } from '../../policy/receipts/claims.ts'
import { openReceipt, RECEIPT_LIFE, type OpenedReceipt } from '../../policy/receipts/receipt-token.ts'
import { limitAt, riskClassCeiling, type PolicyStage, type ProtectionPolicy } from '../../policy/store-policy.ts'
import { rightClass } from '../../policy/vocabulary.ts'
import { denyReasonOf } from '../../policy/documents/authorization.ts'
import { releasesByTag } from '../../policy/devices.ts'
import { judgedAt } from '../trust/clock.ts'
import type { Trust } from '../trust/trust.ts'
import type { TokenParts } from './by-token.ts'
import type { Ask, Grant, Verdict } from './request.ts'

/** Where this agent stands towards the place where receipts are redeemed. */
export interface HomeView {
  /** This agent is the home. */
  isHome: boolean
  /** And not only asks for its view of things. */
  isOwn?: boolean
  /** How long the home could not be asked, seconds of trusted time. */
  isolatedSeconds: number
}

/** Checks what a scanner read as a receipt of this store; what it says of the cloud's documents is heard. `at` absent: whenever it ends. */
export function readReceipt(
  trust: Pick<Trust, 'keys' | 'hearIssued'>,
  scanned: string,
  storeId: string,
  at?: { now: number; isAtLeast: boolean },
): OpenedReceipt {
  const opened = openReceipt(scanned, { keys: trust.keys, storeId, ...at })
  if (opened.ok) trust.hearIssued({ policy: opened.claims.policyVersion, issuedS: opened.claims.exp - RECEIPT_LIFE })
  return opened
}

/** Decides about a receipt with nothing but what is here (contracts §4, "Receipts" and "Isolated"). */
export function decideByReceipt(parts: TokenParts, home: HomeView, ask: Ask, scanned: string): Verdict {
  const { trust, clock, ledger } = parts
  const { request, device } = ask
  const policy = trust.policy?.policy
  const rights = rightClass(request.action)
  const { nowMs, trust: clockTrust } = clock.now()
  const opened = readReceipt(trust, scanned, device.storeId, judgedAt(clock))
  const cti = opened.ok ? Buffer.from(opened.claims.cti).toString('hex') : ''
  const token = opened.ok ? (ledger.claims.isDenied(cti) ? 'token_revoked' : undefined) : denyReasonOf(opened.fault)
  const stage = trust.stage()
  const covered =
    opened.ok && (rights === 'release' || rights === 'exit') ? coveredBy(opened.claims, request.identifiers) : undefined
  const operator = request.operatorId !== undefined
  // A receipt at a gate is honoured once, and counted once, however many of its units it lets out.
  const isCounted = request.isOpen !== true
  const free = covered && rights ? covered.filter((n) => ledger.claims.isFree(cti, rights, n, nowMs, operator)) : []
  const facts: DecisionFacts = {
    action: request.action,
    storeId: device.storeId,
    device,
    token,
    clockTrusted: clockTrust !== 'none',
    stage,
    item:
      covered === undefined
        ? null
        : itemFacts(opened.ok ? opened.claims : undefined, covered.length > 0 || !namesItem(request.identifiers)),
    identifiedBy: ITEM_IDENTIFIER_KINDS.filter((kind) => request.identifiers[kind] !== undefined),
    right: free.length > 0 ? 'free' : 'used',
    operator,
    limit:
      opened.ok && policy && !home.isHome && isCounted
        ? overLimit(opened.claims, policy, stage, home, ledger.claims.isolatedCount)
        : undefined,
  }
  if (!policy) return { granted: false, reason: 'policy_stale' }
  if (opened.ok && rights === 'release' && !namesItem(request.identifiers) && releasesByTag(device))
    return { granted: false, reason: 'technology_mismatch' }
  if (opened.ok && home.isHome && home.isOwn && trust.isImporting(opened.claims.exp))
    return { granted: false, reason: 'manual_assistance_required' }
  const decision = decide(facts, policy)
  if (!decision.allowed) return { granted: false, reason: decision.reason }
  if (!opened.ok || !rights) return { granted: false, reason: 'token_invalid' }
  const grant: Grant = {
    source: 'receipt',
    nonce: cti,
    candidates: free,
    all: rights === 'exit' && !namesItem(request.identifiers),
    count: opened.claims.units,
    exp: opened.claims.exp,
    home: { agentId: policy.home, epoch: policy.homeEpoch },
    ...(!home.isHome && isCounted && { isolated: { limit: limitAt(policy.offline.hardCount, stage) } }),
    ...(isCounted &&
      restsOnOperator(facts, policy) &&
      request.operatorId !== undefined && {
        approval: { operatorId: request.operatorId, limit: policy.operatorOverridesPerHour },
      }),
  }
  return { granted: true, grant }
}

function namesItem(identifiers: ItemIdentifiers): boolean {
  return ITEM_IDENTIFIER_KINDS.some((kind) => identifiers[kind] !== undefined)
}

/** Which units of the receipt a request is about: those that the tag matches, or all when no tag is named. */
function coveredBy(claims: ReceiptClaims, identifiers: ItemIdentifiers): number[] | undefined {
  const all = Array.from({ length: claims.units }, (_, n) => n)
  if (!namesItem(identifiers)) return all
  // Over 32 units a receipt carries no entries: nobody can match a tag, so staff must look.
  if (!claims.entries) return all
  const { entries, cti } = claims
  const wanted = namesOf(identifiers).map(([kind, id]) => Buffer.from(receiptEntry(cti, kind, id)))
  return all.filter((n) => wanted.some((entry) => entry.equals(entries[n] ?? new Uint8Array())))
}

/** A tag goes by its EPC, and by the product that an EPC names. */
function namesOf(identifiers: ItemIdentifiers): [IdentifierKind, string][] {
  const names: [IdentifierKind, string][] = ITEM_IDENTIFIER_KINDS.flatMap((kind) => {
    const id = identifiers[kind]
    return id === undefined ? [] : [[kind, id] as [IdentifierKind, string]]
  })
  const gtin = identifiers.epc === undefined ? undefined : parseEpc(identifiers.epc)?.gtin14
  return gtin === undefined ? names : [...names, ['gtin', gtin]]
}

/** What a receipt says of the goods: paid, and not dearer than its risk class. A tag that it does not cover is not paid by it. */
function itemFacts(claims: ReceiptClaims | undefined, isCovered: boolean): ItemFacts {
  return {
    status: isCovered ? 'paid' : 'sellable',
    ...(isCovered && { paidBy: 'purchase' as const }),
    priceBelowCent: claims ? riskClassCeiling(claims.riskClass) : null,
    ...(claims &&
      !claims.entries && {
        staffReason:
          'the receipt does not tell its goods apart: they are too many, or only the shopper’s app vouches for the price',
      }),
  }
}

/** Why an isolated agent may not honour this receipt, if so. */
function overLimit(
  claims: ReceiptClaims,
  { offline }: ProtectionPolicy,
  stage: PolicyStage,
  home: HomeView,
  counted: number,
): string | undefined {
  if (offline.storeBound === 'deny') return 'no receipt is honoured without the home'
  if (claims.riskClass > offline.maxRiskClass) return `risk class ${claims.riskClass} is above ${offline.maxRiskClass}`
  if (home.isolatedSeconds > limitAt(offline.maxIsolatedSeconds, stage))
    return `isolated for ${Math.round(home.isolatedSeconds)} s`
  return counted >= limitAt(offline.hardCount, stage) ? `${counted} receipts while isolated` : undefined
}
