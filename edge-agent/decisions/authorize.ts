import type { CommandResult, TagName } from '../../device-drivers/kit/device.ts'
import type { DeviceFacts } from '../../policy/devices.ts'
import type { AnnouncedRelease } from '../../policy/documents/home-messages.ts'
import type { ProtectionEvent } from '../../policy/protection-events.ts'
import { newId } from '../../policy/ids.ts'
import { type Platform, deadline } from '../../policy/platform.ts'
import { rightClassOf } from '../../policy/vocabulary.ts'
import { OVERRIDE_PREFIX, type ClaimResult } from '../ledger/claims/claim-request.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { CloudLink } from '../link/cloud-link.ts'
import type { Home } from '../peers/home.ts'
import { untrustedReason, isRestored } from '../trust/revocation/untrusted-ledger.ts'
import type { TokenVoider } from './void-tokens.ts'
import { type Outcomes, DecisionRecords, type RecordParts } from './outcomes.ts'
import {
  claimOf,
  itemInfoOf,
  NOTHING_RELEASED,
  assertOutcome,
  type RequestContext,
  type AuthorizeAnswer,
  type AuthorizeRequest,
  type Denial,
  type Grant,
  NEEDS_STAFF,
  type Verdict,
} from './request.ts'
import type { ReceiptClaims } from '../../policy/receipts/receipt-claims.ts'
import { extractReceiptToken } from '../../policy/receipts/receipt-token.ts'
import type { ItemIdentifiers } from '../../policy/item-identifiers.ts'
import type { Execute } from '../devices/release-watch.ts'
import type { Replica } from '../items/replica.ts'
import { judgeByCloud } from './by-cloud.ts'
import { judgeByItem, openByStaff } from './by-item.ts'
import { isStillValid, judgeByReceipt, unitsThatLeft, verifyReceipt, type ReceiptJudgeParts } from './by-receipt.ts'
import { cameBackUnreported, isSaleOver, keysOfTag } from './sale-goods.ts'
import { saleOfSellerReceipt } from './sale-codes.ts'
import { givesRights } from './till-doubts.ts'
import { isOnlyForCloud, judgeByToken, openWithNewestKeys } from './by-token.ts'

interface JudgeParts extends ReceiptJudgeParts {
  platform: Pick<Platform, 'random'>
  link: CloudLink
  items: Pick<Replica, 'find' | 'findByKey' | 'namesIn' | 'confirmedMs' | 'keysOf'>
  /** Voids tokens that the agent fetched and did not use. */
  tokenVoider: Pick<TokenVoider, 'voidUnlessUsedSoon'>
}

/** `offline`: the agent judged without the cloud, or was offline when it judged. */
interface Judged {
  verdict: Verdict
  offline: boolean
}

/**
 *   token of this ledger ─▶ by-token.ts
 *   tag that a till has just sold: the one beside the device, or by the code of its sale ─▶ by-item.ts
 *   online, without goods of which a till has just reported that they came back ─▶ by-cloud.ts
 *   offline, ledger untrusted, pick-up code, or token only for the cloud ─▶ staff
 *   offline, pad of a till that did not sell the goods ─▶ item_not_paid
 *   offline, receipt; sale of a code ─▶ by-receipt.ts; staff at a fixture ─▶ by-item.ts
 *   offline, anything else ─▶ by-item.ts
 *
 * Chooses the source of the verdict: of the lines above, the first that applies. A verdict uses up no right.
 */
