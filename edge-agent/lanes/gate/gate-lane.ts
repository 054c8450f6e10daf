import type { DeviceCommand } from '../../../device-drivers/kit/device.ts'
import {
  DEFAULT_GATE_POLICY,
  type GatePolicy,
  DEFAULT_POLICY,
  type ProtectionPolicy,
} from '../../../policy/store-policy.ts'
import type { LeavingUnit } from '../../decisions/claim-exit.ts'
import { GATE_BEHAVIOUR } from '../../../policy/item-status.ts'
import { pause, type Cancel, type Platform, type Timers } from '../../../policy/platform.ts'
import type { ReceiptClaims } from '../../../policy/receipts/receipt-claims.ts'
import type { Replica } from '../../items/replica.ts'
import type { DeviceJournal } from '../../devices/device-journal.ts'
import { GateAlarms } from './gate-alarms.ts'
import { assessTag, mayBeCovered, type TagAssessment } from './assess-tag.ts'
import type { ReleasedUnit, ReleasedUnits } from './released-units.ts'
import type { SoldPieces } from './sold-pieces.ts'
import { acceptedReceipts, tagsOfReceipt, type AcceptedReceipts, type TagEntry } from './accepted-receipts.ts'
import { deduplicator, type Deduplicator, type Zone, itemOf, tagNameOf } from './tags/deduplicate.ts'
import { Presence, type StationaryTag } from './tags/presence.ts'

/**
 * Paid tags that left one gate. The gate reports a tag 30 s after its last read, if that read was not inside. Until then
 * the shopper may still present a receipt, and that receipt needs the exit right.
 */
interface Departures {
  /** Adds a tag that left. */
  left(tag: string, atMs: number): void
  /** Call it for every read. Ignores tags that have not left. */
  seen(tag: string, zone: Zone, atMs: number): void
  /** Drops paid tags whose exit right a receipt used. */
  drop(isUsedUp: (tag: string) => boolean): void
  /**
   * Removes the tags without a read for 30 s. Of these, returns the tags whose last read was not inside, with the time
   * of leaving.
   */
  removeGone(atMs: number): { tag: string; leftMs: number }[]
}

/** Time without a read after which a tag is gone, ms. Receipts cover tags for the same time (accepted-receipts.ts). */
const GONE_MS = 30_000
/** Maximum tags that wait for these 30 s. The gate does not report further tags. */
const LIMIT = 2_000

/** Starts without tags. */
function departures(): Departures {
  const waiting = new Map<string, { leftMs: number; lastMs: number; isInside: boolean }>()
  return {
    left(tag, atMs) {
      if (waiting.size < LIMIT || waiting.has(tag)) waiting.set(tag, { leftMs: atMs, lastMs: atMs, isInside: false })
    },
    seen(tag, zone, atMs) {
      const departure = waiting.get(tag)
      if (!departure) return
      departure.lastMs = atMs
      departure.isInside = zone === 'inside'
    },
    drop(isUsedUp) {
      for (const tag of waiting.keys()) if (isUsedUp(tag)) waiting.delete(tag)
    },
    removeGone(atMs) {
      const gone = [...waiting].filter(([, { lastMs }]) => atMs - lastMs >= GONE_MS)
      for (const [tag] of gone) waiting.delete(tag)
      return gone.flatMap(([tag, { leftMs, isInside }]) => (isInside ? [] : [{ tag, leftMs }]))
    },
  }
}

/** Reports reads that came too late to cause an alarm, in at most one line per 5 s. */
interface LateReads {
  add(tag: string, ageMs: number): void
  stop(): void
}

const REPORT_AFTER_MS = 5_000
const UNPAID_LIMIT = 1_000

