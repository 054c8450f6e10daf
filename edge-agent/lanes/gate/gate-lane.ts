import type { DeviceCommand, Signal } from '../../../device-drivers/drivers/device.ts'
import { DEFAULT_GATE_POLICY, type GatePolicy } from '../../../policy/gate-policy.ts'
import { GATE_BEHAVIOUR } from '../../../policy/item-status.ts'
import { pause, type Cancel, type Platform } from '../../../policy/platform.ts'
import type { ReceiptClaims } from '../../../policy/receipts/claims.ts'
import { DEFAULT_POLICY, type ProtectionPolicy } from '../../../policy/store-policy.ts'
import type { Replica } from '../../items/replica.ts'
import { AMBER_SECONDS, GREEN_SECONDS } from '../gate-signals.ts'
import { crowd } from './crowd.ts'
import { departures } from './departures.ts'
import { deduplicator, type Zone } from './deduplicate.ts'
import type { DeviceRecord } from '../../devices/device-journal.ts'
import { itemOf, tagNameOf } from './gate-tag.ts'
import { incidents, RESOLVABLE_MS } from './incident.ts'
import { explain, judge, type Judgement } from './judge.ts'
import { lateReads } from './late-reads.ts'
import { presence, type Stray } from './presence.ts'
import type { ReleasedUnits } from './released-units.ts'
import { receiptPasses, tagsOfReceipt, type TagEntry } from './receipt-pass.ts'

/**
 *   read ─ late? ─ seen just now? ─ where to? ─▶ leaving ─ item? ─▶ judge ─▶ siren, light, nothing
 *                                                   │ being paid, or behind: ask, 250 ms at most      └─▶ journal, later
 *
 * One exit gate. Everything up to the signal happens in memory within the turn in which the read came.
 */
export interface GateLane {
  /** `tag` as `gateTagOf` names it: an EPC as it is, a UID behind a U. */
  see(tag: string, zone: Zone, seenAtMs: number): void
  /** Somebody went through. */
  passage(): void
  /** The tags that are here with a receipt, each with the entry that it takes of those whose way out is free. */
  withReceipt(claims: ReceiptClaims, unused: readonly number[]): TagEntry[]
  /** A receipt was honoured here; `unused`: its entries whose way out was free. */
  receipt(claims: ReceiptClaims, unused: readonly number[], taken?: readonly TagEntry[]): void
  /** Something is newly known of items. */
  itemsChanged(): void
  /** A unit was released, which may be one that alarmed a moment ago. */
  releasesChanged(): void
  /** What lies around the gate, for the next start. */
  strays(): Stray[]
  readonly counts: Readonly<GateCounts>
  stop(): void
}

/** Reads and tags since the start. */
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
  released: Pick<ReleasedUnits, 'covers' | 'takenOf'>
  /** Trusted time, ms. */
  nowMs(): number
  policy(): ProtectionPolicy | undefined
  isOnline(): boolean
  /** Fetches what is newer of the items. */
  ask(): Promise<void>
  signal(command: DeviceCommand): void
  /** How long an alarm sounds, s. */
  sirenSeconds: number
  record(event: DeviceRecord): void
  /** A paid tag has left and is gone; trusted ms. */
  onGone(tag: string, leftMs: number): void
  /** What lay there before the restart; undefined: this gate is new. */
  strays: readonly Stray[] | undefined
  /** For the gate's display. */
  onAlarm(tag: string, judgement: Judgement): void
}

/** Reads that are older never alarm: a reader keeps what it saw while the network was away, ms. */
const LATE_MS = 2_000
const ASK_MS = 250
const HELD_LIMIT = 200
/** A new gate learns what lies around it, ms. It alarms from its first second all the same. */
const CALIBRATION_MS = 60_000
/** A tag that was seen outside only has left when it was not seen inside so long after somebody went through, ms. */
const PASSAGE_WAIT_MS = 500
const TIDY_MS = 5_000
/** Tags that were seen so shortly before a receipt is shown are here with it, ms. */
const HERE_MS = 5_000