async function judge(parts: JudgeParts, context: RequestContext): Promise<Judged> {
  const { ledger, clock, link, items, tokenVoider } = parts
  const { token, receipt, sale, pickupCode } = context.request
  const opened = token === undefined ? undefined : await openWithNewestKeys(parts, link, context, token)
  if (opened && !isOnlyForCloud(opened, context)) {
    // If the ledger was forked or restored, another copy of the ledger may have used the token, so staff decide. Once
    // the cloud knows of the restore, older tokens name a former generation of the ledger and are refused.
    const isUntrusted = untrustedReason(ledger, clock.now().nowMs) === 'forked' || isRestored(ledger)
    const verdict = isUntrusted ? NEEDS_STAFF : judgeByToken(parts, context, opened, false)
    return { verdict, offline: !link.isOnline }
  }
  if (isSoldHere(parts, context)) return { verdict: judgeByItem(parts, items, context, true), offline: true }
  // The cloud does not know the sale yet, or that its goods came back.
  const isNews = sale !== undefined || cameBackUnreported(parts, receiptOf(parts, context), context.request.identifiers)
  const online = link.isOnline && !isNews ? await judgeByCloud(parts, link, context) : undefined
  if (online) {
    if (online.granted && online.grant?.source === 'token') tokenVoider.voidUnlessUsedSoon(online.grant.nonce)
    return { verdict: online, offline: false }
  }
  if (opened || pickupCode !== undefined || untrustedReason(ledger, clock.now().nowMs))
    return { verdict: NEEDS_STAFF, offline: true }
  if (isOfOtherTill(parts, context)) return { verdict: { granted: false, reason: 'item_not_paid' }, offline: true }
  const named = sale ?? receipt
  if (named === undefined) return { verdict: judgeByItem(parts, items, context), offline: true }
  const verdict = await judgeByReceipt(parts, context, named)
  return { verdict: verdict.granted ? verdict : openByStaff(parts, items, context, verdict), offline: true }
}

/** Replaces a receipt that an agent signed by what it stands for. */
async function withSellersSale(parts: JudgeParts, context: RequestContext): Promise<RequestContext> {
  const { receipt, ...request } = context.request
  const found =
    receipt === undefined
      ? undefined
      : await saleOfSellerReceipt({ ...parts, storeId: context.device.storeId }, receipt)
  return found ? { ...context, request: { ...request, ...found } } : context
}

/**
 * True if a till sold the named tag, and only this agent knows it yet: the till beside the device, so that a cashier can
 * put the goods on the pad at once, or any till if the shopper presents the code of that sale.
 */
function isSoldHere(parts: JudgeParts, { request, device }: RequestContext): boolean {
  const { ledger, items, link } = parts
  const { identifiers, action, receipt, sale } = request
  const isByPad = device.tillId !== undefined && sale === undefined && receipt === undefined
  if (rightClassOf(action) !== 'release' || (!sale && !isByPad)) return false
  return keysOfTag(items, identifiers).some((key) => {
    const tag = ledger.till.tag(key)
    const isNew = tag?.sender === '' && tag.seq > ledger.journal.acked
    const isOfSale =
      tag?.status === 'paid' &&
      (isNew || !link.isOnline) &&
      (!sale || tag.sale === sale.sale) &&
      mayReleaseFor(parts, tag.sale ?? '', device)
    const recorder = (isOfSale && ledger.till.recorderOf(tag.sale ?? '')) || ''
    return isOfSale && parts.trust.policy?.policy.tillSales.agents.includes(recorder) !== true
  })
}

/** True if the device is the pad of a till, and this agent does not know that this till sold the goods. */
function isOfOtherTill(parts: JudgeParts, context: RequestContext): boolean {
  const { request, device } = context
  if (device.tillId === undefined || rightClassOf(request.action) !== 'release') return false
  const claims = receiptOf(parts, context)
  const saleKey = request.sale?.sale ?? (claims && Buffer.from(claims.cti).toString('hex'))
  return saleKey === undefined || !mayReleaseFor(parts, saleKey, device)
}

/** The claims of the presented receipt, if it is genuine. */
function receiptOf({ trust }: JudgeParts, { request, device }: RequestContext): ReceiptClaims | undefined {
  const opened = request.receipt === undefined ? undefined : verifyReceipt(trust, request.receipt, device.storeId)
  return opened?.ok ? opened.claims : undefined
}

