import { itemHash, openAuthorization } from '../../../policy/documents/authorization.ts'
import type { ItemEntry } from '../../../policy/documents/item-documents.ts'
import type { TagName } from '../../../device-drivers/kit/device.ts'
import type { Cancel, Timers } from '../../../policy/platform.ts'
import type { ItemFile, StoredRelease } from '../../items/item-file.ts'
import { tagNameOf } from './tags/deduplicate.ts'
import type { LeavingUnit } from '../../decisions/claim-exit.ts'
import { entriesOf, type TagEntry } from './accepted-receipts.ts'
import {
  SILENT_SECONDS,
  type Announced,
  type AnnouncedExit,
  type AnnouncedRelease,
} from '../../../policy/documents/home-messages.ts'
import { canPerform } from '../../../policy/devices.ts'
import { normaliseIdentifiers } from '../../../policy/item-identifiers.ts'
import { openReceipt } from '../../../policy/receipts/receipt-token.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { validationTime, type AgentClock } from '../../trust/time/clock.ts'
import type { Trust } from '../../trust/trust.ts'

/** One released unit. `tag`: the name from `gateTagOf`, if the tag is known. */
export interface ReleasedUnit {
  readonly proof: UnitProof
  /** Until this time the gates stay silent for the unit, trusted ms. */
  readonly untilMs: number
  readonly tag?: string
  /** True if this agent released it: then it knew the tags that had passed for pieces of the sale. */
  readonly isOwn?: boolean
}

/** What identifies the unit: an entry of a receipt, or the item hash of an authorization token. */
type UnitProof =
  | { kind: 'receipt'; cti: Uint8Array; ordinal: number; exp: number; entry: string }
  | { kind: 'token'; aud: string; jti: string; ith: string }

interface ReleasedUnitsParts {
  nowMs(): number
  timers: Timers
  /** File in which the released units survive a restart of the agent. */
  memory: Pick<ItemFile, 'releases' | 'saveReleases'>
  /** True if a tag passed a gate for a piece of this sale, hex: then its goods leave by product. */
  hasPassed(saleKey: string): boolean
  /** True if the sale is void, its receipt was revoked, or all its goods came back. */
  isOver(saleKey: string): boolean
  safely<T>(work: () => T): T | undefined
}

interface StoredUnit extends ReleasedUnit {
  /** True if the cloud has sent a newer status of the item. The unit then covers no tag and cannot be added again. */
  readonly isSuperseded?: true
}

/** Maximum units in memory; a further unit replaces the oldest. A store releases far fewer units within an hour. */
const UNITS_LIMIT = 2_000
/** Maximum units without a tag. Before an alarm the gate compares the tag with each of them, which takes a few ms. */
const OPEN_LIMIT = 500
/** Delay before changed units are saved together, ms. */
const SAVE_MS = 1_000

/**
 * Returns a function that checks whether the tag can belong to the unit that a proof identifies. The tag matches by its
 * EPC or UID, or, for a receipt, by the product in its EPC.
 */
function unitsThatFit(tag: string): (proof: UnitProof) => boolean {
  const name = tagNameOf(tag)
  const entries = entriesOf(tag)
  return (proof) => {
    if (proof.kind === 'receipt') return entries(proof.cti).includes(proof.entry)
    const { aud, jti, ith } = proof
    return ith === ('epc' in name ? itemHash(aud, jti, 'epc', name.epc) : itemHash(aud, jti, 'tagUid', name.tagUid))
  }
}

/**
 * The units that agents of this store released, for all gates of this agent. The tag of a unit leaves without an alarm.
 * If the release named no tag, the first matching tag takes the unit. While the agent is offline, released units
 * replace the item statuses that the agent does not receive. Once the cloud sends a newer status, that status decides.
 */
export class ReleasedUnits {
  readonly #parts: ReleasedUnitsParts
  readonly #units = new Map<string, StoredUnit>()
  readonly #byTag = new Map<string, string>()
  /** Units without a tag, oldest first. */
  readonly #open = new Set<string>()
  readonly #dirty = new Set<string>()
  #saving: Cancel | undefined

  constructor(parts: ReleasedUnitsParts) {
    const { memory, nowMs, safely } = parts
    this.#parts = parts
    const stored = safely(() => memory.releases(nowMs()).map(({ id, text }) => ({ id, unit: unitOf(text) })))
    for (const { id, unit } of stored ?? []) this.#put(id, unit)
  }

