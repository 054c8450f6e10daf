import { budget } from '../../policy/budget.ts'
import type { SoldByCode } from '../decisions/sale-codes.ts'
import type { DeviceEvent, Finding, TagName } from '../../device-drivers/kit/device.ts'
import type { DeviceFacts } from '../../policy/devices.ts'
import { type TagTechnology, rightClassOf, type DenyReason } from '../../policy/vocabulary.ts'
import type { VerifiedCode, FoundReceipt } from '../decisions/pickup-code.ts'
import type { AuthorizeAnswer, AuthorizeRequest } from '../decisions/request.ts'
import { findByTag, type Replica } from '../items/replica.ts'
import type { Log } from '../log.ts'
import { GateRequests, type GateRequestsParts } from './gate/gate-requests.ts'
import { LaneOperators, type SignInResult, type Operators, type Proof } from './operators.ts'
import { LaneReader } from './lane-reader.ts'
import { laneStates, type LaneStates } from './lane-states.ts'
import { Presentations } from './presentations.ts'
import { decisionResult, type ScanOrigin, type ScanResult } from './scan-result.ts'
import type { Platform } from '../../policy/platform.ts'
import { parseCardNumber } from '../../policy/operator-verifiers.ts'
import type { Wiring } from '../devices/wiring.ts'
import { hasItemIdentifier } from '../../policy/item-identifiers.ts'
import { goodsOf, releasedProduct, unitsForStaff, unusedRights, type UnusedRights } from './unused-rights.ts'

/** Denials that can come from the receipt: the receipt does not cover the tag, or is not valid. */
const RECEIPT_REASONS: ReadonlySet<DenyReason> = new Set([
  'item_not_paid',
  'no_tagged_goods',
  'store_mismatch',
  'token_invalid',
  'token_expired',
  'token_revoked',
])

/** Handles staff cards at readers that are configured for them. Reports a presented card once. */
interface StaffCards {
  /** Handles the event of a reader for staff cards. Returns false if the event is for another handler. */
  onEvent(sourceId: string, laneId: string, event: DeviceEvent): boolean
}

interface StaffCardsParts {
  platform: Pick<Platform, 'clock'>
  wiring: Pick<Wiring, 'readsStaffCards'>
  onCard(laneId: string, readerId: string, card: string): void
}

/** Time without a read after which a card counts as removed, ms. */
const AWAY_MS = 2_000

/** Starts without cards. */
function openStaffCards({ platform, wiring, onCard }: StaffCardsParts): StaffCards {
  /** Reader → its last card. */
  const lastCards = new Map<string, { card: string; seenMs: number }>()

  function show(sourceId: string, laneId: string, card: string): void {
    const nowMs = platform.clock.elapsed()
    const last = lastCards.get(sourceId)
    const isSame = last?.card === card && nowMs - last.seenMs <= AWAY_MS
    lastCards.set(sourceId, { card, seenMs: nowMs })
    // The check of a card is slow on purpose, so it runs once per presentation.
    if (!isSame) onCard(laneId, sourceId, card)
  }

  return {
    onEvent(sourceId, laneId, event) {
      if (!wiring.readsStaffCards(sourceId)) return false
      if (event.type === 'tag_gone') return true
      if (event.type === 'tags') {
        // Handles one card at a time, and ignores buffered reads.
        const read = event.reads.find(
          ({ tag, seenAtMs }) => 'tagUid' in tag && platform.clock.elapsed() - seenAtMs <= AWAY_MS,
        )
        if (read && 'tagUid' in read.tag) show(sourceId, laneId, read.tag.tagUid)
        return true
      }
      const card = event.type === 'scan' ? parseCardNumber(event.text) : undefined
      if (card === undefined) return false
      show(sourceId, laneId, card)
      return true
    },
  }
}