/** True if this agent recorded the sale, and its goods may be released at this device, which perhaps serves one till. */
function mayReleaseFor(parts: JudgeParts, saleKey: string, { tillId }: DeviceFacts): boolean {
  const sold = parts.ledger.till.sale(saleKey)
  const isOfTill = sold?.state === 'paid' && (tillId === undefined || sold.tillId === tillId)
  return isOfTill && givesRights(sold) && !isSaleOver(parts, saleKey)
}

interface CommandParts {
  platform: Pick<Platform, 'timers'>
  /** True if a release at this device switches an output or writes to the named tag. */
  canRelease(deviceId: string, isTagNamed: boolean): boolean
  /** Moves a device; never throws. */
  execute: Execute
}

/** Longest wait for the outcome, ms. The API of POST /v1/authorize promises this limit. */
const OUTCOME_TIMEOUT_MS = 10_000

const ALREADY_OPEN: CommandResult = {
  outcome: 'confirmed',
  commanded: false,
  detail: 'already_open: the gate was opened for another unit of the receipt',
}
const NOTHING_TO_OPEN: CommandResult = {
  outcome: 'confirmed',
  commanded: false,
  detail: 'nothing_to_open: this gate has nothing to open',
}

/**
 * Sends at most one command for a claimed redemption, and resolves with the device's result. Never throws.
 */
async function commandRelease(
  { platform, canRelease, execute }: CommandParts,
  { request, device }: RequestContext,
): Promise<CommandResult> {
  const { deviceId, action } = request
  const tag = tagOf(request.identifiers, device)
  if (request.isAlreadyOpen === true) return ALREADY_OPEN
  const isExit = device.deviceType === 'exit_gate' && action === 'authorize_exit'
  if (isExit && !canRelease(deviceId, tag !== undefined)) return NOTHING_TO_OPEN
  const limit = deadline(platform.timers, OUTCOME_TIMEOUT_MS)
  try {
    return await execute(deviceId, { kind: 'release', ...(tag && { tag }) }, limit.signal)
  } finally {
    limit.done()
  }
}

/**
 * Tag that the device must write to. If the request names both EPC and UID, the capabilities of the device determine
 * which of the two is returned.
 */
function tagOf({ epc, tagUid }: ItemIdentifiers, { capabilities }: DeviceFacts): TagName | undefined {
  const isByUid =
    tagUid !== undefined && (epc === undefined || (capabilities.canReadHfNfc && !capabilities.canReadUhfRfid))
  if (isByUid) return { tagUid }
  return epc === undefined ? undefined : { epc }
}

/**
 * Describes each unit of a confirmed release for the gates of the store. A description names the device, the tag if
 * known, and the receipt or token that proves the release. Returns an empty list for actions that release no tag, and
 * for overrides.
 */
function announcedReleases(
  { request }: RequestContext,
  grant: Grant,
  claimed: readonly number[],
  nowMs: number,
): AnnouncedRelease[] {
  const { action: protectionAction, deviceId, identifiers } = request
  if (protectionAction !== 'deactivate_label' && protectionAction !== 'detach_hard_tag') return []
  const { epc, tagUid } = identifiers
  return claimed.flatMap((step) => {
    const proof = proofOf(request, grant, step)
    const named = { ...(epc !== undefined && { epc }), ...(tagUid !== undefined && { tagUid }) }
    return proof ? [{ deviceId, protectionAction, releasedS: Math.floor(nowMs / 1_000), ...named, proof }] : []
  })
}

/**
 * Returns the receipt if possible, because a receipt names the unit. A token names a unit only if it is for one item.
 */
function proofOf(
  { receipt, token }: RequestContext['request'],
  grant: Grant,
  step: number,
): AnnouncedRelease['proof'] | undefined {
  const text = receipt === undefined ? undefined : extractReceiptToken(receipt)
  const ordinal = grant.source === 'receipt' ? step : grant.receipt?.ordinals[step]
  if (text !== undefined && ordinal !== undefined) return { receipt: text, ordinal }
  const usedToken = grant.source === 'token' ? (grant.token ?? token) : undefined
  return usedToken === undefined ? undefined : { token: usedToken }
}

