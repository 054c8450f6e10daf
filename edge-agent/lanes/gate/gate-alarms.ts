import type { DeviceCommand, Signal, TagName } from '../../../device-drivers/kit/device.ts'
import type { ProtectionEvent } from '../../../policy/protection-events.ts'
import type { ExceptionKind, ItemStatus } from '../../../policy/vocabulary.ts'
import type { GatePolicy } from '../../../policy/store-policy.ts'
import type { Clock } from '../../../policy/platform.ts'
import type { DeviceJournal, DeviceRecord, EventBudget } from '../../devices/device-journal.ts'
import type { KnownItem } from '../../items/item-table.ts'
import { AMBER_SECONDS, GREEN_SECONDS } from '../gate-signals.ts'
import { explain, readExplained, type GateReason, type TagAssessment } from './assess-tag.ts'
import { tagNameOf } from './tags/deduplicate.ts'
import type { Replica } from '../../items/replica.ts'
import type { ScanResult } from '../scan-result.ts'

interface AlarmFacts {
  readonly isLoud: boolean
  readonly isRecalled: boolean
  readonly itemStatus: ItemStatus | undefined
  readonly offline: boolean
  readonly eventId: string | undefined
}

/** Makes the result that the gate's display shows for an alarm, in the form of a denied request. */
export function alarmResult(
  tag: string,
  { severity, item }: TagAssessment,
  {
    offline,
    eventId,
    items,
  }: { offline: boolean; eventId: string | undefined; items: Pick<Replica, 'productOf' | 'pictureOf'> },
): ScanResult {
  const isLoud = severity === 'siren'
  const facts = { isLoud, isRecalled: item?.recalled === true, itemStatus: item?.status, offline, eventId }
  return resultOf(tagNameOf(tag), facts, items)
}

/**
 * Makes the same result from the event of the alarm, after a restart of the agent. Undefined if the gate gave no signal,
 * or if the event names no tag.
 */
export function storedAlarmResult(
  { eventId, epc, tagUid, itemStatus, detail = '', offline = false, emergency = false }: ProtectionEvent,
  items: Pick<Replica, 'productOf' | 'pictureOf'>,
): ScanResult | undefined {
  const name = epc !== undefined ? { epc } : tagUid !== undefined ? { tagUid } : undefined
  // An alarm of a scanned tag has no severity. It is loud.
  const { severity = 'siren', reason } = readExplained(detail) ?? {}
  if (!name || severity === 'silent') return undefined
  const facts = { isLoud: severity === 'siren', isRecalled: reason === 'recalled', itemStatus, offline, eventId }
  return { ...resultOf(name, facts, items), ...(emergency && { emergency: true as const }) }
}

function resultOf(
  name: TagName,
  { isLoud, isRecalled, itemStatus, offline, eventId }: AlarmFacts,
  items: Pick<Replica, 'productOf' | 'pictureOf'>,
): ScanResult & { kind: 'decision' } {
  const product = 'epc' in name ? items.productOf('epc', name.epc) : items.productOf('tagUid', name.tagUid)
  const picture = 'epc' in name ? items.pictureOf('epc', name.epc) : items.pictureOf('tagUid', name.tagUid)
  return {
    kind: 'decision',
    item: 'epc' in name ? name.epc : name.tagUid,
    ...(product !== undefined && { product }),
    ...(picture !== undefined && { picture }),
    ...(eventId !== undefined && { alarmId: eventId }),
    answer: {
      authorized: false,
      action: 'authorize_exit',
      expiresAt: null,
      itemCount: 0,
      remaining: 0,
      eventId: null,
      reason: isRecalled ? 'recalled' : isLoud ? 'item_not_paid' : 'item_unknown',
      offline,
      outcome: null,
      ...(isLoud && itemStatus && { itemStatus }),
    },
  }
}

/**
 * Groups the alarms of people who leave a gate together. An incident starts with an alarm. The incident ends when each
 * of its tags is resolved (paid, or covered by a receipt or release), or 10 s after its last alarm.
 */