/** `report` receives the lines, which are for staff. */
function lateReads(timers: Timers, isUnpaid: (tag: string) => boolean, report: (detail: string) => void): LateReads {
  let count = 0
  let oldestMs = 0
  let unpaid = new Set<string>()
  let timer: Cancel | undefined

  function finish(): void {
    timer = undefined
    report(
      `${count} reads came too late to alarm, the oldest ${Math.round(oldestMs / 1_000)} s; ${unpaid.size >= UNPAID_LIMIT ? 'over ' : ''}${unpaid.size} unpaid items among them`,
    )
    count = 0
    oldestMs = 0
    unpaid = new Set()
  }

  return {
    add(tag, ageMs) {
      count++
      oldestMs = Math.max(oldestMs, ageMs)
      if (unpaid.size < UNPAID_LIMIT && isUnpaid(tag)) unpaid.add(tag)
      timer ??= timers.after(REPORT_AFTER_MS, finish)
    },
    stop: () => timer?.(),
  }
}

/** Numbers of reads and tags since the start. */
export interface GateCounts {
  reads: number
  late: number
  entering: number
  passed: number
  alarms: number
}

export interface GateParts {
  deviceId: string
  platform: Platform
  items: Pick<Replica, 'find' | 'isBehind' | 'confirmedMs'>
  released: Pick<ReleasedUnits, 'covers' | 'isFor' | 'unitOf'>
  /** Units of a receipt that were used for a tag, here or elsewhere. */
  tagsOfReceipt(cti: Uint8Array): TagEntry[]
  pieces: Pick<SoldPieces, 'covers'>
  /** Trusted time, ms. */
  nowMs(): number
  policy(): ProtectionPolicy | undefined
  isOnline(): boolean
  /** Fetches newer items from the cloud. */
  syncItems(): Promise<void>
  signal(command: DeviceCommand): void
  /** How long an alarm sounds, s. */
  sirenSeconds: number
  record: DeviceJournal['add']
  /**
   * Called when a unit of a receipt lets a tag leave. `isSure`: false if the gate cannot tell arrival from exit, so the
   * goods may still be here.
   */
  onLeft(tag: string, unit: LeavingUnit, isSure: boolean): void
  /** Called when a paid tag has left and is no longer read. `leftMs`: trusted time. */
  onGone(tag: string, leftMs: number): void
  /** Stationary tags that the gate had before the restart. Undefined for a new gate. */
  stationaryTags: readonly StationaryTag[] | undefined
  /** Shows an alarm on the gate's display. `eventId`: event of the alarm; undefined if it was not stored. */
  onAlarm(tag: string, assessment: TagAssessment, eventId: string | undefined): void
  /** Called for each tag that leaves, with the gate's assessment. */
  onAssessed?(tag: string, assessment: TagAssessment): void
}

/** Maximum age of a read that can cause an alarm, ms. A reader buffers reads while its network is down. */
const LATE_MS = 2_000
const SYNC_TIMEOUT_MS = 250
const WAITING_LIMIT = 200
/** Time in which a new gate learns the stationary tags around it, ms. The gate alarms from the start. */
const CALIBRATION_MS = 60_000
/** Maximum tags that a gate watches at a time while it learns. */
const LEARNING_LIMIT = 2_000
/** Time after a passage in which a read inside shows that a tag outside did not leave, ms. */
const PASSAGE_WAIT_MS = 500
const TIDY_MS = 5_000
/** When a receipt is presented, a tag counts as nearby if its last read is at most this old, ms. */
const NEARBY_MS = 5_000

/**
 *   read ─ old or repeated? ─▶ tags/presence.ts: leaving? ─▶ assess-tag.ts ─▶ gate-alarms.ts: siren, light
 *
 * One exit gate. The gate decides from memory, in the same task as the read, and writes to the journal later. If
 * newer item data may show that an item is paid, the gate first fetches the data, for at most 250 ms.
 */
