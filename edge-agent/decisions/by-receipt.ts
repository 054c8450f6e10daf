import { countsAsOverride, type DecisionFacts, type ItemFacts } from '../../policy/decide.ts'
import { decideUnits, isolatedDenial } from '../../policy/decide-units.ts'
import { parseEpc } from '../../policy/gs1/epc.ts'
import { ITEM_IDENTIFIER_KINDS, type IdentifierKind, type ItemIdentifiers } from '../../policy/item-identifiers.ts'
import { readUnitFacts } from '../../policy/receipts/policy-names.ts'
import { PASS, receiptEntry, SHOPPER_PRICED, type ReceiptClaims } from '../../policy/receipts/receipt-claims.ts'
import { openReceipt, RECEIPT_LIFE, type OpenedReceipt } from '../../policy/receipts/receipt-token.ts'
import { limitAt, riskClassCeiling, type ProtectionPolicy } from '../../policy/store-policy.ts'
import { ITEM_STATUSES, rightClassOf, type ItemStatus, type DenyReason } from '../../policy/vocabulary.ts'
import { RECALLED } from '../../policy/item-status.ts'
import { denyReasonOf } from '../../policy/documents/authorization.ts'
import { releasesByTag } from '../../policy/devices.ts'
import { validationTime } from '../trust/time/clock.ts'
import { findByIdentifiers } from '../items/find-item.ts'
import type { KnownItem } from '../items/item-table.ts'
import type { Replica } from '../items/replica.ts'
import type { Trust } from '../trust/trust.ts'
import type { TokenParts } from './by-token.ts'
import type { FairTurns } from './fair-turns.ts'
import { cameBack } from './goods-back.ts'
import { isBackSince, itemsOfSale, unitsBack, whyGoodsStay } from './goods-of-sale.ts'
import type { KnownSale } from './sale-codes.ts'
import { type AuthorizeRequest, type RequestContext, type Grant, type Verdict, NEEDS_STAFF } from './request.ts'
import type { Home } from '../peers/home.ts'
import type { RightsRequest } from '../peers/home-requester.ts'
import { recalledUnits } from '../trust/revocation/recalled-units.ts'
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

/** The claims of a sale whose receipt is not signed: its goods are unknown here. Their tags count as paid by themselves. */
function claimsOfSale({ sale, exp, riskClass }: KnownSale, storeId: string): ReceiptClaims {
  return { storeId, exp, cti: Buffer.from(sale, 'hex'), units: 0, riskClass, policyVersion: 0 }
}

/** A receipt, or the sale of a code. */
type JudgedReceipt = { ok: true; claims: ReceiptClaims } | Extract<OpenedReceipt, { ok: false }>

/** What the rules about a receipt need. */
type ReceiptParts = TokenParts & { items: Pick<Replica, 'find' | 'findByKey' | 'keysOf' | 'namesIn'> }

/**
 * Judges a receipt with local data only (ADR leases, ADR trusted-time). The rules judge each unit by its own facts, as in
 * the cloud.
 */