interface Incidents {
  /** Adds an alarm. */
  raise(tag: string, isBulk: boolean, atMs: number): void
  /**
   * Removes and returns the tags of the last 10 s that `isResolved` accepts. `isOver`: all tags of the incident are
   * resolved.
   */
  resolve(isResolved: (tag: string) => boolean, atMs: number): { tags: string[]; isOver: boolean }
  /** Tags that caused an alarm within the last 10 s and are still unresolved. */
  tags(atMs: number): string[]
  /**
   * Ends the incident 10 s after its last alarm. If the ended incident was a bulk alarm, returns its number of tags and
   * its duration.
   */
  tidy(atMs: number): { count: number; seconds: number } | undefined
  /** Earliest time at which `tidy` ends the incident, ms. */
  readonly endsMs: number | undefined
}

/** Time after an alarm in which a payment, receipt or release ends the alarm, ms. */
const RESOLVABLE_MS = 10_000
const TAGS_LIMIT = 1_000

interface Incident {
  startedMs: number
  lastMs: number
  isBulk: boolean
  /** Unresolved tags with the time of their alarm, ms. */
  open: Map<string, number>
  count: number
}

/** The incidents of one gate. At most one is open. */
function incidents(): Incidents {
  let current: Incident | undefined
  return {
    raise(tag, isBulk, atMs) {
      current ??= { startedMs: atMs, lastMs: atMs, isBulk: false, open: new Map(), count: 0 }
      current.lastMs = atMs
      current.isBulk ||= isBulk
      if (!current.open.has(tag)) current.count++
      if (current.open.size < TAGS_LIMIT) current.open.set(tag, atMs)
    },
    resolve(isResolved, atMs) {
      if (!current) return { tags: [], isOver: false }
      const tags = [...current.open].flatMap(([tag, at]) =>
        atMs - at <= RESOLVABLE_MS && isResolved(tag) ? [tag] : [],
      )
      for (const tag of tags) current.open.delete(tag)
      const isOver = tags.length > 0 && current.open.size === 0
      if (isOver) current = undefined
      return { tags, isOver }
    },
    tags: (atMs) => [...(current?.open ?? [])].flatMap(([tag, at]) => (atMs - at <= RESOLVABLE_MS ? [tag] : [])),
    tidy(atMs) {
      if (!current || atMs - current.lastMs < RESOLVABLE_MS) return undefined
      const { isBulk, count, startedMs, lastMs } = current
      current = undefined
      return isBulk ? { count, seconds: (lastMs - startedMs) / 1_000 } : undefined
    },
    get endsMs() {
      return current && current.lastMs + RESOLVABLE_MS
    },
  }
}

/**
 * Counts the distinct unpaid tags that left within the time windows of the policy. If many leave, they are probably
 * stolen. If very many sellable items leave, staff are probably moving goods.
 */
interface BulkDetector {
  /**
   * Counts a leaving tag. `isMovable`: goods that staff may be moving. `count`: tags that left within the time for bulk
   * alarms.
   */
  add(tag: string, atMs: number, isMovable: boolean): { isBulk: boolean; count: number; isReplenishment: boolean }
  /** Time until which the siren stays silent because staff move goods, ms; 0 at first. */
  readonly mutedUntilMs: number
}

/** Maximum items in memory. No policy needs so many. */
const LIMIT = 10_000