interface LaneParts extends GateRequestsParts {
  operators: Operators
  items: Pick<Replica, 'find' | 'onChange' | 'productOf' | 'onlyProductOf' | 'namesByGtin' | 'pictureOf'>
  verifyPickupCode(code: string): Promise<VerifiedCode>
  receiptOfPurchase(named: { purchaseId: string } | { number: string }): Promise<FoundReceipt>
  saleOfCode(code: string): Promise<SoldByCode>
  log: Log
  /** Shows the result of a request on the pages of the device. */
  onResult(deviceId: string, result: ScanResult): void
  onOperator(deviceId: string, name: string | null): void
  /** Called when a lane has too many tags: its status has changed. */
  onCrowded(): void
  onPerson(deviceId: string, direction: 'in' | 'out'): void
}

/** Texts of a device's own scanner: at once, and per second after that. People scan one or two per second. */
const OWN_SCANS = { most: 20, perSecond: 10 }
/** Dropped texts for each line of the log. */
const DROPS_PER_LINE = 1_000

/**
 *   scan ───────────────────────────────▶ lane-reader.ts ─▶ `#handle` ─┬─ gate ─▶ gate/gate-requests.ts ─┐
 *   tag at a reader ─▶ presentations.ts ─────┘                         └─────────────────────────────────┴─▶ authorize
 *   tag at a gate ─▶ gate/gates.ts ─▶ paid tag that has left ─▶ decisions/claim-exit.ts ─▶ claim
 *
 * A lane is a device that people use: a staff station, a detacher, a gate. Each scan and each presented tag becomes one
 * request. decisions/authorize.ts lists the steps of a request, from the verdict to the claim and the command. Tags that
 * leave a gate make no request: the claim for a paid tag commands no device.
 */
export class Lanes {
  readonly #parts: LaneParts
  readonly #states: LaneStates
  readonly #gateRequests: GateRequests
  readonly #presentations: Presentations
  readonly #operators: LaneOperators
  readonly #reader: LaneReader
  readonly #staffCards: StaffCards
  readonly #stopListening: () => void
  readonly #underWay = new Set<Promise<unknown>>()

