import { countsAsOverride, type DecisionFacts } from '../../policy/decide.ts'
import { decideUnits, isolatedDenial } from '../../policy/decide-units.ts'
import { ITEM_IDENTIFIER_KINDS, type ItemIdentifiers } from '../../policy/item-identifiers.ts'
import { PASS, receiptEntry, type ReceiptClaims } from '../../policy/receipts/receipt-claims.ts'
import { openReceipt, RECEIPT_LIFE, type OpenedReceipt } from '../../policy/receipts/receipt-token.ts'
import { limitAt, type ProtectionPolicy } from '../../policy/store-policy.ts'
import { rightClassOf, type DenyReason } from '../../policy/vocabulary.ts'
import { RECALLED } from '../../policy/item-status.ts'
import { denyReasonOf } from '../../policy/documents/authorization.ts'
import { releasesByTag } from '../../policy/devices.ts'
import { validationTime } from '../trust/time/clock.ts'
import type { Trust } from '../trust/trust.ts'
import type { TokenParts } from './by-token.ts'
import type { FairTurns } from './fair-turns.ts'
import type { KnownSale } from './sale-codes.ts'
import {
  factsOfUnit,
  goodsOf,
  passedUnits,
  namesItem,
  staffReasonOf,
  stoppingStatus,
  unitsOfCode,
  unseenGoods,
  type SaleGoods,
  type SaleGoodsParts,
} from './sale-goods.ts'
import { type AuthorizeRequest, type RequestContext, type Grant, type Verdict, NEEDS_STAFF } from './request.ts'
import type { Home } from '../peers/home.ts'
import type { RightsRequest } from '../peers/home-requester.ts'
import { untrustedReason } from '../trust/revocation/untrusted-ledger.ts'