function judgeAlone(
  parts: ReceiptParts,
  home: HomeRole,
  context: RequestContext,
  opened: JudgedReceipt,
  soldItems: readonly KnownItem[] = [],
): Verdict {
  const { trust, clock, ledger } = parts
  const { request, device } = context
  const policy = trust.policy?.policy
  const rights = rightClassOf(request.action)
  const { nowMs, trust: clockTrust } = clock.now()
  const cti = opened.ok ? Buffer.from(opened.claims.cti).toString('hex') : ''
  const stage = trust.stage()
  const operator = request.operatorId !== undefined
  // An operator approves a receipt at a gate once, even if several of its units leave.
  const isCounted = request.isAlreadyOpen !== true
  const found = findRights(parts, request, opened, nowMs)
  if (!found) return NEEDS_STAFF
  const { covered, isPass, pass, isUsedPass, free } = found
  const facts: Omit<DecisionFacts, 'item' | 'right'> = {
    action: request.action,
    storeId: device.storeId,
    device,
    ...receiptFacts(opened, ledger.claims.isDenied(cti)),
    clockTrusted: clockTrust !== 'none',
    stage,
    identifiedBy: ITEM_IDENTIFIER_KINDS.filter((kind) => request.identifiers[kind] !== undefined),
    mustBeRead: rights === 'release' && releasesByTag(device) && !namesTag(request.identifiers),
    hasOperator: operator,
    limit: opened.ok ? isolatedLimit(parts, home, opened.claims, cti) : undefined,
  }
  const goods = opened.ok && !isUsedPass ? knownGoods(parts, opened.claims, request.identifiers) : UNKNOWN_GOODS
  const right = isUsedPass ? 'used' : 'free'
  const factsOf = (n: number): DecisionFacts => ({
    ...facts,
    item: opened.ok ? unitFacts(opened.claims, n, goods, isPass, policy) : null,
    right,
  })
  const units = opened.ok && !opened.claims.entries ? sharedFacts(free, goods.recalled, factsOf) : free.map(factsOf)
  const without = factsWithoutUnit(opened, covered, request.identifiers, goods, isPass, policy)
  // After its last goods have left, a receipt opens no barrier.
  const isUntagged = isPass && covered?.length === 0
  // The rules for the tagged goods of a code's sale.
  if (isUntagged) for (const item of soldItems) units.push({ ...facts, item: { ...item, paidBy: 'purchase' }, right })
  const [first = { ...facts, ...without, ...(isUntagged && { right }) }, ...others] = units
  const judged: [DecisionFacts, ...DecisionFacts[]] = [first, ...others]
  if (!policy) return { granted: false, reason: 'policy_stale' }
  if (opened.ok && home.decidesAsHome && home.isThisAgent && trust.isImporting(opened.claims.exp))
    return { granted: false, reason: 'manual_assistance_required' }
  if (goods.isUnclear && !operator) return { granted: false, reason: 'manual_assistance_required' }
  const { decision, allowed, unknownFacts } = decideUnits(judged, policy)
  const unknown = unknownFacts.length > 0 ? { unknownFacts } : {}
  if (!decision.allowed) return { granted: false, reason: decision.reason, ...unknown, ...stoppingStatus(goods) }
  if (!opened.ok || !rights) return { granted: false, reason: 'token_invalid' }
  // Staff may open a fixture without a right of the receipt, see `openByStaff`.
  const candidates = isPass ? (free.length > 0 || isUntagged ? pass : []) : free.filter((_, n) => allowed.includes(n))
  if (candidates.length === 0) return { granted: false, reason: covered?.length ? 'already_redeemed' : 'item_not_paid' }
  const grant: Grant = {
    source: 'receipt',
    nonce: cti,
    candidates,
    all: false,
    count: isPass ? 1 : opened.claims.units,
    exp: opened.claims.exp,
    home: { agentId: policy.home, epoch: policy.homeEpoch },
    // Staff approve what is above the limits, so this does not count as a receipt.
    ...(!home.decidesAsHome &&
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

/** Which rights of a receipt a request may use. Undefined: only staff can tell. */
function findRights(
  parts: ReceiptParts,
  request: AuthorizeRequest,
  opened: JudgedReceipt,
  nowMs: number,
): { covered: number[] | undefined; isPass: boolean; pass: number[]; isUsedPass: boolean; free: number[] } | undefined {
  const { claims } = parts.ledger
  const rights = rightClassOf(request.action)
  const operator = request.operatorId !== undefined
  const cti = opened.ok ? Buffer.from(opened.claims.cti).toString('hex') : ''
  const covered = opened.ok && rights !== null ? coveredUnits(opened.claims, request.identifiers) : undefined
  // A barrier uses the receipt's own right, whatever left before. The units only tell which rules apply.
  const isPass = usesPass(request)
  const pass = isPass && claims.isFree(cti, 'exit', PASS, nowMs, operator) ? [PASS] : []
  // A used pass needs no look at the goods.
  const isUsedPass = isPass && pass.length === 0
  if (!opened.ok || !covered || !rights || isUsedPass) return { covered, isPass, pass, isUsedPass, free: [] }
  const back = backOf(parts, opened.claims, request.identifiers, covered)
  if (!back) return undefined
  const free = claims.freeOf(cti, rights, covered, nowMs, operator).filter((n) => !back.has(n))
  return { covered, isPass, pass, isUsedPass, free }
}

/** Facts of the units of a receipt that does not tell them apart: thousands of units are judged once. */
function sharedFacts(
  units: readonly number[],
  recalled: ReadonlySet<number>,
  factsOf: (n: number) => DecisionFacts,
): DecisionFacts[] {
  const known = new Map<boolean, DecisionFacts>()
  return units.map((n) => {
    const facts = known.get(recalled.has(n)) ?? factsOf(n)
    known.set(recalled.has(n), facts)
    return facts
  })
}

/** The units of a receipt whose goods came back since: all that cover a named tag which did. Undefined: it is unclear. */
function backOf(
  { ledger, items }: Pick<ReceiptParts, 'ledger' | 'items'>,
  claims: ReceiptClaims,
  identifiers: ItemIdentifiers,
  covered: readonly number[] = [],
): ReadonlySet<number> | undefined {
  const named = (['epc', 'tagUid', 'tagId'] as const).flatMap((kind) => {
    const name = identifiers[kind]
    return name === undefined ? [] : items.keysOf(kind, name)
  })
  if (named.length === 0) return namesItem(identifiers) ? new Set() : unitsBack({ ledger }, claims)
  return new Set(named.some((name) => isBackSince(ledger.till, name, claims.exp)) ? covered : [])
}

/** True if the request uses the right of the receipt itself (`PASS`). */
export function usesPass({ action, identifiers }: Pick<AuthorizeRequest, 'action' | 'identifiers'>): boolean {
  return rightClassOf(action) === 'exit' && !namesItem(identifiers)
}

/** Facts about the receipt itself. */
function receiptFacts(opened: JudgedReceipt, isDenied: boolean): Pick<DecisionFacts, 'isOtherStores' | 'token'> {
  if (opened.ok) return { token: isDenied ? 'token_revoked' : undefined }
  return opened.fault === 'wrong_audience' ? { isOtherStores: true } : { token: denyReasonOf(opened.fault) }
}

/** The limit of an isolated agent that this receipt exceeds. */
function isolatedLimit(
  { trust, ledger }: ReceiptParts,
  { decidesAsHome, isolatedSeconds }: HomeRole,
  { riskClass }: ReceiptClaims,
  cti: string,
): string | undefined {
  const policy = trust.policy?.policy
  const otherReceipts = ledger.claims.isHonoured(cti) ? 0 : ledger.claims.isolatedCount
  return policy && !decidesAsHome
    ? isolatedDenial(policy, { riskClass, stage: trust.stage(), isolatedSeconds, otherReceipts })
    : undefined
}

function namesItem(identifiers: ItemIdentifiers): boolean {
  return ITEM_IDENTIFIER_KINDS.some((kind) => identifiers[kind] !== undefined)
}

/** True if the request names the tag, and not only the line of a purchase. */
function namesTag({ epc, tagUid, tagId }: ItemIdentifiers): boolean {
  return epc !== undefined || tagUid !== undefined || tagId !== undefined
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

/** What the replica knows about the goods of a receipt. */
interface KnownGoods {
  /** The item that the request names. */
  named: KnownItem | 'several' | undefined
  /** If the request names no item: the items whose status may stop a unit, by their number on the receipt. */
  stopped: ReadonlyMap<number, KnownItem>
  /** Units that a recall of their product or lot stops, although no item with a tag tells it. */
  recalled: ReadonlySet<number>
  /** True if too many items are stopped to find those of the receipt: staff look. */
  isUnclear?: boolean
}

const UNKNOWN_GOODS: KnownGoods = { named: undefined, stopped: new Map(), recalled: new Set() }

/** Statuses of goods that were sold and may not leave now, or not everywhere. */
const STOPPED: ReadonlySet<ItemStatus> = new Set(
  ITEM_STATUSES.filter((status) => status !== 'sellable' && status !== 'paid' && status !== 'picked_up'),
)

/** Finds the goods of a receipt in the replica, so that a hold stops them with and without the tag (ADR releases). */
function knownGoods(parts: ReceiptParts, claims: ReceiptClaims, identifiers: ItemIdentifiers): KnownGoods {
  const { items } = parts
  const recalled = recalledUnits(parts, claims)
  if (namesItem(identifiers)) return { named: findByIdentifiers(items, identifiers), stopped: new Map(), recalled }
  const stopped = new Map<number, KnownItem>()
  const { entries = [], cti } = claims
  const numbers = new Map(entries.map((entry, n) => [Buffer.from(entry).toString('hex'), n]))
  if (numbers.size === 0) return { ...UNKNOWN_GOODS, recalled }
  const names = items.namesIn(STOPPED)
  if (!names) return { ...UNKNOWN_GOODS, recalled, isUnclear: true }
  for (const { kind, name } of names) {
    const n = numbers.get(Buffer.from(receiptEntry(cti, kind, name)).toString('hex'))
    const item = n === undefined ? undefined : items.find(kind, name)
    if (n !== undefined && item && STOPPED.has(item.status)) stopped.set(n, item)
  }
  return { named: undefined, stopped, recalled }
}

/** The status of the named item for the answer, if the item must stay because of it. */
function stoppingStatus({ named }: KnownGoods): { itemStatus?: ItemStatus } {
  return typeof named === 'object' && STOPPED.has(named.status) ? { itemStatus: named.status } : {}
}

/**
 * Facts about a unit of a receipt: from the replica if the request names an item, else from the receipt, else unknown.
 * While the replica lists the item as sellable, the price comes from the receipt. Null if the request names several
 * items.
 */
function unitFacts(
  claims: ReceiptClaims,
  n: number,
  { named: known, stopped, recalled }: KnownGoods,
  isPass: boolean,
  policy: ProtectionPolicy | undefined,
): ItemFacts | null {
  if (known === 'several') return null
  const signed = readUnitFacts(claims, n, policy)
  return {
    status: (known ?? stopped.get(n))?.status ?? null,
    recalled: (known ?? stopped.get(n))?.recalled,
    ...(recalled.has(n) && RECALLED),
    paidBy: 'purchase',
    category: known?.category ?? signed.category,
    brand: known?.brand ?? signed.brand,
    priceCent: known && known.status !== 'sellable' ? known.priceCent : signed.priceCent,
    priceBelowCent: riskClassCeiling(claims.riskClass),
    technology: known?.technology,
    ...staffReasonOf(claims, isPass),
  }
}

/** A barrier needs no tags, so it opens also for receipts that do not tell their goods apart. */
function staffReasonOf({ entries, riskClass }: ReceiptClaims, isPass: boolean): Pick<ItemFacts, 'staffReason'> {
  if (riskClass === SHOPPER_PRICED) return { staffReason: 'only the shopper’s app states the price' }
  return entries || isPass ? {} : { staffReason: 'the receipt has too many goods to tell them apart' }
}

/**
 * Facts for the decision if no unit is free: the receipt has no units, the tag does not belong to the receipt, or all
 * covered units are used. The item is null if receipts do not authorize this action.
 */
function factsWithoutUnit(
  opened: JudgedReceipt,
  covered: readonly number[] | undefined,
  identifiers: ItemIdentifiers,
  goods: KnownGoods,
  isPass: boolean,
  policy: ProtectionPolicy | undefined,
): Pick<DecisionFacts, 'item' | 'right'> {
  const { named } = goods
  const right = opened.ok && opened.claims.units === 0 ? 'none' : 'used'
  if (covered === undefined || named === 'several') return { item: null, right }
  if (covered.length === 0 && namesItem(identifiers))
    return { item: named?.recalled ? RECALLED : { status: 'sellable' }, right: 'free' }
  const [n] = covered
  const first = opened.ok && n !== undefined ? unitFacts(opened.claims, n, goods, isPass, policy) : undefined
  const untagged = opened.ok && n === undefined && { category: '', brand: '', ...staffReasonOf(opened.claims, isPass) }
  return { item: { ...untagged, ...first, status: named?.status ?? null, paidBy: 'purchase' }, right }
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
  const { home, trust, clock, turns } = parts
  const { storeId } = context.device
  const receipt =
    typeof presented === 'string'
      ? readReceipt(trust, presented, storeId, validationTime(clock))
      : { ok: true as const, claims: claimsOfSale(presented, storeId) }
  const cti = receipt.ok ? Buffer.from(receipt.claims.cti).toString('hex') : ''
  await turns.next(context.device.deviceId)
  const { nowMs } = clock.now()
  const isUsed = usesPass(context.request) && !parts.ledger.claims.isFree(cti, 'exit', PASS, nowMs, true)
  const stay = typeof presented === 'string' || isUsed ? undefined : whyGoodsStay(parts, presented)
  if (stay) return { granted: false, reason: stay }
  if (cameBack(parts.ledger.till, cti)) return { granted: false, reason: 'token_revoked' }
  const soldItems = typeof presented === 'string' ? [] : itemsOfSale(parts, presented)
  // During the home request the cloud may have reported that this ledger is untrusted.
  const alone = () =>
    distrustReason(parts) ? NEEDS_STAFF : judgeAlone(parts, roleOf(parts), context, receipt, soldItems)
  if (!home.isElsewhere) return alone()
  // This agent first applies the rules as if it were the receipt home. Then the receipt home grants or refuses the
  // rights.
  const verdict = judgeAlone(parts, { decidesAsHome: true, isolatedSeconds: 0 }, context, receipt, soldItems)
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
export function isStillValid(parts: Pick<ReceiptJudgeParts, 'trust' | 'ledger' | 'clock'>, { home }: Grant): boolean {
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

function homeRequestOf({ request, device }: RequestContext, { nonce, candidates, all, exp }: Grant): RightsRequest {
  return {
    cti: nonce,
    rightClass: rightClassOf(request.action) ?? 'release',
    candidates,
    all,
    exp,
    deviceId: device.deviceId,
  }
}