/** Starts a gate. */
export function openGate(parts: GateParts): GateLane {
  const { deviceId, platform, items } = parts
  const { clock, timers } = platform
  const gatePolicy = (): GatePolicy => parts.policy()?.gate ?? DEFAULT_GATE_POLICY
  const recently = deduplicator()
  const nowMs = clock.elapsed()
  const around = presence({
    strays: parts.strays ?? [],
    calibratingUntilMs: parts.strays ? nowMs : nowMs + CALIBRATION_MS,
    nowMs,
  })
  const many = crowd(gatePolicy)
  const open = incidents()
  const receipts = receiptPasses()
  const departed = departures()
  const late = lateReads(
    timers,
    (tag) => isUnpaid(tag),
    (detail) => record('late_reads', { detail }),
  )
  const held = new Set<string>()
  const secondsOf: Record<Signal, number> = { siren: parts.sirenSeconds, amber: AMBER_SECONDS, green: GREEN_SECONDS }
  const litUntil: Record<Signal, number> = { siren: 0, amber: 0, green: 0 }
  const counts: GateCounts = { reads: 0, late: 0, entering: 0, passed: 0, alarms: 0 }
  const cancels = new Set<Cancel>()
  let mutedTold = 0
  let isWatching = false
  let isStopped = false

  function later(ms: number, task: () => void): void {
    const cancel = timers.after(ms, () => {
      cancels.delete(cancel)
      if (!isStopped) task()
    })
    cancels.add(cancel)
  }

  function isUnpaid(tag: string): boolean {
    const item = itemOf(items, tag)
    return item !== undefined && GATE_BEHAVIOUR[item.status] !== 'pass'
  }

  function ageSeconds(): number {
    return items.confirmedMs === 0 ? Number.POSITIVE_INFINITY : Math.max(0, (parts.nowMs() - items.confirmedMs) / 1_000)
  }

  function judgeNow(tag: string): Judgement {
    const leaving = {
      name: tagNameOf(tag),
      item: itemOf(items, tag),
      ageSeconds: ageSeconds(),
      coveredBy: () => coveredBy(tag),
    }
    return judge(leaving, parts.policy() ?? DEFAULT_POLICY, gatePolicy())
  }

  /** Both are asked: a unit that was released and then shown on its receipt lets one tag pass, not two. */
  function coveredBy(tag: string): 'receipt' | 'released' | undefined {
    const isReleased = parts.released.covers(tag)
    if (receipts.covers(tag, clock.elapsed())) return 'receipt'
    return isReleased ? 'released' : undefined
  }

  function leave(tag: string): void {
    const judgement = judgeNow(tag)
    const mayBeOld = items.isBehind || judgement.item?.paying === true
    if (judgement.severity !== 'pass' && mayBeOld && parts.isOnline() && held.size < HELD_LIMIT) return hold(tag)
    finish(tag, judgement)
  }

  /** What the cloud knows newer may spare an alarm; it is waited for so shortly that nobody has gone. */
  function hold(tag: string): void {
    if (held.has(tag)) return
    held.add(tag)
    void Promise.race([parts.ask().catch(() => undefined), pause(timers, ASK_MS)]).then(() => {
      held.delete(tag)
      if (!isStopped) finish(tag, judgeNow(tag))
    })
  }

  function finish(tag: string, judgement: Judgement): void {
    const { reason, severity, item } = judgement
    if (severity !== 'pass') return alarm(tag, judgement)
    counts.passed++
    if (reason === 'foreign_tag' || reason === 'unknown_tag') return
    parts.record({
      type: 'protection.action.completed',
      deviceId,
      protectionAction: 'authorize_exit',
      scanSource: 'exit_gate',
      ...tagNameOf(tag),
      outcome: 'confirmed',
      offline: !parts.isOnline(),
      detail: `seen leaving: ${reason}`,
      ...(item && { itemStatus: item.status }),
    })
    const atMs = clock.elapsed()
    // The receipt has used its way out up.
    if (reason === 'paid' && !receipts.covers(tag, atMs, true)) departed.left(tag, atMs)
  }

  function alarm(tag: string, first: Judgement): void {
    const atMs = clock.elapsed()
    counts.alarms++
    const isSure = first.reason === 'not_paid' || first.reason === 'alarm_mask'
    const { isBulk, isReplenishment } = isSure ? many.add(tag, atMs) : { isBulk: false, isReplenishment: false }
    if (isReplenishment) return tellReplenishment(atMs)
    const judgement: Judgement = isBulk ? { ...first, reason: 'bulk', severity: 'siren' } : first
    if (judgement.severity === 'siren') light('siren', atMs)
    if (judgement.severity === 'notify') light('amber', atMs)
    open.raise(tag, isBulk, atMs)
    watchIncident()
    record('gate_alarm', {
      ...tagNameOf(tag),
      protectionAction: 'authorize_exit',
      detail: explain(judgement, ageSeconds()),
      ...(judgement.item && { itemStatus: judgement.item.status }),
    })
    if (judgement.severity !== 'silent') parts.onAlarm(tag, judgement)
  }

  /** Goods are being moved: one light and one word for all of them. */
  function tellReplenishment(atMs: number): void {
    if (atMs < mutedTold) return
    mutedTold = many.mutedUntilMs
    parts.signal({ kind: 'signal', signal: 'siren', seconds: 0 })
    litUntil.siren = 0
    light('amber', atMs)
    const { replenishment } = gatePolicy()
    record('gate_replenishment', {
      detail: `notify: replenishment; ${replenishment.tags} items within ${replenishment.seconds} s are goods being moved: the siren is silent for ${replenishment.muteSeconds} s`,
    })
  }

  /** Switched on again only when it is about to end. */
  function light(signal: Signal, atMs: number): void {
    const seconds = secondsOf[signal]
    if (atMs < litUntil[signal] - seconds * 500) return
    litUntil[signal] = atMs + seconds * 1_000
    parts.signal({ kind: 'signal', signal, seconds })
  }

  function record(reason: string, fields: Omit<DeviceRecord, 'type' | 'deviceId' | 'reason'>): void {
    parts.record({ type: 'protection.exception.raised', deviceId, reason, offline: !parts.isOnline(), ...fields })
  }

  /** Waits for the end of the incident. */
  function watchIncident(): void {
    if (isWatching) return
    isWatching = true
    later(RESOLVABLE_MS, function look() {
      const leftMs = open.endsMs === undefined ? 0 : open.endsMs - clock.elapsed()
      if (leftMs > 0) return later(leftMs, look)
      isWatching = false
      tidyIncident()
    })
  }

  function tidyIncident(): void {
    const over = open.tidy(clock.elapsed())
    if (over)
      record('gate_bulk_alarm', {
        detail: `siren: bulk; ${over.count} unpaid items left within ${over.seconds.toFixed(1)} s`,
      })
  }

  /** Tags that alarmed and are all right now; when all are, the alarm ends. */
  function resolve(isRight: (tag: string) => boolean, reason: 'late_status' | 'receipt' | 'release'): void {
    const { tags, isOver } = open.resolve(isRight, clock.elapsed())
    for (const tag of tags) {
      const item = itemOf(items, tag)
      record('late_status', {
        ...tagNameOf(tag),
        detail:
          reason !== 'late_status'
            ? `the alarm was needless: a ${reason} covers the item`
            : `the alarm was needless: the item is ${item?.status ?? 'gone'}`,
        ...(item && { itemStatus: item.status }),
      })
    }
    if (!isOver) return
    for (const signal of ['siren', 'amber'] as const) {
      if (litUntil[signal] > clock.elapsed()) parts.signal({ kind: 'signal', signal, seconds: 0 })
      litUntil[signal] = 0
    }
    light('green', clock.elapsed())
  }

  function tidy(): void {
    const atMs = clock.elapsed()
    around.tidy(atMs)
    for (const { tag, leftMs } of departed.takeGone(atMs)) parts.onGone(tag, parts.nowMs() - (atMs - leftMs))
    later(TIDY_MS, tidy)
  }
  later(TIDY_MS, tidy)

  return {
    see(tag, zone, seenAtMs) {
      const atMs = clock.elapsed()
      counts.reads++
      if (atMs - seenAtMs > LATE_MS) {
        counts.late++
        return late.add(tag, atMs - seenAtMs)
      }
      const seenMs = Math.min(seenAtMs, atMs)
      if (!recently.isNew(tag, zone, seenMs)) return
      departed.seen(tag, zone, seenMs)
      const movement = around.see(tag, zone, seenMs)
      if (movement === 'entering') counts.entering++
      if (movement === 'leaving') leave(tag)
    },
    passage() {
      const near = around.passed(clock.elapsed())
      if (near.length === 0) return
      later(PASSAGE_WAIT_MS, () => {
        for (const tag of near) if (around.hasLeftUnseen(tag)) leave(tag)
      })
    },
    withReceipt(claims, unused) {
      const atMs = clock.elapsed()
      const here = new Set([...around.near(HERE_MS, atMs), ...open.tags(atMs)])
      return tagsOfReceipt(
        claims,
        unused,
        [...here].map((tag) => ({ tag, isPaid: itemOf(items, tag) !== undefined && !isUnpaid(tag) })),
      )
    },
    receipt(claims, unused, taken) {
      // A released tag has its entry already, and leaves it to no other.
      receipts.show(claims, unused, clock.elapsed(), [...(taken ?? []), ...parts.released.takenOf(claims.cti)])
      departed.forget((tag) => receipts.covers(tag, clock.elapsed(), true))
      resolve((tag) => receipts.covers(tag, clock.elapsed()), 'receipt')
    },
    itemsChanged: () => resolve((tag) => itemOf(items, tag) !== undefined && !isUnpaid(tag), 'late_status'),
    releasesChanged: () => resolve((tag) => parts.released.covers(tag), 'release'),
    strays: () => around.strays(),
    counts,
    stop() {
      isStopped = true
      for (const cancel of cancels) cancel()
      late.stop()
    },
  }
}