/** Takes one request through all steps (`Authorizer`). Never throws for a denial: `authorized` is then false. */
export type Authorize = (request: AuthorizeRequest) => Promise<AuthorizeAnswer>

export interface AuthorizeParts extends JudgeParts, CommandParts, RecordParts {
  platform: Platform
  ledger: Ledger
  link: CloudLink
  home: JudgeParts['home'] & Pick<Home, 'reportOutcomes'>
  tokenVoider: Pick<TokenVoider, 'voidUnlessUsedSoon' | 'voidIfUnused'>
  outcomes: Pick<Outcomes, 'settle'>
  /** Called for each released unit, so that the gates of the store stay silent for this unit. Must return at once. */
  onReleased(release: AnnouncedRelease): void
  /** Pieces of tills’ sales that leave by product: the goods of a sale leave by its receipt or by product. */
  pieces: { hasPassed(saleKey: string): boolean; release(saleKey: string, tag: ItemIdentifiers): void }
}

/** Longest wait for the cloud to acknowledge the journal before a second attempt, ms. */
const SYNC_TIMEOUT_MS = 2_000
/** Maximum attempts to get another unit from the receipt home, if a concurrent request used the granted unit. */
const HOME_RETRIES = 10

/** Identity of the sale whose rights a grant uses, hex. */
function saleKeyOf({ source, nonce, receipt }: Grant): string | undefined {
  return source === 'receipt' ? nonce : receipt?.cti
}

/** A grant whose rights the agent now claims and uses. */
interface Redemption {
  redemptionId: string
  context: RequestContext
  grant: Grant
  offline: boolean
}

/** The ledger refused the claim. */
interface NotClaimed {
  refused: Denial
  offline: boolean
  /** True if a concurrent request used the unit that the receipt home granted. */
  isUsedConcurrently: boolean
}

/**
 *   scan ─▶ read ─▶ judge ─┬─ yes ─▶ claim ─▶ command ─▶ confirm ─▶ report
 *                          └─ no ─────────────────────────────────▶ report
 *
 * The steps of each request of this agent, from a scan to the pulse of a relay: for stations, gates and programs. One
 * claim takes other steps: that for a paid tag that has left through a gate (claim-exit.ts).
 *
 *   scan, read   a device's event or an HTTP call becomes one request: lanes/lanes.ts, http/routes/decision-routes.ts
 *   judge        `judge` chooses the source: token, cloud, receipt or item. Offline, each applies `decide` of policy/.
 *   claim        ledger/claims/claims.ts: uses up the rights on disk before the command; refuses used rights.
 *   command      `execute` of the device: at most one command for each claim.
 *   confirm      outcomes.ts: stores what the device did. After a power cut startup/stored.ts stores `unknown`.
 *   report       outcomes.ts: writes events to the journal. link/reports sends them to the cloud.
 */
export class Authorizer {
  readonly #parts: AuthorizeParts
  readonly #records: DecisionRecords

  constructor(parts: AuthorizeParts) {
    this.#parts = parts
    this.#records = new DecisionRecords(parts)
  }

