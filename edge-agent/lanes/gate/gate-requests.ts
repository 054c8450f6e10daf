import { hasItemIdentifier } from '../../../policy/item-identifiers.ts'
import type { Platform } from '../../../policy/platform.ts'
import { extractReceiptToken } from '../../../policy/receipts/receipt-token.ts'
import type { Authorize } from '../../decisions/authorize.ts'
import type { AuthorizeAnswer, AuthorizeRequest } from '../../decisions/request.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { AgentClock } from '../../trust/time/clock.ts'
import type { Trust } from '../../trust/trust.ts'
import { AMBER_SECONDS, gateSignal, GREEN_SECONDS } from '../gate-signals.ts'
import type { SendSignal } from '../../devices/devices.ts'
import { unusedRights, type UnusedRights } from '../unused-rights.ts'
import type { Wiring } from '../../devices/wiring.ts'
import { tagNameOf } from './tags/deduplicate.ts'
import type { DeviceJournal } from '../../devices/device-journal.ts'
import type { Gates } from './gates.ts'
import type { TagEntry } from './accepted-receipts.ts'

export interface GateRequestsParts {
  platform: Platform
  storeId: string
  ledger: Ledger
  clock: AgentClock
  trust: Trust
  gates: Gates
  wiring: Wiring
  authorize: Authorize
  signal: SendSignal
  journal: Pick<DeviceJournal, 'add' | 'write'>
}

/** Time in which the same receipt opens the gate again without a new decision, ms. */
const REPEAT_MS = 20_000
const ONE_BY_ONE_TIMEOUT_MS = 4_000

interface OpenedGate {
  text: string
  answer: AuthorizeAnswer
  atMs: number
}

/** The receipt, or the sale of a code, with which a whole purchase leaves; undefined for other requests. */
function receiptNameOf({ receipt, sale, identifiers }: AuthorizeRequest): string | undefined {
  if (hasItemIdentifier(identifiers)) return undefined
  return sale?.sale ?? (receipt === undefined ? undefined : extractReceiptToken(receipt))
}

/**
 *   request ─┬─ receipt that opened the gate within 20 s ─▶ repeat the signals
 *            ├─ other receipt ─▶ authorize the receipt, then each unit with a nearby tag without a command
 *            └─ anything else ─▶ authorize
 *
 * Handles requests at gates and drives lights and siren. gates.ts handles the tags that readers report.
 */
export class GateRequests {
  readonly #parts: GateRequestsParts
  /** The last receipt that opened each gate. Each receipt is removed when a person passes its gate. */
  readonly #opened = new Map<string, OpenedGate>()
  /** Running requests. A scanner reads a presented receipt several times, and all these reads share one answer. */
  readonly #underWay = new Map<string, Promise<AuthorizeAnswer>>()
  readonly #passages = new Map<string, number>()
  /** Ids of the alarms that answers raised. */
  readonly #alarms = new WeakMap<AuthorizeAnswer, string>()

  constructor(parts: GateRequestsParts) {
    this.#parts = parts
  }

  handle(request: AuthorizeRequest): Promise<AuthorizeAnswer> {
    const { deviceId, action, operatorId } = request
    const repeated = this.#repeatedAnswer(request)
    if (repeated) return Promise.resolve(repeated)
    const text = receiptNameOf(request)
    if (text === undefined) return this.#handleOnce(request)
    const key = [deviceId, action, operatorId ?? '', text].join(' ')
    const joined = this.#underWay.get(key)
    if (joined) return joined
    const answer = this.#handleOnce(request).finally(() => this.#underWay.delete(key))
    this.#underWay.set(key, answer)
    return answer
  }

  /** Id of the alarm that this answer raised. An operator at the gate may handle the alarm. */
  alarmOf(answer: AuthorizeAnswer): string | undefined {
    return this.#alarms.get(answer)
  }

  /** Handles a person who passed the gate. */
  passage(deviceId: string): void {
    this.#opened.delete(deviceId)
    this.#passages.set(deviceId, this.#passagesAt(deviceId) + 1)
  }

