import type { AntennaSides } from '../../../device-drivers/kit/driver.ts'
import type { TagRead, TagName } from '../../../device-drivers/kit/device.ts'
import type { Cancel, Platform } from '../../../policy/platform.ts'
import type { ItemIdentifiers } from '../../../policy/item-identifiers.ts'
import type { ReceiptClaims } from '../../../policy/receipts/receipt-claims.ts'
import type { ProtectionPolicy } from '../../../policy/store-policy.ts'
import type { ClaimExit, LeavingUnit } from '../../decisions/claim-exit.ts'
import type { SendSignal } from '../../devices/devices.ts'
import type { ItemFile } from '../../items/item-file.ts'
import type { Replica } from '../../items/replica.ts'
import type { Log } from '../../log.ts'
import { type Zone, gateTagOf, tagNameOf } from './tags/deduplicate.ts'
import type { DeviceJournal } from '../../devices/device-journal.ts'
import { GateLane, type GateCounts } from './gate-lane.ts'
import type { TagAssessment } from './assess-tag.ts'
import type { TagEntry } from './accepted-receipts.ts'
import { HandledAlarms, type HandledAlarmsParts } from './handled-alarms.ts'
import { openWalkRecorder, type WalkRecorder } from './walk-recorder.ts'
import { ReleasedUnits, type ReleasedUnit } from './released-units.ts'
import type { SoldPieces } from './sold-pieces.ts'
import { LedgerFull } from '../../ledger/file/commit.ts'
import type { Ledger } from '../../ledger/ledger.ts'

/**
 * Claims the exit rights of tags that have left, one tag at a time. If a claim may succeed later, retries it every
 * 15 s until 4½ minutes after the exit. Examples are an unreachable cloud, a leased right and a full disk. Requests and
 * signals never wait for these claims.
 */
interface ExitClaims {
  /** Adds a tag to the queue. `leftMs`: trusted time at which the tag left. `unit`: what let it leave. */
  add(deviceId: string, tag: TagName, leftMs: number, unit: LeavingUnit | undefined): void
  /** The item of a tag changed: if it leaves again, it is perhaps for another sale. */
  forget(tag: TagName): void
  /** Drops waiting claims. Resolves when the running claim is durable. */
  stop(): Promise<void>
}

interface ExitClaimsParts {
  platform: Platform
  /** Trusted time, ms. */
  nowMs(): number
  claim: ClaimExit
  log: Log
}

const RETRY_MS = 15_000
/** Maximum time between exit and claim, ms. The cloud records older requests but does not grant them (ADR releases). */
const CLAIM_TIMEOUT_MS = 270_000
const WAITING_LIMIT = 2_000
/** Time in which a tag that leaves again causes no second claim, ms. */
const REMEMBERED_MS = 3_600_000
const REMEMBERED_LIMIT = 10_000

/** What a claim uses up: a tag may leave again for another sale. */
const nameOf = (tag: TagName, unit: LeavingUnit | undefined) =>
  `${gateTagOf(tag)} ${unit ? `${Buffer.from(unit.cti).toString('hex')} ${unit.ordinal}` : ''}`

interface Waiting {
  deviceId: string
  tag: TagName
  leftMs: number
  unit: LeavingUnit | undefined
}

