import type { ProtectionEvent } from '../../policy/protection-events.ts'
import type { Cancel, Timers, Platform } from '../../policy/platform.ts'
import { type Outcome, SCAN_SOURCE_OF } from '../../policy/vocabulary.ts'
import { LedgerFull } from '../ledger/file/commit.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Log } from '../log.ts'
import type { CommandResult } from '../../device-drivers/kit/device.ts'
import type { DeviceFacts } from '../../policy/devices.ts'
import { newId } from '../../policy/ids.ts'
import type { AgentClock } from '../trust/time/clock.ts'
import type { RequestContext, AuthorizeRequest, Denial, Grant } from './request.ts'

export interface RecordParts {
  platform: Pick<Platform, 'clock' | 'random'>
  storeId: string
  ledger: Pick<Ledger, 'record'>
  clock: AgentClock
  log: Log
}

/** Maximum number of denials that are recorded per device and minute: a faulty scanner must not fill the disk. */
const DENIALS_PER_MINUTE = 30
/** Maximum number of devices with a count in memory. */
const DEVICES_LIMIT = 1_000

/** Makes and stores the events that report a decision and its outcome to the cloud. */
export class DecisionRecords {
  readonly #parts: RecordParts
  readonly #denials = new Map<string, { minute: number; count: number }>()

  constructor(parts: RecordParts) {
    this.#parts = parts
  }