  /** Adds a verified unit. Returns false for a known unit, which keeps its first tag. */
  add(unit: ReleasedUnit): boolean {
    const id = idOf(unit.proof)
    const known = this.#units.get(id)
    if (known && known.untilMs > this.#parts.nowMs()) return false
    this.#makeRoom()
    this.#change(id, unit)
    return true
  }

  /**
   * True if a unit that was released since `sinceMs` covers the tag: then its goods came back. A unit without a tag takes
   * the first tag that matches.
   */
  covers(tag: string, sinceMs = 0): boolean {
    const isSince = ({ untilMs }: StoredUnit) => untilMs - SILENT_SECONDS * 1_000 >= sinceMs
    const own = this.#units.get(this.#byTag.get(tag) ?? '')
    if (own && this.#isActive(own) && isSince(own)) return true
    const fits = unitsThatFit(tag)
    for (const id of this.#open) {
      const unit = this.#units.get(id)
      if (!unit || !this.#isActive(unit) || !isSince(unit) || !fits(unit.proof)) continue
      if (unit.proof.kind === 'receipt' && !unit.isOwn && this.#parts.hasPassed(hexOf(unit.proof.cti))) continue
      this.#change(id, { ...unit, tag })
      return true
    }
    return false
  }

  /** The unit of a receipt that lets this tag leave. */
  unitOf(tag: string): LeavingUnit | undefined {
    const unit = this.#units.get(this.#byTag.get(tag) ?? '')
    return unit?.proof.kind === 'receipt' && this.#isActive(unit) ? unit.proof : undefined
  }

  /**
   * Notes that a unit of a receipt has let this tag leave, so that it covers no other one. A unit that is not known to be
   * released covers nothing afterwards. `isElsewhere`: at a gate of another agent, which displaces no unit of others here.
   */
  left(unit: LeavingUnit, tag: string, isElsewhere: boolean): void {
    const id = idOf({ kind: 'receipt', entry: '', ...unit })
    const known = this.#units.get(id)
    if (known && this.#isActive(known)) {
      if (known.tag !== undefined) return
      const isOther = !unitsThatFit(tag)(known.proof)
      return this.#change(id, { ...known, ...(isOther ? { isSuperseded: true } : { tag }) })
    }
    if (isElsewhere && this.#units.size >= UNITS_LIMIT / 2) return
    const untilMs = Math.min(this.#parts.nowMs() + SILENT_SECONDS * 1_000, unit.exp * 1_000)
    this.#makeRoom()
    this.#change(id, {
      proof: { kind: 'receipt', entry: '', ...unit },
      untilMs,
      isSuperseded: true,
      ...(!isElsewhere && { tag }),
    })
  }

  /** True if the tag may be the one of this unit. */
  isFor(unit: ReleasedUnit, tag: string): boolean {
    return unit.tag === tag || (unit.tag === undefined && unitsThatFit(tag)(unit.proof))
  }

  /** Tags of the released units of this receipt, each with the ordinal of its entry in the receipt. */
  tagsOfReceipt(cti: Uint8Array): TagEntry[] {
    return [...this.#units.values()].flatMap(({ proof, tag }) =>
      tag !== undefined && proof.kind === 'receipt' && Buffer.from(proof.cti).equals(cti)
        ? [{ tag, entry: proof.ordinal }]
        : [],
    )
  }

  /** Marks the units of these items as superseded, because the cloud has sent their newer status. */
  itemsChanged(entries: readonly Pick<ItemEntry, 'epc' | 'tagUid'>[]): void {
    if (this.#byTag.size === 0) return
    for (const { epc, tagUid } of entries) {
      for (const tag of [epc, tagUid === undefined ? undefined : `U${tagUid}`]) {
        const id = tag === undefined ? undefined : this.#byTag.get(tag)
        const unit = id === undefined ? undefined : this.#units.get(id)
        if (id === undefined || tag === undefined || !unit) continue
        this.#byTag.delete(tag)
        this.#change(id, { ...unit, isSuperseded: true })
      }
    }
  }

  get size(): number {
    return this.#units.size
  }

  stop(): void {
    this.#saving?.()
    if (this.#dirty.size > 0) this.#save()
  }

  #isActive({ untilMs, isSuperseded, proof }: StoredUnit): boolean {
    if (untilMs <= this.#parts.nowMs() || isSuperseded) return false
    return proof.kind === 'token' || !this.#parts.isOver(hexOf(proof.cti))
  }

  #put(id: string, unit: StoredUnit): void {
    this.#units.set(id, unit)
    if (unit.tag === undefined && !unit.isSuperseded) this.#open.add(id)
    else this.#open.delete(id)
    if (unit.tag !== undefined && !unit.isSuperseded) this.#byTag.set(unit.tag, id)
  }

  #change(id: string, unit: StoredUnit): void {
    this.#put(id, unit)
    this.#dirty.add(id)
    this.#saving ??= this.#parts.timers.after(SAVE_MS, () => this.#save())
  }

  #save(): void {
    const { memory, nowMs, safely } = this.#parts
    this.#saving = undefined
    const rows = [...this.#dirty].flatMap((id): StoredRelease[] => {
      const unit = this.#units.get(id)
      return unit ? [{ id, untilMs: unit.untilMs, text: textOf(unit) }] : []
    })
    this.#dirty.clear()
    safely(() => memory.saveReleases(rows, nowMs()))
  }

  #makeRoom(): void {
    const nowMs = this.#parts.nowMs()
    if (this.#units.size >= UNITS_LIMIT || this.#open.size >= OPEN_LIMIT)
      for (const [id, { untilMs }] of this.#units) if (untilMs <= nowMs) this.#remove(id)
    const [oldestOpen] = this.#open
    if (this.#open.size >= OPEN_LIMIT && oldestOpen !== undefined) this.#remove(oldestOpen)
    const [oldest] = this.#units.keys()
    if (this.#units.size >= UNITS_LIMIT && oldest !== undefined) this.#remove(oldest)
  }

  #remove(id: string): void {
    const tag = this.#units.get(id)?.tag
    this.#units.delete(id)
    this.#open.delete(id)
    if (tag !== undefined && this.#byTag.get(tag) === id) this.#byTag.delete(tag)
  }
}

function idOf(proof: UnitProof): string {
  return proof.kind === 'receipt' ? `${hexOf(proof.cti)}.${proof.ordinal}` : proof.jti
}

const hexOf = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')

function textOf(unit: StoredUnit): string {
  const { proof } = unit
  return JSON.stringify(proof.kind === 'receipt' ? { ...unit, proof: { ...proof, cti: hexOf(proof.cti) } } : unit)
}

function unitOf(text: string): StoredUnit {
  const unit = JSON.parse(text) as StoredUnit & { proof: { cti?: string } }
  return unit.proof.kind === 'receipt'
    ? { ...unit, proof: { ...unit.proof, cti: Buffer.from(String(unit.proof.cti), 'hex') } }
    : unit
}

/**
 * Verifies a release of this agent, or a release notice of another agent, before a gate stays silent for the unit.
 * Checks the sender's device, the age, the receipt or token, and the named tag.
 */
interface ReleaseProofParts {
  agentId: string
  storeId: string
  trust: Pick<Trust, 'keys' | 'policy' | 'stage'>
  clock: Pick<AgentClock, 'now'>
  ledger: Pick<Ledger, 'claims'>
}

type CheckedRelease = { ok: true; unit: ReleasedUnit } | { ok: false; why: string }

/** Maximum difference between the clocks of two agents in a store, s. */
const CLOCKS_DIFFER_S = 60

const refuse = (why: string) => ({ ok: false as const, why })

/**
 * Returns the unit for which the release has a valid proof, or why the release is rejected. `senderId`: agent that
 * announces the release.
 */
export function verifyRelease(parts: ReleaseProofParts, release: AnnouncedRelease, senderId: string): CheckedRelease {
  const fault = senderFault(parts, release, senderId) ?? ageFault(parts, release)
  if (fault !== undefined) return refuse(fault)
  const { releasedS } = release
  const opened = 'receipt' in release.proof ? byReceipt(parts, release.proof) : byToken(parts, release, release.proof)
  if (!opened.ok) return opened
  const { epc, tagUid } = release
  const named = normaliseIdentifiers({ epc, tagUid })
  if (!named.ok || named.identifiers.epc !== epc || named.identifiers.tagUid !== tagUid)
    return refuse('the named tag is not in its normal form')
  const tags = [...(epc === undefined ? [] : [epc]), ...(tagUid === undefined ? [] : [`U${tagUid}`])]
  const tag = tags.find((each) => unitsThatFit(each)(opened.proof))
  if (tags.length > 0 && tag === undefined) return refuse('the named tag is not the unit of the receipt or token')
  const untilMs = Math.min(releasedS + SILENT_SECONDS, opened.endsS ?? Number.POSITIVE_INFINITY) * 1_000
  const isOwn = senderId === parts.agentId
  return { ok: true, unit: { proof: opened.proof, untilMs, isOwn, ...(tag !== undefined && { tag }) } }
}

type CheckedExit = { ok: true; unit: LeavingUnit; tag: TagName } | { ok: false; why: string }

/** Returns the unit that has let a tag leave at a gate of another agent, or why the notice is rejected. */
export function verifyExit(parts: ReleaseProofParts, exit: AnnouncedExit, senderId: string): CheckedExit {
  const fault = senderFault(parts, exit, senderId) ?? ageFault(parts, exit)
  if (fault !== undefined) return refuse(fault)
  const { epc, tagUid, proof } = exit
  const tag = epc === undefined ? (tagUid === undefined ? undefined : { tagUid }) : { epc }
  if (!tag) return refuse('the notice names no tag')
  return { ok: true, unit: { ...proof, cti: Buffer.from(proof.cti, 'hex') }, tag }
}

/** Returns why the sender cannot have made the release, or let the goods leave. */
function senderFault({ agentId, trust }: ReleaseProofParts, release: Announced, senderId: string): string | undefined {
  const device = trust.policy?.devices.find(({ deviceId }) => deviceId === release.deviceId)
  if (!device || trust.stage() === 'expired') return 'the device is unknown, or the policy expired'
  // If no agent has adopted the device, it counts as a device of this agent.
  const owner = device.agentId ?? agentId
  if (owner !== senderId) return 'the sender does not own the device'
  return device.revoked || !canPerform(device, release.protectionAction)
    ? 'the device cannot perform this action'
    : undefined
}

/** Returns why the age of the release is not acceptable. Without trusted time the age is unknown. */
function ageFault({ clock }: ReleaseProofParts, { releasedS }: Announced): string | undefined {
  const { nowMs, trust } = clock.now()
  const ageS = nowMs / 1_000 - releasedS
  if (trust === 'none') return 'this agent has no trusted time'
  return ageS < -CLOCKS_DIFFER_S || ageS >= SILENT_SECONDS ? 'the release is not of the last hour' : undefined
}

type OpenedProof = { ok: true; proof: UnitProof; endsS?: number } | { ok: false; why: string }

function byReceipt(
  { storeId, trust, clock, ledger }: ReleaseProofParts,
  { receipt, ordinal }: { receipt: string; ordinal: number },
): OpenedProof {
  const opened = openReceipt(receipt, { keys: trust.keys, storeId, ...validationTime(clock) })
  if (!opened.ok) return refuse(`the receipt is ${opened.fault}`)
  const { cti, entries, exp } = opened.claims
  const entry = entries?.[ordinal]
  if (!entry) return refuse('the receipt has no entry for the unit')
  if (ledger.claims.isDenied(hexOf(cti))) return refuse('the receipt was revoked')
  return { ok: true, proof: { kind: 'receipt', cti, ordinal, exp, entry: hexOf(entry) }, endsS: exp }
}

function byToken(
  { trust, ledger }: ReleaseProofParts,
  { deviceId, protectionAction, releasedS }: AnnouncedRelease,
  { token }: { token: string },
): OpenedProof {
  const opened = openAuthorization(token, { keys: trust.keys, audience: deviceId })
  if (!opened.ok) return refuse(`the token is ${opened.fault}`)
  const { aud, jti, ith, act, iat, exp } = opened.authorization
  if (act !== protectionAction || releasedS < iat - CLOCKS_DIFFER_S || releasedS > exp + CLOCKS_DIFFER_S)
    return refuse('the token is for another action or another time')
  if (ith === undefined) return refuse('the token names no item')
  if (ledger.claims.isDenied(jti)) return refuse('the token was revoked')
  return { ok: true, proof: { kind: 'token', aud, jti, ith } }
}
