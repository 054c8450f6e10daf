import type { DeviceCommand, CommandResult, TagName } from '../../device-drivers/drivers/device.ts'
import type { DeviceFacts } from '../../policy/devices.ts'
import type { Release } from '../../policy/documents/release-notice.ts'
import type { ProtectionEvent } from '../../policy/events.ts'
import type { ItemIdentifiers } from '../../policy/identifiers.ts'
import { newId } from '../../policy/ids.ts'
import { deadline, type Platform } from '../../policy/platform.ts'
import { rightClass, SCAN_SOURCE_OF, type DenyReason, type Outcome } from '../../policy/vocabulary.ts'
import type { Replica } from '../items/replica.ts'
import { OVERRIDE_ID, type Claimed } from '../ledger/claims/claim-request.ts'
import { LedgerFull } from '../ledger/file/commit.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { CloudLink } from '../link/cloud-link.ts'
import type { Home } from '../peers/home.ts'
import type { Log } from '../log.ts'
import type { AgentClock } from '../trust/time/clock.ts'
import { isRestored, ledgerDoubt } from '../trust/revocation/ledger-doubt.ts'
import type { Trust } from '../trust/trust.ts'
import { decideByItem } from './by-item.ts'
import { decideByToken, isForCloud, openByNewestKeys } from './by-token.ts'
import type { GiveUp } from './give-up.ts'
import { decideOnline } from './online.ts'
import type { Outcomes } from './outcomes.ts'
import {
  knowledgeOf,
  withOutcome,
  type Ask,
  type AuthorizeAnswer,
  type AuthorizeRequest,
  type Grant,
  type Verdict,
} from './request.ts'
import { releasesOf } from './released.ts'
import { withHome } from './with-home.ts'

/**
 *   request ─ device ─ token? receipt? item? ─▶ verdict ─▶ claim (durable) ─▶ actuator ─▶ outcome (durable) ─▶ answer
 *
 * The way of every request, whoever makes it: a lane, the station page or a program on this machine.
 */
export interface AuthorizeParts {
  platform: Platform
  agentId: string
  storeId: string
  ledger: Ledger
  clock: AgentClock
  trust: Trust
  link: CloudLink
  items: Pick<Replica, 'find' | 'confirmedMs'>
  /** The other agent where receipts are redeemed, if so. */
  home: Pick<Home, 'isElsewhere' | 'lastAnswerMs' | 'ask' | 'settled'>
  /** What was fetched and not used is given up. */
  giveUp: Pick<GiveUp, 'unlessUsed' | 'ifUnused'>
  outcomes: Pick<Outcomes, 'settle'>
  log: Log
  /** Whether a release does anything at this device, by an output or to the tag that it names. */
  canRelease(deviceId: string, isTagNamed: boolean): boolean
  /** A tag came off: the gates of the store are to know. Returns at once. */
  onReleased(release: Release): void
  /** Moves a device; never throws. */
  execute(deviceId: string, command: DeviceCommand, signal: AbortSignal): Promise<CommandResult>
}

/** The answer comes when the outcome is known, ms at most (contracts §6). */
const OUTCOME_WITHIN_MS = 10_000
/** How long a request waits for the cloud to take what happened just before it, ms. */
const TOLD_WITHIN_MS = 2_000
/** How often a request asks the home for another unit, because somebody at its device had the first. */
const ASKED_AGAIN = 10
/** Denials that are written down per device and minute; what a shop is told by a mad scanner fills no disk. */
const DENIALS_PER_MINUTE = 30

const FOR_STAFF: Verdict = { granted: false, reason: 'manual_assistance_required' }
const ALREADY_OPEN: CommandResult = {
  outcome: 'confirmed',
  commanded: false,
  detail: 'already_open: it was opened for another unit of the receipt',
}
const NOTHING_TO_OPEN: CommandResult = {
  outcome: 'confirmed',
  commanded: false,
  detail: 'nothing_to_open: nothing bars the way out at this gate',
}

export type Authorize = (request: AuthorizeRequest) => Promise<AuthorizeAnswer>

