import type { CommandResult } from '../../device-drivers/drivers/device.ts'
import type { DeviceFacts } from '../../policy/devices.ts'
import type { AnnouncedRelease } from '../../policy/documents/release-notice.ts'
import type { ProtectionEvent } from '../../policy/protection-events.ts'
import { newId } from '../../policy/ids.ts'
import type { Platform } from '../../policy/platform.ts'
import { rightClassOf } from '../../policy/vocabulary.ts'
import { OVERRIDE_PREFIX, type ClaimResult } from '../ledger/claims/claim-request.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { CloudLink } from '../link/cloud-link.ts'
import type { Home } from '../peers/home.ts'
import { untrustedReason } from '../trust/revocation/untrusted-ledger.ts'
import { commandRelease, type CommandParts } from './command.ts'
import { Decider, type DeciderParts } from './decider.ts'
import type { TokenVoider } from './void-tokens.ts'
import type { Outcomes } from './outcomes.ts'
import { DecisionRecords, type RecordParts } from './decision-records.ts'
import { announcedReleases } from './announced-releases.ts'
import {
  itemInfoOf,
  NOTHING_RELEASED,
  assertOutcome,
  type RequestContext,
  type AuthorizeAnswer,
  type AuthorizeRequest,
  type Denial,
  type Grant,
} from './request.ts'

/**
 *   scan ─▶ read ─▶ decide ─┬─ yes ─▶ claim ─▶ command ─▶ confirm ─▶ report
 *                           └─ no ─────────────────────────────────▶ report
 *
 * The steps from a scan to the pulse of a relay, for stations, gates and programs.
 *   scan, read   a device's event or an HTTP call becomes one request: lanes/lanes.ts, http/routes/decision-routes.ts
 *   decide       decider.ts: by token, by the cloud, by receipt or by item. A decision uses up no right.
 *   claim        ledger/claims/claims.ts: uses up the rights on disk before the command; refuses used rights.
 *   command      command.ts: at most one command for each claim.
 *   confirm      outcomes.ts: stores what the device did. After a power cut ledger/recovery.ts stores `unknown`.
 *   report       decision-records.ts: writes events to the journal. link/reports sends them to the cloud.
 */
export type Authorize = (request: AuthorizeRequest) => Promise<AuthorizeAnswer>

export interface AuthorizeParts extends DeciderParts, CommandParts, RecordParts {
  platform: Platform
  ledger: Ledger
  link: CloudLink
  home: DeciderParts['home'] & Pick<Home, 'reportOutcomes'>
  tokenVoider: Pick<TokenVoider, 'voidUnlessUsedSoon' | 'voidIfUnused'>
  outcomes: Pick<Outcomes, 'settle'>
  /** Called for each released unit, so that the gates of the store stay silent for this unit. Must return at once. */
  onReleased(release: AnnouncedRelease): void
}

/** Longest wait for the cloud to acknowledge the journal before a second attempt, ms. */
const SYNC_TIMEOUT_MS = 2_000
/** Maximum attempts to get another unit from the receipt home, if a concurrent request used the granted unit. */
const HOME_RETRIES = 10

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

/** Makes the function that decides a request and moves the device. */
export function authorizer(parts: AuthorizeParts): Authorize {
  const steps = new Authorizer(parts)
  return async (request) => assertOutcome(await steps.authorize(request))
}

class Authorizer {
  readonly #parts: AuthorizeParts
  readonly #decider: Decider
  readonly #records: DecisionRecords

  constructor(parts: AuthorizeParts) {
    this.#parts = parts
    this.#decider = new Decider(parts)
    this.#records = new DecisionRecords(parts)
  }

  async authorize(request: AuthorizeRequest): Promise<AuthorizeAnswer> {
    const { trust, link, agentId, ledger, clock } = this.#parts
    const device = trust.policy?.devices.find((d) => d.deviceId === request.deviceId)
    if (!device || (device.agentId !== null && device.agentId !== agentId)) {
      const reason = trust.policy ? 'device_unknown' : 'policy_stale'
      return this.#deny(request, undefined, { granted: false, reason }, !link.isOnline)
    }
    if (device.revoked || untrustedReason(ledger, clock.now().nowMs) === 'revoked')
      return this.#deny(request, device, { granted: false, reason: 'device_revoked' }, !link.isOnline)
    const context: RequestContext = { request, device }
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
    return 'refused' in last ? this.#deny(request, device, last.refused, last.offline) : last
  }

  /** Runs the steps once: decide, claim, command, confirm, report. */
  async #attempt(context: RequestContext): Promise<AuthorizeAnswer | NotClaimed> {
    const { trust, link, platform } = this.#parts
    const { request, device } = context
    const { action } = request
    const { verdict, offline } = await this.#decider.decide(context)
    // A token or receipt may name documents that are newer than the agent's.
    if (trust.isOutdated) void link.refreshDocuments()
    if (!verdict.granted) return this.#deny(request, device, verdict, offline)
    const { grant } = verdict
    if (!grant) {
      const { eventId } = verdict
      return { authorized: true, action, ...NOTHING_RELEASED, eventId, offline, ...itemInfoOf(verdict) }
    }

    // Ids sort by time, so claims of the same period share index pages.
    const redemptionId =
      grant.homeRedemptionId ?? newId(grant.source === 'override' ? OVERRIDE_PREFIX : 'rdm', platform)
    const redemption: Redemption = { redemptionId, context, grant, offline }
    const { claimed, eventId } = await this.#claim(redemption)
    if (!claimed.ok) return this.#notClaimed(redemption, claimed)
    const result = await commandRelease(this.#parts, redemptionId, context)
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
    const {
      source,
      nonce,
      candidates,
      all,
      exp,
      receipt,
      issuedS,
      acknowledgedSeq,
      isolated,
      approval,
      homeRequestId,
    } = grant
    let event: ProtectionEvent | undefined
    const claimed: ClaimResult = await ledger.claim(
      {
        redemptionId,
        source,
        nonce,
        rightClass: rightClassOf(action) ?? 'open',
        candidates,
        all,
        exp,
        deviceId,
        receipt,
        issuedS,
        reportedSeq: acknowledgedSeq,
        isolated,
        approval,
        operatorId,
        ...(source !== 'override' && { tag }),
        homeRequestId: homeRequestId,
        isStillValid: () => this.#decider.stillHolds(grant),
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