/** Opens an empty queue. */
function openExitClaims({ platform, nowMs, claim, log }: ExitClaimsParts): ExitClaims {
  const { clock, timers } = platform
  let waiting: Waiting[] = []
  const done = new Map<string, number>()
  let underWay: Promise<void> | undefined
  let timer: Cancel | undefined
  let isStopped = false

  function remember(tag: string): void {
    const [oldest] = done.keys()
    if (done.size >= REMEMBERED_LIMIT && oldest !== undefined) done.delete(oldest)
    done.delete(tag)
    done.set(tag, clock.elapsed())
  }

  const isDone = (name: string) => clock.elapsed() - (done.get(name) ?? Number.NEGATIVE_INFINITY) < REMEMBERED_MS

  async function work(): Promise<void> {
    const later: Waiting[] = []
    for (let next = waiting.shift(); next && !isStopped; next = waiting.shift()) {
      if (nowMs() - next.leftMs > CLAIM_TIMEOUT_MS || isDone(nameOf(next.tag, next.unit))) continue
      // If the claim throws, the agent retries it later. A full disk is expected, so that error is not logged.
      const became = await claim(next.deviceId, next.tag, next.leftMs, next.unit).catch((error: unknown) => {
        if (!(error instanceof LedgerFull))
          log.error({ err: error, deviceId: next.deviceId }, 'the exit right of a tag could not be claimed')
        return 'later' as const
      })
      if (became === 'later') later.push(next)
      else remember(nameOf(next.tag, next.unit))
    }
    waiting = [...later, ...waiting]
  }

  function start(): void {
    if (underWay || isStopped) return
    timer?.()
    timer = undefined
    underWay = work().finally(() => {
      underWay = undefined
      if (waiting.length > 0 && !isStopped) timer ??= timers.after(RETRY_MS, start)
    })
  }

  return {
    add(deviceId, tag, leftMs, unit) {
      if (isStopped || waiting.length >= WAITING_LIMIT || isDone(nameOf(tag, unit))) return
      waiting.push({ deviceId, tag, leftMs, unit })
      start()
    },
    forget: (tag) => void done.delete(nameOf(tag, undefined)),
    async stop() {
      isStopped = true
      timer?.()
      waiting = []
      await underWay
    },
  }
}

interface GatesParts extends Pick<HandledAlarmsParts, 'onAwaited' | 'onHandled' | 'operatorName'> {
  platform: Platform
  ledger: HandledAlarmsParts['ledger'] & { claims: Pick<Ledger['claims'], 'tagsOf'> }
  items: Replica
  memory: Pick<ItemFile, 'stationaryTags' | 'saveStationaryTags' | 'releases' | 'saveReleases'>
  journal: DeviceJournal
  pieces: Pick<SoldPieces, 'covers' | 'end' | 'hasPassed' | 'settled'>
  nowMs(): number
  policy(): ProtectionPolicy | undefined
  isOnline(): boolean
  syncItems(): Promise<void>
  signal: SendSignal
  /** Undefined if the reader cannot locate tags. */
  antennasOf(sourceId: string): AntennaSides | undefined
  /** How long an alarm sounds at a gate, s. */
  sirenSecondsOf(deviceId: string): number
  /** Uses up the exit right of a tag that has left. */
  claimExit: ClaimExit
  /** True if the sale is void, its receipt was revoked, or all its goods came back. */
  isSaleOver(saleKey: string): boolean
  /** Called when a unit of a receipt lets a tag leave, so that it lets no other one leave at other agents. */
  onLeft(deviceId: string, tag: TagName, unit: LeavingUnit): void
  onAlarm(deviceId: string, tag: string, assessment: TagAssessment, eventId: string | undefined): void
  log: Log
}

const SAVE_MS = 30_000
/** Paid tags that left and that releases of receipts are compared with. */
const LEFT_LIMIT = 5_000

/** A gate, and its stationary tags as last saved (JSON). */
interface KnownGate {
  lane: GateLane
  saved: string
}

/**
 * The exit gates of this agent. Reads, receipts and releases go to gate-lane.ts, which switches lights and siren and
 * records alarms. `openExitClaims` claims the exit rights of paid tags that have left. A gate starts with its first read
 * or receipt.
 */
export class Gates {
  /** The alarms of the gates, for the operators at their displays. */
  readonly alarms: HandledAlarms
  /** Records walk tests. */
  readonly walks: WalkRecorder
  readonly #parts: GatesParts
  readonly #gates = new Map<string, KnownGate>()
  readonly #zones = new WeakMap<AntennaSides, ReadonlyMap<number, Zone>>()
  readonly #exits: ExitClaims
  readonly #released: ReleasedUnits
  /** EPCs of paid tags that left, with their times, oldest first. */
  readonly #paidLeft = new Map<string, number>()
  readonly #stopListening: () => void
  #saving: Cancel | undefined