/** The one way to an actuation: checked, decided, claimed, then told to move. */
export function authorizer(parts: AuthorizeParts): Authorize {
  const { platform, ledger, clock, trust, link, storeId } = parts
  const denials = new Map<string, { minute: number; count: number }>()
  const receipts = withHome(parts)

  const doubt = () => ledgerDoubt(ledger, clock.now().nowMs)

  async function decideFor(ask: Ask): Promise<{ verdict: Verdict; offline: boolean }> {
    const tokenParts = { trust, clock, ledger }
    const { request } = ask
    const shown = request.token === undefined ? undefined : await openByNewestKeys(tokenParts, link, ask, request.token)
    if (shown && !isForCloud(shown, ask)) {
      // The other copy of a ledger that exists twice may have used it, or this one before it was restored: only what the cloud gives
      // for this very request counts. Once the cloud has seen that it was restored, tokens of before are of another generation.
      const verdict =
        doubt() === 'forked' || isRestored(ledger) ? FOR_STAFF : decideByToken(tokenParts, ask, shown, false)
      return { verdict, offline: !link.isOnline }
    }
    const online = link.isOnline ? await decideOnline(tokenParts, link, ask) : undefined
    if (online) {
      if (online.granted && online.grant?.source === 'token') parts.giveUp.unlessUsed(online.grant.nonce)
      return { verdict: online, offline: false }
    }
    if (doubt() || shown) return { verdict: FOR_STAFF, offline: true }
    if (request.receipt !== undefined) return { verdict: await receipts.decide(ask, request.receipt), offline: true }
    return { verdict: decideByItem({ ...tokenParts, platform }, parts.items, ask), offline: true }
  }

  function baseEvent(request: AuthorizeRequest, device: DeviceFacts | undefined, offline: boolean) {
    const { identifiers } = request
    const scanSource = request.scanSource ?? (device && SCAN_SOURCE_OF[device.deviceType])
    return {
      eventId: newId('evt', platform),
      occurredAt: new Date(clock.now().nowMs).toISOString(),
      storeId,
      deviceId: request.deviceId,
      protectionAction: request.action,
      offline,
      ...(device && { deviceType: device.deviceType, workflowType: device.workflowType }),
      ...(identifiers.epc !== undefined && { epc: identifiers.epc }),
      ...(identifiers.tagUid !== undefined && { tagUid: identifiers.tagUid }),
      ...(identifiers.tagId !== undefined && { tagId: identifiers.tagId }),
      ...(identifiers.itemLineId !== undefined && { itemLineId: identifiers.itemLineId }),
      ...(request.tagTechnology !== undefined && { tagTechnology: request.tagTechnology }),
      ...(scanSource !== undefined && { scanSource }),
      ...(request.operatorId !== undefined && { operatorId: request.operatorId }),
    }
  }

  async function deny(
    request: AuthorizeRequest,
    device: DeviceFacts | undefined,
    verdict: Verdict & { granted: false },
    offline: boolean,
  ): Promise<AuthorizeAnswer> {
    const eventId = verdict.eventId ?? (await recordDenial(request, device, verdict, offline))
    return {
      authorized: false,
      action: request.action,
      expiresAt: null,
      itemCount: 0,
      remaining: 0,
      eventId,
      reason: verdict.reason,
      offline,
      outcome: null,
      ...knowledgeOf(verdict),
    }
  }

  /** What the cloud did not decide it is told; null when it is not: a device was refused too often, or the disk is full, and no is no all the same. */
  async function recordDenial(
    request: AuthorizeRequest,
    device: DeviceFacts | undefined,
    { reason, unknownFacts }: Verdict & { granted: false },
    offline: boolean,
  ): Promise<string | null> {
    const minute = Math.floor(platform.clock.elapsed() / 60_000)
    const seen = denials.get(request.deviceId)
    const count = seen?.minute === minute ? seen.count + 1 : 1
    if (denials.size > 1_000) denials.clear()
    denials.set(request.deviceId, { minute, count })
    if (count > DENIALS_PER_MINUTE) return null
    const event: ProtectionEvent = {
      type: 'protection.authorization.denied',
      ...baseEvent(request, device, offline),
      ...(unknownFacts && { unknownFacts: [...unknownFacts] }),
      reason,
    }
    try {
      await ledger.record({ atMs: clock.now().nowMs, event })
    } catch (error) {
      if (!(error instanceof LedgerFull)) throw error
      parts.log.warn({ deviceId: request.deviceId, reason }, 'the disk is full: a refusal was not written down')
      return null
    }
    return event.eventId
  }

  /** Uses the rights up, moves the device, writes down how that went. */
  async function redeem(ask: Ask, grant: Grant, offline: boolean): Promise<AuthorizeAnswer | Refused> {
    const { request, device } = ask
    // In the order of time, so that the index pages of claims that are written together are the same.
    const redemptionId = grant.homeRedemption ?? newId(grant.source === 'override' ? OVERRIDE_ID : 'rdm', platform)
    let told: ProtectionEvent | undefined
    const claimed: Claimed = await ledger.claim(
      {
        redemptionId,
        source: grant.source,
        nonce: grant.nonce,
        rightClass: rightClass(request.action) ?? 'fixture',
        candidates: grant.candidates,
        all: grant.all,
        exp: grant.exp,
        deviceId: request.deviceId,
        receipt: grant.receipt,
        issuedS: grant.issuedS,
        heardSeq: grant.heardSeq,
        isolated: grant.isolated,
        approval: grant.approval,
        operatorId: request.operatorId,
        homeAsk: grant.homeAsk,
        holds: () => receipts.stillHolds(grant),
        nowMs: clock.now().nowMs,
      },
      () => {
        if (!offline) return undefined
        // A transaction that was undone in company is tried again alone: it is the same event.
        told ??= {
          type: 'protection.device.offline' as const,
          ...baseEvent(request, device, true),
          ...usedUp(grant),
          ...(grant.itemStatus && { itemStatus: grant.itemStatus }),
          ...(grant.unknownFacts && { unknownFacts: [...grant.unknownFacts] }),
        }
        return told
      },
    )
    if (!claimed.ok) return refusalOf(claimed.reason, grant)
    const done = openAlready(ask) ?? (await actuate(redemptionId, ask))
    if (done.outcome === 'confirmed')
      for (const release of releasesOf(ask, grant, claimed.ordinals, clock.now().nowMs)) parts.onReleased(release)
    await settle(ask, grant, redemptionId, done, offline)
    if (grant.homeAsk !== undefined) await tellHome(grant, done.outcome)
    return {
      authorized: true,
      action: request.action,
      expiresAt: new Date(grant.exp * 1_000).toISOString(),
      itemCount: grant.count,
      remaining: grant.remaining ?? claimed.remaining,
      eventId: grant.eventId ?? told?.eventId ?? null,
      offline,
      outcome: done.outcome,
      ...knowledgeOf(grant),
    }
  }

  /** What opened for another unit, or a gate without a barrier: people leave, and nothing moves. */
  function openAlready({ request, device }: Ask): CommandResult | undefined {
    if (request.isOpen === true) return ALREADY_OPEN
    const isExit = device.deviceType === 'exit_gate' && request.action === 'authorize_exit'
    const isOpen = isExit && !parts.canRelease(device.deviceId, tagOf(request.identifiers, device) !== undefined)
    return isOpen ? NOTHING_TO_OPEN : undefined
  }

  /** Whoever could not use what the home gave may try at another device at once; nobody waits for a home that was out of reach a moment ago. */
  async function tellHome({ homeRedemption }: Grant, outcome: Outcome): Promise<void> {
    const told = parts.home.settled()
    if (homeRedemption !== undefined && outcome === 'failed') await told
  }

  async function actuate(redemptionId: string, { request, device }: Ask): Promise<CommandResult> {
    // Only for whoever looks into the ledger: nothing rests on it, so nobody waits for it.
    ledger.commits.durably(() => ledger.claims.markCommanded(redemptionId)).catch(() => undefined)
    const limit = deadline(platform.timers, OUTCOME_WITHIN_MS)
    try {
      const tag = tagOf(request.identifiers, device)
      return await parts.execute(request.deviceId, { kind: 'release', ...(tag && { tag }) }, limit.signal)
    } finally {
      limit.done()
    }
  }

  async function settle(
    ask: Ask,
    grant: Grant,
    redemptionId: string,
    { outcome, detail }: CommandResult,
    offline: boolean,
  ): Promise<void> {
    const event: ProtectionEvent = {
      type: outcome === 'confirmed' ? 'protection.action.completed' : 'protection.action.failed',
      ...baseEvent(ask.request, ask.device, offline),
      ...usedUp(grant),
      outcome,
      ...(outcome !== 'confirmed' && { reason: reasonOf(outcome, detail) }),
      detail: detail.slice(0, 300),
    }
    await parts.outcomes.settle(redemptionId, outcome, clock.now().nowMs, event)
  }

  /** A verdict and what follows from it; `refused` when the ledger would not have it. */
  async function decideAndRedeem(
    ask: Ask,
  ): Promise<AuthorizeAnswer | (Refused & { offline: boolean; isTaken: boolean })> {
    const { request, device } = ask
    const { verdict, offline } = await decideFor(ask)
    // What somebody brought says that there is something newer than what is here.
    if (trust.isOvertaken) void link.catchUp()
    if (!verdict.granted) return deny(request, device, verdict, offline)
    if (verdict.grant) {
      const redeemed = await redeem(ask, verdict.grant, offline)
      if (!('refused' in redeemed)) return redeemed
      // The ledger knows of a use that the cloud has not heard of: the unit must not wait for the end of a token that nobody will use.
      if (verdict.grant.heardSeq !== undefined) await parts.giveUp.ifUnused(verdict.grant.nonce)
      return {
        ...redeemed,
        offline,
        isTaken: redeemed.refused.reason === 'already_redeemed' && verdict.grant.homeAsk !== undefined,
      }
    }
    return {
      authorized: true,
      action: request.action,
      expiresAt: null,
      itemCount: 0,
      remaining: 0,
      eventId: verdict.eventId,
      offline,
      outcome: null,
      ...knowledgeOf(verdict),
    }
  }

  async function answerTo(request: AuthorizeRequest): Promise<AuthorizeAnswer> {
    const device = trust.policy?.devices.find((d) => d.deviceId === request.deviceId)
    if (!device || (device.agentId !== null && device.agentId !== parts.agentId)) {
      return deny(
        request,
        undefined,
        { granted: false, reason: trust.policy ? 'device_unknown' : 'policy_stale' },
        !link.isOnline,
      )
    }
    if (device.revoked || doubt() === 'revoked')
      return deny(request, device, { granted: false, reason: 'device_revoked' }, !link.isOnline)
    const ask: Ask = { request, device }
    const first = await decideAndRedeem(ask)
    // The cloud gives the same device the same token until it has heard what became of it: of two units of a line
    // that are released within a moment, the second is asked for once more when the first has been told. So is one for
    // which the cloud gave a token without knowing what the ledger knows.
    const isNews =
      'refused' in first && first.refused.reason === 'already_redeemed' && request.token === undefined && !first.offline
    if (isNews) await link.told(TOLD_WITHIN_MS)
    let last = isNews ? await decideAndRedeem(ask) : first
    // Two of one moment at one device ask the home under one id, and the other went on with what it gave: there may be more.
    for (let n = 0; 'refused' in last && last.isTaken && n < ASKED_AGAIN; n++) last = await decideAndRedeem(ask)
    return 'refused' in last ? deny(request, device, last.refused, last.offline) : last
  }

  return async (request) => withOutcome(await answerTo(request))
}

/** The ledger does not take the claim. */
interface Refused {
  refused: Verdict & { granted: false }
}

function refusalOf(reason: DenyReason, { unknownFacts }: Grant): Refused {
  return { refused: { granted: false, reason, ...(unknownFacts && { unknownFacts }) } }
}

/** The tag that a device is to write to, by the name that its own reader knows where both are given. */
function tagOf({ epc, tagUid }: ItemIdentifiers, { capabilities }: DeviceFacts): TagName | undefined {
  const isByUid =
    tagUid !== undefined && (epc === undefined || (capabilities.canReadHfNfc && !capabilities.canReadUhfRfid))
  if (isByUid) return { tagUid }
  return epc === undefined ? undefined : { epc }
}

/** Which authorization was used up, as events say it: none by an override. */
function usedUp({ source, nonce }: Grant) {
  return source === 'override' ? {} : { replayProtectedNonce: nonce, authorizationState: 'redeemed' as const }
}

/** The word in front of a driver's detail. */
function reasonOf(outcome: Outcome, detail: string): string {
  return (detail.split(':')[0] ?? outcome).slice(0, 60)
}