export class GateLane {
  readonly counts: GateCounts = { reads: 0, late: 0, entering: 0, passed: 0, alarms: 0 }
  readonly #parts: GateParts
  readonly #recently: Deduplicator = deduplicator()
  readonly #presence: Presence
  readonly #alarms: GateAlarms
  readonly #receipts: AcceptedReceipts
  readonly #departures: Departures = departures()
  readonly #late: LateReads
  readonly #waitingForItems = new Set<string>()
  readonly #watched = new Set<string>()
  readonly #cancels = new Set<Cancel>()
  /** True if antennas tell inside from outside. */
  #hasSides = false
  #isStopped = false

  constructor(parts: GateParts) {
    const { platform, stationaryTags } = parts
    const { clock, timers } = platform
    const nowMs = clock.elapsed()
    this.#parts = parts
    this.#receipts = acceptedReceipts(parts.tagsOfReceipt)
    this.#presence = new Presence({
      stationaryTags: stationaryTags ?? [],
      calibratingUntilMs: stationaryTags ? nowMs : nowMs + CALIBRATION_MS,
      nowMs,
    })
    this.#alarms = new GateAlarms({
      ...parts,
      clock,
      gatePolicy: () => this.#gatePolicy(),
      ageSeconds: () => this.#ageSeconds(),
      itemOf: (tag) => itemOf(parts.items, tag),
      later: (ms, task) => this.#later(ms, task),
    })
    this.#late = lateReads(
      timers,
      (tag) => this.#isUnpaid(tag),
      (detail) => this.#alarms.record('late_reads', { detail }),
    )
    this.#later(TIDY_MS, () => this.#tidy())
  }

  /** Handles a read. `tag`: the name from `gateTagOf`. */
  see(tag: string, zone: Zone, seenAtMs: number): void {
    const atMs = this.#parts.platform.clock.elapsed()
    this.counts.reads++
    this.#hasSides ||= zone !== 'none'
    if (atMs - seenAtMs > LATE_MS) {
      this.counts.late++
      return this.#late.add(tag, atMs - seenAtMs)
    }
    const seenMs = Math.min(seenAtMs, atMs)
    const isNew = this.#recently.isNew(tag, zone, seenMs)
    const mayLeaveUnread = zone === 'outside' && this.#presence.isLearning(seenMs)
    if (isNew) this.#departures.seen(tag, zone, seenMs)
    else if (mayLeaveUnread) this.#presence.seeAgainOutside(tag, seenMs)
    const movement = isNew ? this.#presence.see(tag, zone, seenMs) : 'present'
    if (mayLeaveUnread && movement === 'present') this.#waitUntilUnread(tag)
    if (movement === 'entering') this.counts.entering++
    if (movement === 'leaving') this.#leave(tag)
  }

  /** Handles a person who passed the gate. */
  passage(): void {
    const near = this.#presence.passed(this.#parts.platform.clock.elapsed())
    if (near.length === 0) return
    this.#later(PASSAGE_WAIT_MS, () => {
      for (const tag of near) if (this.#presence.hasLeftUnseen(tag)) this.#leave(tag)
    })
  }

  /** Nearby tags that match unused entries of a receipt, each with its entry. */
  nearbyTagsOf(claims: ReceiptClaims, unused: readonly number[]): TagEntry[] {
    const atMs = this.#parts.platform.clock.elapsed()
    const here = new Set([...this.#presence.near(NEARBY_MS, atMs), ...this.#alarms.tags(atMs)])
    // Units that were used for a tag let only this one leave.
    const known = this.#parts.tagsOfReceipt(claims.cti)
    const own = known.filter(({ tag, entry }) => here.has(tag) && unused.includes(entry))
    const others = tagsOfReceipt(
      claims,
      unused.filter((n) => known.every(({ entry }) => entry !== n)),
      [...here]
        .filter((tag) => own.every((each) => each.tag !== tag))
        .map((tag) => ({ tag, isPaid: this.#isPaid(tag) })),
    )
    return [...own, ...others]
  }

  /**
   * Lets the goods of an accepted receipt pass. `unused`: entries with a free exit right. `taken`: tags with their
   * entries.
   */
  acceptReceipt(claims: ReceiptClaims, unused: readonly number[], taken: readonly TagEntry[] = []): void {
    const { clock } = this.#parts.platform
    // Units that were used for a tag let only this one leave.
    const known = this.#parts.tagsOfReceipt(claims.cti)
    this.#receipts.add(claims, unused, clock.elapsed(), [...taken, ...known])
    this.#departures.drop((tag) => this.#hasLeftFor(tag, this.#receipts.covers(tag, clock.elapsed(), true)))
    this.#alarms.resolve(
      (tag) =>
        this.#hasLeftFor(
          tag,
          mayBeCovered(itemOf(this.#parts.items, tag)) && this.#receipts.covers(tag, clock.elapsed()),
        ),
      'receipt',
    )
  }

  /** Notes the unit of a receipt for which a tag has left before. Returns `isCovered`. */
  #hasLeftFor(tag: string, isCovered: boolean): boolean {
    const unit = isCovered ? this.#receipts.unitOf(tag, this.#parts.platform.clock.elapsed()) : undefined
    if (unit) this.#parts.onLeft(tag, unit, this.#hasSides)
    return isCovered
  }

  /** Ends alarms of items that are paid now. */
  itemsChanged(): void {
    this.#alarms.resolve((tag) => this.#isPaid(tag), 'late_status')
  }

  /** Ends the alarm of a unit that is released now. */
  released(unit: ReleasedUnit): void {
    this.#alarms.resolve((tag) => this.#parts.released.isFor(unit, tag) && this.isReleased(tag), 'release')
  }

  /** True if an agent of the store has just released this tag, and no status of its item forbids that it leaves. */
  isReleased(tag: string): boolean {
    const item = itemOf(this.#parts.items, tag)
    return mayBeCovered(item) && this.#parts.released.covers(tag, item?.backMs)
  }

  /** Forgets the tags that have left, so that the same test tag can leave again and again. */
  forgetDepartures(): void {
    this.#presence.forgetDepartures(this.#parts.platform.clock.elapsed())
  }

  /** Stationary tags around the gate, for the next start. */
  stationaryTags(): StationaryTag[] {
    return this.#presence.stationaryTags()
  }

  stop(): void {
    this.#isStopped = true
    for (const cancel of this.#cancels) cancel()
    this.#late.stop()
  }

  #leave(tag: string): void {
    const { items, isOnline } = this.#parts
    const assessment = this.#assess(tag)
    const mayBeOld = items.isBehind || assessment.item?.paying === true
    const mustSync =
      assessment.severity !== 'pass' && mayBeOld && isOnline() && this.#waitingForItems.size < WAITING_LIMIT
    if (mustSync) this.#syncThenFinish(tag)
    else this.#act(tag, assessment)
  }

  /** Lets a tag leave that is not read again. A gate that has learnt decides at the first read outside instead. */
  #waitUntilUnread(tag: string): void {
    if (this.#watched.has(tag)) return
    const check = () => {
      this.#watched.delete(tag)
      const waitMs = this.#presence.leavesInMs(tag, this.#parts.platform.clock.elapsed())
      if (waitMs === 0) return this.#leave(tag)
      if (waitMs === undefined || this.#watched.size >= LEARNING_LIMIT) return
      this.#watched.add(tag)
      this.#later(waitMs, check)
    }
    check()
  }

  /** Fetches newer items, which may prevent a needless alarm. The wait is so short that the shopper is still near. */
  #syncThenFinish(tag: string): void {
    if (this.#waitingForItems.has(tag)) return
    this.#waitingForItems.add(tag)
    const { syncItems, platform } = this.#parts
    void Promise.race([syncItems().catch(() => undefined), pause(platform.timers, SYNC_TIMEOUT_MS)]).then(() => {
      this.#waitingForItems.delete(tag)
      if (!this.#isStopped) this.#act(tag, this.#assess(tag))
    })
  }

  #assess(tag: string): TagAssessment {
    const leaving = {
      name: tagNameOf(tag),
      item: itemOf(this.#parts.items, tag),
      ageSeconds: this.#ageSeconds(),
      coverage: () => this.#coverage(tag),
    }
    return assessTag(leaving, this.#parts.policy() ?? DEFAULT_POLICY, this.#gatePolicy())
  }

  /**
   * What lets the tag leave. The first that does assigns one of its units to the tag. A unit of a receipt that was released,
   * too, covers no second tag (`ReleasedUnits.left`).
   */
  #coverage(tag: string): 'receipt' | 'released' | 'sold_piece' | undefined {
    const { deviceId, items, released, pieces, platform } = this.#parts
    const item = itemOf(items, tag)
    if (this.#receipts.covers(tag, platform.clock.elapsed())) return 'receipt'
    if (released.covers(tag, item?.backMs)) return 'released'
    return item && pieces.covers(deviceId, tag, item) ? 'sold_piece' : undefined
  }

  #act(tag: string, assessment: TagAssessment): void {
    const { reason, severity, item } = assessment
    this.#parts.onAssessed?.(tag, assessment)
    if (severity !== 'pass') {
      this.counts.alarms++
      return this.#alarms.raise(tag, assessment)
    }
    this.counts.passed++
    if (reason === 'foreign_tag' || reason === 'unknown_tag') return
    const { deviceId, isOnline, platform, record } = this.#parts
    record({
      type: 'protection.action.completed',
      deviceId,
      protectionAction: 'authorize_exit',
      scanSource: 'exit_gate',
      ...tagNameOf(tag),
      outcome: 'confirmed',
      offline: !isOnline(),
      detail: `seen leaving: ${reason}`,
      ...(item && { itemStatus: item.status }),
    })
    const atMs = platform.clock.elapsed()
    const unit = this.#unitOf(tag, reason, atMs)
    if (unit) this.#parts.onLeft(tag, unit, this.#hasSides)
    else if (reason === 'paid' || reason === 'sold_piece') this.#departures.left(tag, atMs)
  }

  /** The unit of a receipt that lets a tag leave for this reason. */
  #unitOf(tag: string, reason: TagAssessment['reason'], atMs: number): LeavingUnit | undefined {
    const isByReceipt = reason === 'receipt' || (reason === 'paid' && this.#receipts.covers(tag, atMs, true))
    if (isByReceipt) return this.#receipts.unitOf(tag, atMs)
    return reason === 'released' ? this.#parts.released.unitOf(tag) : undefined
  }

  #tidy(): void {
    const { platform, nowMs, onGone } = this.#parts
    const atMs = platform.clock.elapsed()
    this.#presence.tidy(atMs)
    for (const { tag, leftMs } of this.#departures.removeGone(atMs)) onGone(tag, nowMs() - (atMs - leftMs))
    this.#later(TIDY_MS, () => this.#tidy())
  }

  #gatePolicy(): GatePolicy {
    return this.#parts.policy()?.gate ?? DEFAULT_GATE_POLICY
  }

  #ageSeconds(): number {
    const { items, nowMs } = this.#parts
    return items.confirmedMs === 0 ? Number.POSITIVE_INFINITY : Math.max(0, (nowMs() - items.confirmedMs) / 1_000)
  }

  #isUnpaid(tag: string): boolean {
    const item = itemOf(this.#parts.items, tag)
    return item !== undefined && GATE_BEHAVIOUR[item.status] !== 'pass'
  }

  #isPaid(tag: string): boolean {
    return itemOf(this.#parts.items, tag) !== undefined && !this.#isUnpaid(tag)
  }

  #later(ms: number, task: () => void): void {
    const cancel = this.#parts.platform.timers.after(ms, () => {
      this.#cancels.delete(cancel)
      if (!this.#isStopped) task()
    })
    this.#cancels.add(cancel)
  }
}