  constructor(parts: LaneParts) {
    const { platform, items, wiring } = parts
    const deviceOf = (deviceId: string) => this.#deviceOf(deviceId)
    const isKnown = (deviceId: string) => deviceOf(deviceId) !== undefined
    const again = (deviceId: string) => this.#presentations.retryRefused(deviceId)
    const states = laneStates(isKnown)
    this.#parts = parts
    this.#states = states
    this.#gateRequests = new GateRequests(parts)
    this.#presentations = new Presentations({
      platform,
      find: (tag) => findByTag(items, tag),
      request: (deviceId, tag, tagTechnology) => this.#presented(deviceId, tag, tagTechnology),
      onCrowded: (deviceId, detail) => {
        parts.log.warn({ deviceId, detail }, 'a lane has too many tags')
        parts.onCrowded()
      },
    })
    this.#operators = new LaneOperators({ ...parts, states, isKnown, onSignIn: again })
    this.#reader = new LaneReader({ ...parts, states, deviceOf, laneOperators: this.#operators, onReceipt: again })
    this.#staffCards = openStaffCards({
      platform,
      wiring,
      onCard: (deviceId, readerId, card) =>
        parts.onResult(deviceId, this.#operators.signInWithProof(deviceId, { card, readerId })),
    })
    this.#stopListening = items.onChange(() => this.#presentations.itemsChanged())
  }

  /** Handles an event of a device. */
  onEvent(sourceId: string, event: DeviceEvent): void {
    const { wiring, gates, onPerson } = this.#parts
    const deviceId = wiring.laneOf(sourceId)
    if (this.#staffCards.onEvent(sourceId, deviceId, event)) return
    switch (event.type) {
      case 'tags':
        return this.#onTags(deviceId, sourceId, event.reads)
      case 'tag_gone':
        return this.#presentations.onGone(deviceId, event.tag)
      case 'passage':
        this.#gateRequests.passage(deviceId)
        return gates.onPassage(deviceId)
      case 'person':
        return onPerson(deviceId, event.direction)
      case 'scan':
        return void this.#onOwnScan(deviceId, event)
    }
  }

  /**
   * Handles a text of the device's own scanner. Drops texts that come faster than people scan, because all who reach
   * the line of the scanner could send any number of them.
   */
  async #onOwnScan(deviceId: string, { text, symbology }: DeviceEvent & { type: 'scan' }): Promise<void> {
    const { platform, log } = this.#parts
    const state = this.#states.of(deviceId)
    const own = (state.ownScans ??= {
      budget: budget(platform.clock, OWN_SCANS.most, OWN_SCANS.perSecond),
      running: 0,
      dropped: 0,
    })
    if (own.running >= OWN_SCANS.most || !own.budget.spend()) {
      if (own.dropped++ % DROPS_PER_LINE === 0)
        log.warn(
          { deviceId, dropped: own.dropped },
          'the scanner sends texts faster than people scan: some are dropped',
        )
      return
    }
    own.running++
    try {
      await this.scan(deviceId, text, { symbology })
    } catch (error) {
      this.#onFailure(deviceId, error, 'the decision about a scan failed')
    } finally {
      own.running--
    }
  }

  /** Handles a text that was scanned or typed at a device. */
  async scan(deviceId: string, text: string, by: ScanOrigin = {}): Promise<ScanResult> {
    const read = await this.#reader.readScan(deviceId, text, by)
    if ('request' in read) return (await this.#show(read.request, true)).result
    this.#parts.onResult(deviceId, read.result)
    return read.result
  }

  /** Handles a request of a page or program. At a gate, also switches the lights and the siren. */
  async request(request: AuthorizeRequest): Promise<AuthorizeAnswer> {
    return (await this.#show(request, false)).answer
  }

  /** The finding of a lane that has too many tags. */
  crowdOf(deviceId: string): Finding | undefined {
    return this.#presentations.crowdOf(deviceId)
  }

  /** Name of the operator who is signed in at a device. */
  operatorAt(deviceId: string): string | undefined {
    return this.#operators.nameAt(deviceId)
  }

  /** The operator who is signed in at a device and pressed a button there, which restarts the idle time. */
  actingOperatorAt(deviceId: string): { operatorId: string; name: string } | undefined {
    return this.#operators.actingAt(deviceId)
  }

  /**
   * Signs an operator in at a device. The operator approves requests at this device until `signOut` or 15 idle minutes.
   * `callerId`: caller for which wrong PINs are counted.
   */
  signIn(deviceId: string, proof: Proof, callerId: string): SignInResult {
    return this.#operators.signIn(deviceId, proof, callerId)
  }

  signOut(deviceId: string): void {
    this.#operators.signOut(deviceId)
  }

  stop(): void {
    this.#stopListening()
    this.#presentations.stop()
  }

  /** Resolves when all running requests are stored with their outcomes. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#underWay)
  }

  #onTags(deviceId: string, sourceId: string, reads: (DeviceEvent & { type: 'tags' })['reads']): void {
    const { gates, wiring } = this.#parts
    if (this.#isGate(deviceId)) return gates.onReads(deviceId, sourceId, reads)
    if (!this.#deviceOf(deviceId)) return
    const absentMs = wiring.absentMsOf(sourceId)
    this.#presentations.onReads(deviceId, reads, { absentMs, minimumRssi: wiring.minimumRssiOf(sourceId) })
  }

  /** Finds the sale of a code that a till printed; limited for each lane. */
  saleOfCode(deviceId: string, text: string, isStaff: boolean): Promise<SoldByCode> {
    return this.#reader.saleOfCode(deviceId, text, isStaff)
  }

  /** Handles a presented tag. Returns true if the request was authorized. */
  async #presented(deviceId: string, tag: TagName, tagTechnology: TagTechnology | undefined): Promise<boolean> {
    try {
      const request = this.#reader.readTag(deviceId, tag, tagTechnology)
      return (await this.#show(request, true)).answer.authorized
    } catch (error) {
      this.#onFailure(deviceId, error, 'the decision about a tag failed')
      return false
    }
  }

  /** Handles a request and shows its result. `isRemembered`: its receipt may belong to another shopper. */
  async #show(
    request: AuthorizeRequest,
    isRemembered: boolean,
  ): Promise<{ answer: AuthorizeAnswer; result: ScanResult }> {
    const before = this.#unusedOf(request)
    const answer = await (isRemembered ? this.#handleWithOrWithoutReceipt(request) : this.#handle(request))
    const { items, onResult } = this.#parts
    const after = answer.authorized ? this.#unusedOf(request) : undefined
    // This agent does not know the units that other agents released, so the number of its own must fit the answer.
    const isWhole = after?.unused.length === answer.remaining
    const result = decisionResult(items, request, answer, {
      released: before && after ? releasedProduct(before, after, items) : undefined,
      next: after && isWhole && after.unused.length > 0 ? goodsOf(after, items) : [],
      forStaff: after ? this.#unitsForStaff(request, after, answer.remaining) : 0,
      alarmId: this.#gateRequests.alarmOf(answer),
      used: before?.used,
    })
    onResult(request.deviceId, result)
    return { answer, result }
  }

  /** Goods of the receipt that are left, beside those that the answer counts, because only staff release them. */
  #unitsForStaff({ deviceId, action }: AuthorizeRequest, rest: UnusedRights, remaining: number): number {
    const device = this.#deviceOf(deviceId)
    const uncounted = rest.unused.length - remaining
    return device && uncounted > 0 ? Math.min(uncounted, unitsForStaff(rest, device, action)) : 0
  }

  /** The rights of the request's receipt to release goods. */
  #unusedOf({ receipt, action }: AuthorizeRequest): UnusedRights | undefined {
    return receipt !== undefined && rightClassOf(action) === 'release'
      ? unusedRights(this.#parts, receipt, 'release')
      : undefined
  }

  #handle(request: AuthorizeRequest): Promise<AuthorizeAnswer> {
    const isGate = this.#deviceOf(request.deviceId)?.deviceType === 'exit_gate'
    const answer = isGate ? this.#gateRequests.handle(request) : this.#authorizeWithRest(request)
    this.#underWay.add(answer)
    return answer.finally(() => this.#underWay.delete(answer))
  }

  /**
   * Handles a request with the remembered receipt. If that receipt is the reason of a denial and the item is paid,
   * handles the request again without the receipt. The receipt may belong to another shopper.
   */
  async #handleWithOrWithoutReceipt(request: AuthorizeRequest): Promise<AuthorizeAnswer> {
    const { receipt, ...withoutReceipt } = request
    const first = await this.#handle(request)
    const mayBeReceipt = receipt !== undefined && first.reason !== undefined && RECEIPT_REASONS.has(first.reason)
    const status = mayBeReceipt && findByTag(this.#parts.items, request.identifiers)?.status
    return status === 'paid' || status === 'picked_up' ? this.#handle(withoutReceipt) : first
  }

  /** Adds the number of unused units of the receipt, because the answer for a tag covers only one unit. */
  async #authorizeWithRest(request: AuthorizeRequest): Promise<AuthorizeAnswer> {
    const { receipt, identifiers, action } = request
    const answer = await this.#parts.authorize(request)
    const isOneUnit = answer.authorized && hasItemIdentifier(identifiers) && rightClassOf(action) === 'release'
    if (!isOneUnit || receipt === undefined) return answer
    const rest = this.#unusedOf(request)
    return rest ? { ...answer, itemCount: rest.claims.units, remaining: rest.unused.length } : answer
  }

  #onFailure(deviceId: string, error: unknown, message: string): void {
    this.#parts.log.error({ err: error, deviceId }, message)
    this.#parts.onResult(deviceId, { kind: 'not_understood', why: 'out_of_order' })
  }

  #deviceOf(deviceId: string): DeviceFacts | undefined {
    return this.#parts.trust.policy?.devices.find((d) => d.deviceId === deviceId)
  }

  /**
   * True if tags at this device may be leaving. If the agent has no policy now, the last policy decides; if there was
   * none, the wiring decides (P6).
   */
  #isGate(deviceId: string): boolean {
    const state = this.#states.of(deviceId)
    if (this.#parts.trust.policy) state.wasGate = this.#deviceOf(deviceId)?.deviceType === 'exit_gate'
    return state.wasGate ?? this.#parts.wiring.looksLikeGate(deviceId)
  }
}