  #passagesAt(deviceId: string): number {
    return this.#passages.get(deviceId) ?? 0
  }

  /** Repeats the signals if the receipt has opened this gate and no person has passed since. */
  #repeatedAnswer(request: AuthorizeRequest): AuthorizeAnswer | undefined {
    const { platform, signal } = this.#parts
    const { deviceId, action } = request
    const last = this.#opened.get(deviceId)
    const isSame = last?.answer.action === action && receiptNameOf(request) === last.text
    if (!isSame || platform.clock.elapsed() - last.atMs > REPEAT_MS) return undefined
    signal(deviceId, { kind: 'release' })
    signal(deviceId, { kind: 'signal', signal: 'green', seconds: GREEN_SECONDS })
    return last.answer
  }

  async #handleOnce(request: AuthorizeRequest): Promise<AuthorizeAnswer> {
    const { authorize, signal } = this.#parts
    const { deviceId, identifiers } = request
    const receipt = hasItemIdentifier(identifiers) || request.isOnlyBarrier ? undefined : request.receipt
    const before = this.#passagesAt(deviceId)
    let answer: AuthorizeAnswer
    try {
      // Reads the unused units of the receipt before the claim uses them up: the tags of these units may pass next.
      const rights = receipt === undefined ? undefined : unusedRights(this.#parts, receipt, 'exit')
      answer = await (rights ? this.#leaveWithReceipt(request, rights) : authorize(request))
    } catch (error) {
      // If the ledger accepts no claim, amber calls staff.
      signal(deviceId, { kind: 'signal', signal: 'amber', seconds: AMBER_SECONDS })
      throw error
    }
    // If a person has passed since, the shopper has left and will not present the receipt again.
    if (this.#passagesAt(deviceId) === before) this.#remember(request, answer)
    await this.#signalResult(request, answer)
    return answer
  }

  /** Opens the gate with the receipt, and lets its goods pass. Uses the rights of those whose tags are near. */
  async #leaveWithReceipt(request: AuthorizeRequest, { claims, unused }: UnusedRights): Promise<AuthorizeAnswer> {
    const { gates, authorize } = this.#parts
    const { deviceId } = request
    const nearby = gates.nearbyTagsOf(deviceId, claims, unused)
    const answer = await authorize(request)
    if (!answer.authorized) return answer
    gates.onReceipt(deviceId, claims, unused, nearby)
    if (answer.outcome === 'confirmed') await this.#useNearby(request, nearby)
    return answer
  }

  /** Uses the exit rights of goods that are leaving through the open gate. */
  async #useNearby(request: AuthorizeRequest, nearby: readonly TagEntry[]): Promise<void> {
    const { platform, authorize } = this.#parts
    const beganMs = platform.clock.elapsed()
    for (const { tag } of nearby) {
      // The shopper waits for the lights. A tag that has left uses its right later (decisions/claim-exit.ts).
      if (platform.clock.elapsed() - beganMs > ONE_BY_ONE_TIMEOUT_MS) return
      await authorize({ ...request, identifiers: tagNameOf(tag), isAlreadyOpen: true })
    }
  }

  /**
   * Stores an answer, to give it again for the same receipt, only if its outcome is confirmed (P2). A failed outcome
   * frees its right, and staff resolve an unknown outcome.
   */
  #remember(request: AuthorizeRequest, answer: AuthorizeAnswer): void {
    const { platform, wiring } = this.#parts
    const { deviceId } = request
    const text = receiptNameOf(request)
    if (text === undefined || !answer.authorized || answer.outcome !== 'confirmed') return
    if (wiring.hasPassageSensor(deviceId)) this.#opened.set(deviceId, { text, answer, atMs: platform.clock.elapsed() })
  }

  async #signalResult({ deviceId, action, identifiers }: AuthorizeRequest, answer: AuthorizeAnswer): Promise<void> {
    const { trust, gates, wiring, journal, signal } = this.#parts
    const hasTag = hasItemIdentifier(identifiers)
    const isReleased = !answer.authorized && gates.isReleased(deviceId, identifiers)
    const shown = gateSignal(answer, hasTag, trust.policy?.policy, wiring.sirenSecondsOf(deviceId), isReleased)
    if (shown) signal(deviceId, { kind: 'signal', signal: shown.signal, seconds: shown.seconds })
    if (!shown?.isAlarm) return
    const eventId = journal.add({
      type: 'protection.exception.raised',
      deviceId,
      protectionAction: action,
      reason: 'gate_alarm',
      offline: answer.offline,
      detail: `an item left that is ${answer.itemStatus ?? 'not covered by the receipt'}`,
      ...identifiers,
      ...(answer.itemStatus && { itemStatus: answer.itemStatus }),
    })
    if (eventId !== undefined) {
      gates.alarms.raised(deviceId, eventId, identifiers.epc ?? identifiers.tagUid)
      this.#alarms.set(answer, eventId)
    }
    await journal.write()
  }
}