/** Makes the detector of one gate. The detector reads `policy` again for each item. */
export function bulkDetector(policy: () => GatePolicy): BulkDetector {
  /** Leaving tags; oldest first. */
  const departures = new Map<string, { atMs: number; isMovable: boolean }>()
  let mutedUntilMs = 0

  function within(seconds: number, atMs: number, isMovable = false): number {
    let count = 0
    for (const left of departures.values())
      if (atMs - left.atMs <= seconds * 1_000 && (left.isMovable || !isMovable)) count++
    return count
  }

  function dropOld(atMs: number, seconds: number): void {
    for (const [tag, left] of departures) {
      if (atMs - left.atMs <= seconds * 1_000 && departures.size <= LIMIT) return
      departures.delete(tag)
    }
  }

  return {
    add(tag, atMs, isMovable) {
      const { bulk, replenishment } = policy()
      departures.delete(tag)
      departures.set(tag, { atMs, isMovable })
      dropOld(atMs, Math.max(bulk.seconds, replenishment.seconds))
      const count = within(bulk.seconds, atMs)
      const moved = replenishment.tags > 0 && within(replenishment.seconds, atMs, true) >= replenishment.tags
      if (moved) mutedUntilMs = atMs + replenishment.muteSeconds * 1_000
      return { isBulk: count >= bulk.tags, count, isReplenishment: isMovable && (moved || atMs < mutedUntilMs) }
    },
    get mutedUntilMs() {
      return mutedUntilMs
    },
  }
}

interface GateAlarmsParts {
  deviceId: string
  clock: Pick<Clock, 'elapsed'>
  /** How long an alarm sounds, s. */
  sirenSeconds: number
  gatePolicy(): GatePolicy
  isOnline(): boolean
  /** Age of the replica, s. */
  ageSeconds(): number
  itemOf(tag: string): KnownItem | undefined
  /** Runs `task` later, unless the gate has stopped. */
  later(ms: number, task: () => void): void
  signal(command: DeviceCommand): void
  record: DeviceJournal['add']
  /** Shows an alarm on the gate's display. `eventId`: event of the alarm; undefined if it was not stored. */
  onAlarm(tag: string, assessment: TagAssessment, eventId: string | undefined): void
}

/** Reasons that a newer status of the item does not change. Only these alarms may be bulk. */
const SURE_REASONS: ReadonlySet<GateReason> = new Set(['recalled', 'not_paid', 'alarm_mask'])

/**
 *   unpaid tag leaves ─┬─ staff move goods, and it is sellable ─▶ one amber light and one event for all
 *                      └─ else ─▶ siren or amber, event ─▶ incident ─┬─ all its tags are resolved ─▶ siren off, green
 *                                                                    └─ 10 s without an alarm ─▶ incident ends
 *
 * The alarms, lights and siren of one gate.
 */
export class GateAlarms {
  readonly #parts: GateAlarmsParts
  readonly #bulk: BulkDetector
  readonly #incidents: Incidents = incidents()
  readonly #secondsOf: Readonly<Record<Signal, number>>
  readonly #litUntil: Record<Signal, number> = { siren: 0, amber: 0, green: 0 }
  #mutedReportedUntilMs = 0
  /** Until this time the siren sounds for a tag that staff do not move, ms: moved goods do not end it. */
  #firmUntilMs = 0
  #isWatching = false

  constructor(parts: GateAlarmsParts) {
    this.#parts = parts
    this.#bulk = bulkDetector(parts.gatePolicy)
    this.#secondsOf = { siren: parts.sirenSeconds, amber: AMBER_SECONDS, green: GREEN_SECONDS }
  }