  constructor(parts: GatesParts) {
    const { platform, items, memory, nowMs, claimExit, log } = parts
    this.#parts = parts
    this.alarms = new HandledAlarms(parts)
    this.walks = openWalkRecorder(platform.clock)
    this.#exits = openExitClaims({ platform, nowMs, claim: claimExit, log })
    this.#released = new ReleasedUnits({
      nowMs,
      timers: platform.timers,
      memory,
      hasPassed: (saleKey) => parts.pieces.hasPassed(saleKey),
      isOver: parts.isSaleOver,
      safely: (work) => this.#safely(work),
    })
    this.#stopListening = items.onChange((entries) => {
      this.#released.itemsChanged(entries)
      for (const { epc, tagUid } of entries) {
        if (epc !== undefined) this.#exits.forget({ epc })
        if (tagUid !== undefined) this.#exits.forget({ tagUid })
      }
      for (const { lane } of this.#gates.values()) lane.itemsChanged()
    })
  }

  /** Starts the recording of one walk of a walk test. The gate goes on watching all tags. */
  startWalk(deviceId: string, seconds: number): void {
    this.walks.start(deviceId, seconds)
    this.#gates.get(deviceId)?.lane.forgetDepartures()
  }

  /** Handles reads of a gate. `sourceId`: the reader. */
  onReads(deviceId: string, sourceId: string, reads: readonly TagRead[]): void {
    const lane = this.#laneOf(deviceId)
    const zones = this.#zonesOf(sourceId)
    for (const { tag, antenna, seenAtMs } of reads) {
      this.walks.onRead(deviceId, gateTagOf(tag), antenna)
      const zone = zones && antenna !== undefined ? zones.get(antenna) : 'none'
      // Ignores antennas that are neither inside nor outside.
      if (zone !== undefined) lane.see(gateTagOf(tag), zone, seenAtMs)
    }
  }

  onPassage(deviceId: string): void {
    this.#gates.get(deviceId)?.lane.passage()
  }

  /** Nearby tags that match unused entries of a receipt, each with its entry. */
  nearbyTagsOf(deviceId: string, claims: ReceiptClaims, unused: readonly number[]): TagEntry[] {
    return this.#gates.get(deviceId)?.lane.nearbyTagsOf(claims, unused) ?? []
  }

  /** True if an agent of the store has just released the tag, so that it passes this gate without an alarm. */
  isReleased(deviceId: string, { epc, tagUid }: ItemIdentifiers): boolean {
    const tag = epc !== undefined ? gateTagOf({ epc }) : tagUid !== undefined ? gateTagOf({ tagUid }) : undefined
    return tag !== undefined && this.#laneOf(deviceId).isReleased(tag)
  }

  onReceipt(deviceId: string, claims: ReceiptClaims, unused: readonly number[], taken: readonly TagEntry[]): void {
    const { pieces } = this.#parts
    const saleKey = Buffer.from(claims.cti).toString('hex')
    this.#laneOf(deviceId).acceptReceipt(claims, unused, taken)
    // This receipt covers the tags of its goods. Without this, the pieces of its sale would cover as many again.
    if (claims.entries && claims.entries.length > 0) pieces.end(saleKey)
  }

  /** Handles a notice of another agent: a unit of a receipt has let this tag leave there. */
  onLeftElsewhere(unit: LeavingUnit, tag: TagName): void {
    this.#released.left(unit, gateTagOf(tag), true)
  }

  /** Handles a verified release of this agent or of another agent of the store (`ReleasedUnit`). */
  onReleased(unit: ReleasedUnit): void {
    if (!this.#released.add(unit)) return
    for (const { lane } of this.#gates.values()) lane.released(unit)
  }

  /** EPCs of paid tags that left since this time, trusted ms, as far as this agent has seen since its start. */
  leftSince(sinceMs: number): string[] {
    return [...this.#paidLeft].flatMap(([epc, leftMs]) => (leftMs > sinceMs ? [epc] : []))
  }

  #notePaid(tag: string, { reason }: TagAssessment): void {
    const name = tagNameOf(tag)
    if (reason !== 'paid' || !('epc' in name)) return
    const [oldest] = this.#paidLeft.keys()
    if (this.#paidLeft.size >= LEFT_LIMIT && oldest !== undefined) this.#paidLeft.delete(oldest)
    this.#paidLeft.delete(name.epc)
    this.#paidLeft.set(name.epc, this.#parts.nowMs())
  }

  counts(): ReadonlyMap<string, GateCounts> {
    return new Map([...this.#gates].map(([deviceId, { lane }]) => [deviceId, { ...lane.counts }]))
  }

  async stop(): Promise<void> {
    this.#saving?.()
    this.#stopListening()
    this.#released.stop()
    this.#save()
    for (const { lane } of this.#gates.values()) lane.stop()
    await this.#exits.stop()
    await this.#parts.pieces.settled()
    await this.#parts.journal.flush()
  }

  #laneOf(deviceId: string): GateLane {
    const known = this.#gates.get(deviceId)
    if (known) return known.lane
    const { memory, platform, signal, sirenSecondsOf, journal, onAlarm } = this.#parts
    const stationaryTags = this.#safely(() => memory.stationaryTags(deviceId))
    const lane = new GateLane({
      ...this.#parts,
      deviceId,
      stationaryTags,
      released: this.#released,
      signal: (command) => signal(deviceId, command),
      sirenSeconds: sirenSecondsOf(deviceId),
      record: journal.add,
      onLeft: (tag, unit, isSure) => {
        this.#released.left(unit, tag, false)
        this.#parts.onLeft(deviceId, tagNameOf(tag), unit)
        if (isSure) this.#exits.add(deviceId, tagNameOf(tag), this.#parts.nowMs(), unit)
      },
      onGone: (tag, leftMs) => this.#exits.add(deviceId, tagNameOf(tag), leftMs, undefined),
      tagsOfReceipt: (cti) => this.#tagsOfReceipt(cti),
      onAlarm: (tag, assessment, eventId) => {
        const name = tagNameOf(tag)
        if (eventId !== undefined) this.alarms.raised(deviceId, eventId, 'epc' in name ? name.epc : name.tagUid)
        onAlarm(deviceId, tag, assessment, eventId)
      },
      onAssessed: (tag, assessment) => {
        this.#notePaid(tag, assessment)
        this.walks.onAssessed(deviceId, tag, assessment)
      },
    })
    this.#gates.set(deviceId, { lane, saved: stationaryTags ? JSON.stringify(stationaryTags) : '' })
    this.#saving ??= platform.timers.after(SAVE_MS, () => this.#saveAll())
    return lane
  }

  #tagsOfReceipt(cti: Uint8Array): TagEntry[] {
    const units = this.#parts.ledger.claims.tagsOf(Buffer.from(cti).toString('hex'))
    return [
      ...units.map(({ ordinal, epc }) => ({ tag: gateTagOf({ epc }), entry: ordinal })),
      ...this.#released.tagsOfReceipt(cti),
    ]
  }

  #zonesOf(sourceId: string): ReadonlyMap<number, Zone> | undefined {
    const antennas = this.#parts.antennasOf(sourceId)
    if (!antennas) return undefined
    const known = this.#zones.get(antennas)
    if (known) return known
    const zones = new Map<number, Zone>([
      ...antennas.inside.map((n) => [n, 'inside'] as const),
      ...antennas.outside.map((n) => [n, 'outside'] as const),
    ])
    this.#zones.set(antennas, zones)
    return zones
  }

  #safely<T>(work: () => T): T | undefined {
    try {
      return work()
    } catch (error) {
      this.#parts.log.error(
        { err: error },
        'the state of a gate could not be stored: the gate learns it again after a restart',
      )
      return undefined
    }
  }

  /** Saves the stationary tags of each gate if they changed. */
  #save(): void {
    for (const [deviceId, gate] of this.#gates) {
      const stationaryTags = gate.lane.stationaryTags()
      const text = JSON.stringify(stationaryTags)
      if (text === gate.saved) continue
      gate.saved = text
      this.#safely(() => this.#parts.memory.saveStationaryTags(deviceId, stationaryTags))
    }
  }

  #saveAll(): void {
    this.#save()
    this.#saving = this.#parts.platform.timers.after(SAVE_MS, () => this.#saveAll())
  }
}