  /** Judges a request and moves the device. */
  async authorize(request: AuthorizeRequest): Promise<AuthorizeAnswer> {
    const { trust, link, agentId, ledger, clock } = this.#parts
    const device = trust.policy?.devices.find((d) => d.deviceId === request.deviceId)
    if (!device || (device.agentId !== null && device.agentId !== agentId)) {
      const reason = trust.policy ? 'device_unknown' : 'policy_stale'
      return this.#deny(request, undefined, { granted: false, reason }, !link.isOnline)
    }
    if (device.revoked || untrustedReason(ledger, clock.now().nowMs) === 'revoked')
      return this.#deny(request, device, { granted: false, reason: 'device_revoked' }, !link.isOnline)
    const context = await withSellersSale(this.#parts, { request, device })
    const first = await this.#attempt(context)
    // The cloud grants a device the same token again until the cloud has received the redemption of the token. After
    // `already_redeemed` the agent therefore waits until the cloud has its journal, and tries once more. The cloud may
    // then grant another unit of the line.
    const mayHaveAnotherUnit =
      'refused' in first && first.refused.reason === 'already_redeemed' && request.token === undefined && !first.offline
    if (mayHaveAnotherUnit) await link.whenReported(SYNC_TIMEOUT_MS)
    let last = mayHaveAnotherUnit ? await this.#attempt(context) : first
    // Concurrent requests at one device share one home request, but only one of them can use the granted unit. The
    // others try again, because the receipt may have more free units.
    for (let n = 0; 'refused' in last && last.isUsedConcurrently && n < HOME_RETRIES; n++)
      last = await this.#attempt(context)
    return assertOutcome('refused' in last ? await this.#deny(request, device, last.refused, last.offline) : last)
  }

  /** Runs the steps once: judge, claim, command, confirm, report. */
  async #attempt(context: RequestContext): Promise<AuthorizeAnswer | NotClaimed> {
    const { trust, link, platform } = this.#parts
    const { request, device } = context
    const { action } = request
    const { verdict, offline } = await judge(this.#parts, context)
    // A token or receipt may name documents that are newer than the agent's.
    if (trust.isOutdated) void link.refreshDocuments()
    if (!verdict.granted) return this.#deny(request, device, verdict, offline)
    if (!verdict.grant) {
      const { eventId } = verdict
      return { authorized: true, action, ...NOTHING_RELEASED, eventId, offline, ...itemInfoOf(verdict) }
    }
    const grant = { ...verdict.grant, candidates: this.#stepsThatAreHere(context, verdict.grant) }

    // Ids sort by time, so claims of the same period share index pages.
    const redemptionId =
      grant.homeRedemptionId ?? newId(grant.source === 'override' ? OVERRIDE_PREFIX : 'rdm', platform)
    const redemption: Redemption = { redemptionId, context, grant, offline }
    if (this.#hasPassed(redemption) || grant.candidates.length === 0)
      return this.#notClaimed(redemption, { ok: false, reason: 'already_redeemed' })
    this.#endPieces(redemption)
    const { claimed, eventId } = await this.#claim(redemption)
    if (!claimed.ok) return this.#notClaimed(redemption, claimed)
    const result = await commandRelease(this.#parts, context)
    await this.#confirm(redemption, claimed.ordinals, result)
    return {
      authorized: true,
      action,
      expiresAt: new Date(grant.exp * 1_000).toISOString(),
      itemCount: grant.count,
      remaining: grant.remaining ?? claimed.remaining,
      eventId: grant.eventId ?? eventId,
      offline,
      outcome: result.outcome,
      ...itemInfoOf(grant),
    }
  }

  /**
   * Uses up the rights. The same commit stores the event of an offline decision. Resolves when claim and event are
   * durable.
   */
  async #claim({ redemptionId, context, grant, offline }: Redemption) {
    const { ledger, clock } = this.#parts
    const { deviceId, action, operatorId, identifiers: tag } = context.request
    let event: ProtectionEvent | undefined
    const claimed: ClaimResult = await ledger.claim(
      {
        ...claimOf(grant),
        redemptionId,
        rightClass: rightClassOf(action) ?? 'open',
        deviceId,
        operatorId,
        ...(grant.source !== 'override' && { tag }),
        // The cloud does not know yet what has just left here.
        ...(grant.source === 'token' && { unlessLeft: rightClassOf(action) === 'release' && operatorId === undefined }),
        isStillValid: () => isStillValid(this.#parts, grant) && context.request.isStillAllowed?.() !== false,
        nowMs: clock.now().nowMs,
      },
      () => {
        // If a group commit fails, the ledger repeats this callback in a commit of its own, and stores the same
        // event.
        if (offline) event ??= this.#records.offlineClaim(context, grant)
        return event
      },
    )
    return { claimed, eventId: event?.eventId ?? null }
  }

  /**
   * True if a tag passed a gate for a piece of this sale, and the cloud did not know it when it decided. Decisions of this
   * agent know the units that passed (`passedUnits`).
   */
  #hasPassed({ context, grant }: Redemption): boolean {
    const { ledger, pieces } = this.#parts
    const saleKey = saleKeyOf(grant)
    if (saleKey === undefined || rightClassOf(context.request.action) !== 'release') return false
    if (grant.source !== 'token' || !pieces.hasPassed(saleKey)) return false
    return ledger.till.pieces.usesOf(saleKey).seq > (grant.acknowledgedSeq ?? 0)
  }

  /** The steps of a grant of the cloud, without those for tags that the receipt names and that have just left here. */
  #stepsThatAreHere(context: RequestContext, { source, candidates, receipt }: Grant): readonly number[] {
    const { action, identifiers, operatorId } = context.request
    const isOfAny = source === 'token' && rightClassOf(action) === 'release' && identifiers.epc === undefined
    const claims = isOfAny && operatorId === undefined ? receiptOf(this.#parts, context) : undefined
    const left = claims && receipt ? unitsThatLeft(this.#parts, claims) : []
    return left.length === 0 ? candidates : candidates.filter((n) => !left.includes(receipt?.ordinals[n] ?? -1))
  }

  /** A receipt that releases goods uses pieces of its sale: before its device moves, no tag passes for them. */
  #endPieces({ context, grant }: Redemption): void {
    const saleKey = saleKeyOf(grant)
    const { action, identifiers } = context.request
    if (saleKey !== undefined && rightClassOf(action) === 'release') this.#parts.pieces.release(saleKey, identifiers)
  }

  async #notClaimed({ grant, offline }: Redemption, { reason }: ClaimResult & { ok: false }): Promise<NotClaimed> {
    const { unknownFacts } = grant
    // The claim failed, so the token stays unused. Voiding the token frees the cloud's lease before the token
    // expires.
    if (grant.acknowledgedSeq !== undefined) await this.#parts.tokenVoider.voidIfUnused(grant.nonce)
    const isUsedConcurrently = reason === 'already_redeemed' && grant.homeRequestId !== undefined
    return { refused: { granted: false, reason, ...(unknownFacts && { unknownFacts }) }, offline, isUsedConcurrently }
  }

  /** Informs the gates of the store, stores the outcome and reports it to the receipt home. */
  async #confirm(
    { redemptionId, context, grant, offline }: Redemption,
    claimed: readonly number[],
    result: CommandResult,
  ) {
    const { clock, home, outcomes, onReleased } = this.#parts
    const { outcome } = result
    if (outcome === 'confirmed')
      for (const release of announcedReleases(context, grant, claimed, clock.now().nowMs)) onReleased(release)
    const event = this.#records.outcome(context, grant, result, offline)
    await outcomes.settle(redemptionId, outcome, clock.now().nowMs, event)
    if (grant.homeRequestId === undefined) return
    const settled = home.reportOutcomes()
    // After a failed release, waits until the report is delivered, so that another device can use the right at once.
    // Does not wait for a receipt home that did not answer the home request.
    if (grant.homeRedemptionId !== undefined && outcome === 'failed') await settled
  }

  async #deny(
    request: AuthorizeRequest,
    device: DeviceFacts | undefined,
    denial: Denial,
    offline: boolean,
  ): Promise<AuthorizeAnswer> {
    const eventId = denial.eventId ?? (await this.#records.denied(request, device, denial, offline))
    const { action } = request
    const { reason } = denial
    return { authorized: false, action, ...NOTHING_RELEASED, eventId, reason, offline, ...itemInfoOf(denial) }
  }
}