/** How this agent relates to the receipt home in a decision. */
interface HomeRole {
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
export function verifyReceipt(
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

/** A sale that the request presents: by a receipt, or by the code of a till. */
type PresentedSale = { ok: true; sale: ReceiptClaims | KnownSale } | Extract<OpenedReceipt, { ok: false }>

/** What the rules about a receipt need. */
type ReceiptParts = TokenParts &
  SaleGoodsParts & {
    /** EPCs of paid tags that left a gate of this agent since this time, trusted ms. */
    leftSince(sinceMs: number): readonly string[]
  }

/**
 * Judges a sale with local data only (ADR leases, ADR trusted-time). The rules judge each unit by its own facts, as in
 * the cloud.
 */
function judgeAlone(parts: ReceiptParts, role: HomeRole, context: RequestContext, presented: PresentedSale): Verdict {
  const { trust, clock } = parts
  const { request, device } = context
  const policy = trust.policy?.policy
  const rights = rightClassOf(request.action)
  const stage = trust.stage()
  const operator = request.operatorId !== undefined
  // An operator approves a receipt at a gate once, even if several of its units leave.
  const isCounted = request.isAlreadyOpen !== true
  const found = presented.ok ? findRights(parts, request, presented.sale) : undefined
  const goods = found?.goods
  const facts: Omit<DecisionFacts, 'item' | 'right'> = {
    action: request.action,
    storeId: device.storeId,
    device,
    ...receiptFacts(presented, goods?.isOver === true),
    clockTrusted: clock.now().trust !== 'none',
    stage,
    identifiedBy: ITEM_IDENTIFIER_KINDS.filter((kind) => request.identifiers[kind] !== undefined),
    mustBeRead: rights === 'release' && releasesByTag(device) && !namesTag(request.identifiers),
    hasOperator: operator,
    limit: goods && isolatedLimit(parts, role, goods),
  }
  const judged = unitsToJudge(facts, request, found, policy)
  if (!policy) return { granted: false, reason: 'policy_stale' }
  if (goods && role.decidesAsHome && role.isThisAgent && trust.isImporting(goods.exp)) return NEEDS_STAFF
  if (goods?.isUnclear && !operator) return NEEDS_STAFF
  const { decision, allowed, unknownFacts } = decideUnits(judged, policy)
  const unknown = unknownFacts.length > 0 ? { unknownFacts } : {}
  if (!decision.allowed)
    return { granted: false, reason: decision.reason, ...unknown, ...(goods && stoppingStatus(goods)) }
  if (!found || !goods || !rights) return { granted: false, reason: 'token_invalid' }
  const { isPass, free } = found
  // Staff may open a fixture without a right of the receipt, see `openByStaff`.
  const candidates = isPass ? (mayPass(found) ? [PASS] : []) : free.filter((_, n) => allowed.includes(n))
  if (candidates.length === 0)
    return { granted: false, reason: goods.covered.length > 0 ? 'already_redeemed' : 'item_not_paid' }
  const grant: Grant = {
    source: 'receipt',
    nonce: goods.key,
    candidates,
    all: false,
    unlessLeft: found.unlessLeft,
    count: isPass ? 1 : goods.units.length,
    exp: goods.exp,
    homeAtDecision: { agentId: policy.home, epoch: policy.homeEpoch },
    // Staff approve what is above the limits, so this does not count as a receipt.
    ...(!role.decidesAsHome &&
      facts.limit === undefined && { isolated: { limit: limitAt(policy.offline.hardCount, stage) } }),
    ...(isCounted &&
      judged.some((unit, n) => allowed.includes(n) && countsAsOverride(unit, policy)) &&
      request.operatorId !== undefined && {
        approval: { operatorId: request.operatorId, limit: policy.operatorOverridesPerHour },
      }),
    ...unknown,
  }
  return { granted: true, grant }
}

/** The goods of a sale, and the rights that a request may use. */
interface FoundRights {
  readonly goods: SaleGoods
  /** True if the request uses the right of the receipt itself (`PASS`); the units only tell which rules apply. */
  readonly isPass: boolean
  readonly isUsedPass: boolean
  /** Numbers of the covered units that are free and did not come back. */
  readonly free: readonly number[]
  /** True if goods that have left cannot be released: a shopper who shows the receipt then has other goods. */
  readonly unlessLeft: boolean
}

function findRights(parts: ReceiptParts, request: AuthorizeRequest, sale: ReceiptClaims | KnownSale): FoundRights {
  const { claims } = parts.ledger
  const { nowMs } = parts.clock.now()
  const rights = rightClassOf(request.action)
  const operator = request.operatorId !== undefined
  const isPass = usesPass(request)
  const unseen = unseenGoods(parts, sale)
  const { key } = unseen
  // A used pass needs no look at the goods.
  const isUsedPass = isPass && !claims.isFree(key, 'exit', PASS, nowMs, operator)
  const goods = isUsedPass ? unseen : goodsOf(parts, sale, request.identifiers)
  if (isUsedPass || rights === null) return { goods, isPass, isUsedPass, free: [], unlessLeft: false }
  const mayLeave = rights === 'release' && !operator && !goods.isOfNamedTag
  const { epc } = request.identifiers
  const passed = operator
    ? []
    : [...passedUnits(parts, sale), ...(mayLeave && epc === undefined ? unitsThatLeft(parts, sale) : [])]
  const free = claims
    .freeOf(key, rights, goods.covered, nowMs, operator)
    .filter((n) => goods.units[n]?.cameBack !== true && !passed.includes(n))
    .filter((n) => !claims.isOfOther(key, n, { rightClass: rights, epc, unlessLeft: mayLeave, nowMs }))
  // The receipt home does not know for which tag this agent used a unit.
  const isOwn = epc !== undefined && claims.tagsOf(key).some((unit) => unit.epc === epc && free.includes(unit.ordinal))
  return { goods, isPass, isUsedPass, free, unlessLeft: mayLeave && !isOwn }
}

/** Numbers of the units of a receipt that name a tag which has left since the receipt was signed. */
export function unitsThatLeft(parts: Pick<ReceiptParts, 'leftSince'>, sale: ReceiptClaims | KnownSale): number[] {
  if (!('cti' in sale) || !sale.entries) return []
  const left = parts.leftSince((sale.exp - RECEIPT_LIFE) * 1_000)
  const hashes = new Set(left.map((epc) => Buffer.from(receiptEntry(sale.cti, 'epc', epc)).toString('hex')))
  return sale.entries.flatMap((entry, n) => (hashes.has(Buffer.from(entry).toString('hex')) ? [n] : []))
}

/** True if a receipt opens a barrier: not after its last tagged goods have left. */
function mayPass({ goods, isUsedPass, free }: FoundRights): boolean {
  return !isUsedPass && (free.length > 0 || goods.covered.length === 0)
}

/** The facts by which a request is decided: of each unit whose right it may use, or of the goods as a whole. */
function unitsToJudge(
  facts: Omit<DecisionFacts, 'item' | 'right'>,
  request: AuthorizeRequest,
  found: FoundRights | undefined,
  policy: ProtectionPolicy | undefined,
): [DecisionFacts, ...DecisionFacts[]] {
  if (!found) return [{ ...facts, item: null, right: 'used' }]
  const { goods, isPass, isUsedPass, free } = found
  const right = isUsedPass ? 'used' : 'free'
  // Thousands of units of which nothing is known are judged once.
  const alike = new Map<unknown, DecisionFacts>()
  const judge = (n: number): DecisionFacts => {
    const kind = goods.receipt?.entries ? n : goods.units[n]
    const unit = alike.get(kind) ?? { ...facts, item: factsOfUnit(goods, n, isPass, policy), right }
    alike.set(kind, unit)
    return unit
  }
  const units = (goods.receipt || !isPass || isUsedPass ? free : unitsOfCode(goods)).map(judge)
  const [first = { ...facts, ...factsWithoutUnit(found, request, policy) }, ...others] = units
  return [first, ...others]
}

/** True if the request uses the right of the receipt itself (`PASS`). */
function usesPass({ action, identifiers }: Pick<AuthorizeRequest, 'action' | 'identifiers'>): boolean {
  return rightClassOf(action) === 'exit' && !namesItem(identifiers)
}

/** Facts about the receipt itself. */
function receiptFacts(presented: PresentedSale, isOver: boolean): Pick<DecisionFacts, 'isOtherStores' | 'token'> {
  if (presented.ok) return { token: isOver ? 'token_revoked' : undefined }
  return presented.fault === 'wrong_audience' ? { isOtherStores: true } : { token: denyReasonOf(presented.fault) }
}

/** The limit of an isolated agent that this receipt exceeds. */
function isolatedLimit(
  { trust, ledger }: ReceiptParts,
  { decidesAsHome, isolatedSeconds }: HomeRole,
  { riskClass, key }: SaleGoods,
): string | undefined {
  const policy = trust.policy?.policy
  const otherReceipts = ledger.claims.isHonoured(key) ? 0 : ledger.claims.isolatedCount
  return policy && !decidesAsHome
    ? isolatedDenial(policy, { riskClass, stage: trust.stage(), isolatedSeconds, otherReceipts })
    : undefined
}

/** True if the request names the tag, and not only the line of a purchase. */
function namesTag({ epc, tagUid, tagId }: ItemIdentifiers): boolean {
  return epc !== undefined || tagUid !== undefined || tagId !== undefined
}

/**
 * Facts for the decision if no unit is free: the receipt has no units, the tag does not belong to the receipt, or all
 * covered units are used. The item is null if receipts do not authorize this action.
 */
function factsWithoutUnit(
  { goods, isPass, isUsedPass }: FoundRights,
  { action, identifiers }: AuthorizeRequest,
  policy: ProtectionPolicy | undefined,
): Pick<DecisionFacts, 'item' | 'right'> {
  const { named, covered } = goods
  const hasUnits = goods.receipt !== undefined && goods.units.length > 0
  const right = isUsedPass || hasUnits ? 'used' : isPass ? 'free' : 'none'
  if (rightClassOf(action) === null || named === 'several') return { item: null, right }
  if (covered.length === 0 && namesItem(identifiers))
    return { item: named?.recalled ? RECALLED : { status: 'sellable' }, right: 'free' }
  const [n] = covered
  const first = n === undefined ? undefined : factsOfUnit(goods, n, isPass, policy)
  const untagged = n === undefined && { category: '', brand: '', ...staffReasonOf(goods, isPass) }
  return { item: { ...untagged, ...first, status: named?.status ?? null, paidBy: 'purchase' }, right }
}

function openPresented(
  { trust, clock }: Pick<ReceiptParts, 'trust' | 'clock'>,
  { device }: RequestContext,
  presented: string | KnownSale,
): PresentedSale {
  if (typeof presented !== 'string') return { ok: true, sale: presented }
  const opened = verifyReceipt(trust, presented, device.storeId, validationTime(clock))
  return opened.ok ? { ok: true, sale: opened.claims } : opened
}

export interface ReceiptJudgeParts extends ReceiptParts {
  agentId: string
  turns: Pick<FairTurns, 'next'>
  /** The receipt home, if it is another agent. */
  home: Pick<Home, 'isElsewhere' | 'lastAnswerMs' | 'request'>
}

/**
 *   receipt ─┬─ this agent is the receipt home ─▶ judge alone
 *            └─ another agent is ─▶ home request ─┬─▶ home grant or denial
 *                                                 └─ unreachable ─▶ isolated rules
 *
 * Judges a receipt while the agent is offline (ADR leases). If another agent is the receipt home, this agent requests
 * the rights from that agent. The isolated rules apply only if the receipt home is unreachable.
 */
export async function judgeByReceipt(
  parts: ReceiptJudgeParts,
  context: RequestContext,
  presented: string | KnownSale,
): Promise<Verdict> {
  const { home, turns } = parts
  const sale = openPresented(parts, context, presented)
  await turns.next(context.device.deviceId)
  // During the home request the cloud may have reported that this ledger is untrusted.
  const alone = () => (distrustReason(parts) ? NEEDS_STAFF : judgeAlone(parts, roleOf(parts), context, sale))
  if (!home.isElsewhere) return alone()
  // This agent first applies the rules as if it were the receipt home. Then the receipt home grants or refuses the
  // rights.
  const verdict = judgeAlone(parts, { decidesAsHome: true, isolatedSeconds: 0 }, context, sale)
  if (!verdict.granted || verdict.grant === null) return verdict
  const answer = await home.request(homeRequestOf(context, verdict.grant))
  if ('unreachable' in answer) {
    await turns.next(context.device.deviceId)
    return withHomeRequest(alone(), answer.redemptionId)
  }
  if ('refused' in answer) return denial(answer.refused, verdict.grant)
  if (answer.reason) return denial(answer.reason, verdict.grant)
  const { redemptionId, ordinals, remaining } = answer
  const homeIds = { homeRequestId: redemptionId, homeRedemptionId: redemptionId }
  return { granted: true, grant: { ...verdict.grant, candidates: ordinals, all: true, ...homeIds, remaining } }
}

/**
 * Checks at the claim that the verdict about a receipt is still valid. Since the verdict the receipt home may have
 * moved, or the cloud may have reported that this ledger is untrusted.
 */
export function isStillValid(
  parts: Pick<ReceiptJudgeParts, 'trust' | 'ledger' | 'clock'>,
  { homeAtDecision: home }: Grant,
): boolean {
  const policy = parts.trust.policy?.policy
  return (
    home === undefined ||
    (policy?.home === home.agentId && policy.homeEpoch === home.epoch && distrustReason(parts) === undefined)
  )
}

function distrustReason({ ledger, clock }: Pick<ReceiptJudgeParts, 'ledger' | 'clock'>) {
  return untrustedReason(ledger, clock.now().nowMs)
}

function roleOf({ trust, clock, agentId, home }: ReceiptJudgeParts): HomeRole {
  const isHome = trust.policy?.policy.home === agentId
  const { nowMs } = clock.now()
  // Ignores an answer with a future time: the clock was wrong when the answer arrived.
  const lastContactMs = Math.max(trust.lastContactMs, home.lastAnswerMs > nowMs ? 0 : home.lastAnswerMs)
  return { decidesAsHome: isHome, isThisAgent: isHome, isolatedSeconds: Math.max(0, (nowMs - lastContactMs) / 1_000) }
}

function denial(reason: DenyReason, { unknownFacts }: Grant): Verdict {
  return { granted: false, reason, ...(unknownFacts && { unknownFacts }) }
}

/**
 * Adds the id of the home request to the grant. Although no answer arrived, the receipt home may have granted the
 * rights.
 */
function withHomeRequest(verdict: Verdict, homeRequestId: string | undefined): Verdict {
  return verdict.granted && verdict.grant && homeRequestId !== undefined
    ? { granted: true, grant: { ...verdict.grant, homeRequestId } }
    : verdict
}

function homeRequestOf({ request, device }: RequestContext, grant: Grant): RightsRequest {
  const { nonce, candidates, all, unlessLeft, exp } = grant
  return {
    cti: nonce,
    rightClass: rightClassOf(request.action) ?? 'release',
    candidates,
    all,
    unlessLeft,
    exp,
    deviceId: device.deviceId,
  }
}