  /**
   * Stores a denial and returns its event id. Returns null if the device had too many denials or the disk is full. The
   * request stays denied.
   */
  async denied(
    request: AuthorizeRequest,
    device: DeviceFacts | undefined,
    { reason, unknownFacts }: Denial,
    offline: boolean,
  ): Promise<string | null> {
    const { ledger, clock, log } = this.#parts
    const { deviceId } = request
    if (!this.#isWithinLimit(deviceId)) return null
    const event: ProtectionEvent = {
      type: 'protection.authorization.denied',
      ...this.#base(request, device, offline),
      ...(unknownFacts && { unknownFacts: [...unknownFacts] }),
      reason,
    }
    try {
      await ledger.record({ atMs: clock.now().nowMs, event })
    } catch (error) {
      if (!(error instanceof LedgerFull)) throw error
      log.warn({ deviceId, reason }, 'the disk is full: a denial was not stored')
      return null
    }
    return event.eventId
  }

  /** Makes the event of a claim that the agent decided without the cloud. */
  offlineClaim({ request, device }: RequestContext, grant: Grant): ProtectionEvent {
    return {
      type: 'protection.device.offline',
      ...this.#base(request, device, true),
      ...authorizationFields(grant),
      ...(grant.itemStatus && { itemStatus: grant.itemStatus }),
      ...(grant.unknownFacts && { unknownFacts: [...grant.unknownFacts] }),
    }
  }

  /** Makes the event of the device's outcome. */
  outcome({ request, device }: RequestContext, grant: Grant, result: CommandResult, offline: boolean): ProtectionEvent {
    const { outcome, detail } = result
    return {
      type: outcome === 'confirmed' ? 'protection.action.completed' : 'protection.action.failed',
      ...this.#base(request, device, offline),
      ...authorizationFields(grant),
      outcome,
      // The `detail` text of a driver starts with an error code.
      ...(outcome !== 'confirmed' && { reason: (detail.split(':')[0] ?? outcome).slice(0, 60) }),
      detail: detail.slice(0, 300),
    }
  }

  #isWithinLimit(deviceId: string): boolean {
    const minute = Math.floor(this.#parts.platform.clock.elapsed() / 60_000)
    const seen = this.#denials.get(deviceId)
    const count = seen?.minute === minute ? seen.count + 1 : 1
    if (this.#denials.size > DEVICES_LIMIT) this.#denials.clear()
    this.#denials.set(deviceId, { minute, count })
    return count <= DENIALS_PER_MINUTE
  }

  #base(request: AuthorizeRequest, device: DeviceFacts | undefined, offline: boolean) {
    const { platform, clock, storeId } = this.#parts
    const { epc, tagUid, tagId, itemLineId } = request.identifiers
    const scanSource = request.scanSource ?? (device && SCAN_SOURCE_OF[device.deviceType])
    return {
      eventId: newId('evt', platform),
      occurredAt: new Date(clock.now().nowMs).toISOString(),
      storeId,
      deviceId: request.deviceId,
      protectionAction: request.action,
      offline,
      ...(device && { deviceType: device.deviceType, workflowType: device.workflowType }),
      ...(epc !== undefined && { epc }),
      ...(tagUid !== undefined && { tagUid }),
      ...(tagId !== undefined && { tagId }),
      ...(itemLineId !== undefined && { itemLineId }),
      ...(request.tagTechnology !== undefined && { tagTechnology: request.tagTechnology }),
      ...(scanSource !== undefined && { scanSource }),
      ...(request.operatorId !== undefined && { operatorId: request.operatorId }),
    }
  }
}

/** Event fields of the authorization that was used up. Empty if only an operator approved: then there is none. */
function authorizationFields({ source, nonce }: Grant) {
  return source === 'override' || source === 'item'
    ? {}
    : { replayProtectedNonce: nonce, authorizationState: 'redeemed' as const }
}

/**
 * Stores the outcomes of claims in the ledger. If the disk is full after the device has moved, the outcome waits in
 * memory and the request continues. If the process ends while the disk is full, the next start stores `unknown`
 * (startup/stored.ts).
 */
export interface Outcomes {
  /** Resolves when the outcome is durable; if the disk is full, when the outcome is in memory. */
  settle(redemptionId: string, outcome: Outcome, atMs: number, event: ProtectionEvent): Promise<void>
  /** Keeps the outcome in memory until the disk has room. */
  retryLater(redemptionId: string, outcome: Outcome, atMs: number, event?: ProtectionEvent): void
  /** Makes a last attempt to store the outcomes in memory. */
  stop(): Promise<void>
}

/** Interval between attempts, ms. */
const RETRY_MS = 1_000
/** Maximum outcomes in memory. A full disk refuses new claims, so only devices that are moving add outcomes. */
const WAITING_LIMIT = 1_000

/** Opens the outcomes of this ledger's claims. */
export function openOutcomes({
  ledger,
  timers,
  log,
}: {
  ledger: Pick<Ledger, 'settle'>
  timers: Timers
  log: Log
}): Outcomes {
  const waiting = new Map<string, () => Promise<void>>()
  let cancel: Cancel | undefined

  /** Stores the outcomes in order until the disk is full again. */
  async function tryAll(): Promise<void> {
    for (const [redemptionId, write] of waiting) {
      try {
        await write()
      } catch (error) {
        if (error instanceof LedgerFull) return
        log.error({ err: error, redemptionId }, 'an outcome could not be stored')
      }
      waiting.delete(redemptionId)
    }
  }

  function tryLater(): void {
    cancel ??= timers.after(RETRY_MS, () => {
      void tryAll().then(() => {
        cancel = undefined
        if (waiting.size > 0) tryLater()
      })
    })
  }

  function wait(redemptionId: string, outcome: Outcome, write: () => Promise<void>): void {
    log.warn({ redemptionId, outcome }, 'the disk is full: an outcome is stored when there is room')
    waiting.set(redemptionId, write)
    tryLater()
  }

  return {
    async settle(redemptionId, outcome, atMs, event) {
      const write = () => ledger.settle(redemptionId, outcome, atMs, event)
      try {
        await write()
      } catch (error) {
        if (!(error instanceof LedgerFull) || waiting.size >= WAITING_LIMIT) throw error
        wait(redemptionId, outcome, write)
      }
    },
    retryLater: (redemptionId, outcome, atMs, event) =>
      wait(redemptionId, outcome, () => ledger.settle(redemptionId, outcome, atMs, event)),
    async stop() {
      cancel?.()
      await tryAll()
    },
  }
}