  raise(tag: string, first: TagAssessment): void {
    const atMs = this.#parts.clock.elapsed()
    const isSure = SURE_REASONS.has(first.reason)
    // Tags without an item cost nothing, and staff move no recalled or held goods: they silence no gate, and always alarm.
    const isMovable = first.reason === 'not_paid' && first.item?.status === 'sellable'
    const { isBulk, isReplenishment } = isSure
      ? this.#bulk.add(tag, atMs, isMovable)
      : { isBulk: false, isReplenishment: false }
    if (isReplenishment) return this.#reportReplenishment(atMs)
    const assessment: TagAssessment = isBulk ? { ...first, reason: 'bulk', severity: 'siren' } : first
    if (assessment.severity === 'siren') this.#light('siren', atMs)
    if (assessment.severity === 'siren' && !isMovable) this.#firmUntilMs = this.#litUntil.siren
    if (assessment.severity === 'notify') this.#light('amber', atMs)
    this.#incidents.raise(tag, isBulk, atMs)
    this.#watchIncident()
    const { item } = assessment
    const eventId = this.record(
      'gate_alarm',
      {
        ...tagNameOf(tag),
        protectionAction: 'authorize_exit',
        detail: explain(assessment, this.#parts.ageSeconds()),
        ...(item && { itemStatus: item.status }),
      },
      item ? 'alarm' : 'unregistered',
    )
    if (assessment.severity !== 'silent') this.#parts.onAlarm(tag, assessment, eventId)
  }

  /**
   * Ends the alarms of tags that `isResolved` accepts. If no unresolved tag is left, switches the siren off and green
   * on.
   */
  resolve(isResolved: (tag: string) => boolean, reason: 'late_status' | 'receipt' | 'release'): void {
    const { clock, itemOf, signal } = this.#parts
    const { tags, isOver } = this.#incidents.resolve(isResolved, clock.elapsed())
    for (const tag of tags) {
      const item = itemOf(tag)
      const why = reason === 'late_status' ? `the item is ${item?.status ?? 'gone'}` : `a ${reason} covers the item`
      this.record('late_status', {
        ...tagNameOf(tag),
        detail: `the alarm was needless: ${why}`,
        ...(item && { itemStatus: item.status }),
      })
    }
    if (!isOver) return
    for (const lit of ['siren', 'amber'] as const) {
      if (this.#litUntil[lit] > clock.elapsed()) signal({ kind: 'signal', signal: lit, seconds: 0 })
      this.#litUntil[lit] = 0
    }
    this.#light('green', clock.elapsed())
  }

  /** Tags that caused an alarm within the last 10 s and are still unresolved. */
  tags(atMs: number): string[] {
    return this.#incidents.tags(atMs)
  }

  /** Records an exception of this gate. Returns the id of its event. */
  record(
    reason: ExceptionKind,
    fields: Omit<DeviceRecord, 'type' | 'deviceId' | 'reason'>,
    budget?: EventBudget,
  ): string | undefined {
    const { deviceId, isOnline } = this.#parts
    return this.#parts.record(
      { type: 'protection.exception.raised', deviceId, reason, offline: !isOnline(), ...fields },
      budget,
    )
  }

  /** Reports only once that staff are moving goods: siren off, amber on, one event. */
  #reportReplenishment(atMs: number): void {
    if (atMs < this.#mutedReportedUntilMs) return
    this.#mutedReportedUntilMs = this.#bulk.mutedUntilMs
    if (this.#firmUntilMs <= atMs) {
      this.#parts.signal({ kind: 'signal', signal: 'siren', seconds: 0 })
      this.#litUntil.siren = 0
    }
    this.#light('amber', atMs)
    const { replenishment } = this.#parts.gatePolicy()
    this.record('gate_replenishment', {
      detail: `notify: replenishment; ${replenishment.tags} items within ${replenishment.seconds} s are goods being moved: the siren is silent for ${replenishment.muteSeconds} s`,
    })
  }

  /** Switches a signal on if it is off, or if at most half of its duration remains. */
  #light(signal: Signal, atMs: number): void {
    const seconds = this.#secondsOf[signal]
    if (atMs < this.#litUntil[signal] - seconds * 500) return
    this.#litUntil[signal] = atMs + seconds * 1_000
    this.#parts.signal({ kind: 'signal', signal, seconds })
  }

  #watchIncident(): void {
    if (this.#isWatching) return
    this.#isWatching = true
    this.#parts.later(RESOLVABLE_MS, () => this.#checkIncident())
  }

  /** Ends the incident if it is over; otherwise checks again later. */
  #checkIncident(): void {
    const { clock, later } = this.#parts
    const { endsMs } = this.#incidents
    const leftMs = endsMs === undefined ? 0 : endsMs - clock.elapsed()
    if (leftMs > 0) return later(leftMs, () => this.#checkIncident())
    this.#isWatching = false
    const over = this.#incidents.tidy(clock.elapsed())
    if (over)
      this.record('gate_bulk_alarm', {
        detail: `siren: bulk; ${over.count} unpaid items left within ${over.seconds.toFixed(1)} s`,
      })
  }
}
