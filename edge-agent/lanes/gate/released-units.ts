import { itemHash } from '../../../policy/documents/authorization.ts'
import type { ItemEntry } from '../../../policy/documents/item-documents.ts'
import type { Cancel, Timers } from '../../../policy/platform.ts'
import type { ItemFile, StoredRelease } from '../../items/database.ts'
import { tagNameOf } from './gate-tag.ts'
import { entriesOf, type TagEntry } from './receipt-pass.ts'

/**
 *   release ─ verified (release-proof.ts) ─▶ unit ─ its tag, or the first that fits ─▶ that tag leaves in silence
 *                                                     └ the cloud says anything new of the item ─▶ its status decides again
 *
 * The units that this agent and the others of its store have released, for all gates of this agent. The cloud says within
 * seconds that their items are paid; while it is offline nobody else does.
 */
export interface ReleasedUnits {
  /** Takes a verified unit; false: it is known already. A unit keeps the first tag that it was released with. */
  add(unit: ReleasedUnit): boolean
  /** Whether this tag leaves under a release. A unit without a tag is taken by the first tag that fits. */
  covers(tag: string): boolean
  /** The tags that took units of this receipt, each with the number of its unit. */
  takenOf(cti: Uint8Array): TagEntry[]
  /** The cloud's news of items count from now on. */
  itemsChanged(entries: readonly Pick<ItemEntry, 'epc' | 'tagUid'>[]): void
  readonly size: number
  stop(): void
}

/** One released unit; `tag` as `gateTagOf` names it. */
export interface ReleasedUnit {
  readonly proof: UnitProof
  /** Trusted ms. */
  readonly untilMs: number
  readonly tag?: string
}

/** What verifies the unit: an entry of a receipt, or the item hash of an authorization token. */
export type UnitProof =
  | { kind: 'receipt'; cti: Uint8Array; ordinal: number; entry: string }
  | { kind: 'token'; aud: string; jti: string; ith: string }

export interface ReleasedUnitsParts {
  nowMs(): number
  timers: Timers
  /** Where units survive a restart of the agent. */
  memory: Pick<ItemFile, 'releases' | 'saveReleases'>
  safely<T>(work: () => T): T | undefined
}

interface Known extends ReleasedUnit {
  /** The cloud has said something newer of the item: the unit silences nothing any more, and is not taken again. */
  readonly isOver?: true
}

/** Units that are kept; beyond, the oldest makes room. Far more than a store releases within an hour offline. */
const UNITS_LIMIT = 2_000
/** Units without a tag: each is compared with a tag that is about to alarm, in some milliseconds for all. */
const OPEN_LIMIT = 500
/** Units are written down together after, ms. */
const SAVE_MS = 1_000

/** Whether a tag is the unit that a proof verifies: by its own name, or by the product that its EPC names. */
export function unitsThatFit(tag: string): (proof: UnitProof) => boolean {
  const name = tagNameOf(tag)
  const entries = entriesOf(tag)
  return (proof) => {
    if (proof.kind === 'receipt') return entries(proof.cti).includes(proof.entry)
    const { aud, jti, ith } = proof
    return ith === ('epc' in name ? itemHash(aud, jti, 'epc', name.epc) : itemHash(aud, jti, 'tagUid', name.tagUid))
  }
}

/** The units that were known before the restart and have not ended. */
export function openReleasedUnits({ nowMs, timers, memory, safely }: ReleasedUnitsParts): ReleasedUnits {
  const units = new Map<string, Known>()
  const byTag = new Map<string, string>()
  /** Units that no tag has taken, the oldest first. */
  const open = new Set<string>()
  const dirty = new Set<string>()
  let saving: Cancel | undefined

  const kept = safely(() => memory.releases(nowMs()).map(({ id, text }) => ({ id, unit: unitOf(text) })))
  for (const { id, unit } of kept ?? []) put(id, unit)

  function put(id: string, unit: Known): void {
    units.set(id, unit)
    if (unit.tag === undefined) open.add(id)
    else open.delete(id)
    if (unit.tag !== undefined && !unit.isOver) byTag.set(unit.tag, id)
  }

  function change(id: string, unit: Known): void {
    put(id, unit)
    dirty.add(id)
    saving ??= timers.after(SAVE_MS, save)
  }

  function save(): void {
    saving = undefined
    const rows = [...dirty].flatMap((id): StoredRelease[] => {
      const unit = units.get(id)
      return unit ? [{ id, untilMs: unit.untilMs, text: textOf(unit) }] : []
    })
    dirty.clear()
    safely(() => memory.saveReleases(rows, nowMs()))
  }

  function forget(id: string): void {
    const tag = units.get(id)?.tag
    units.delete(id)
    open.delete(id)
    if (tag !== undefined && byTag.get(tag) === id) byTag.delete(tag)
  }

  function makeRoom(): void {
    const now = nowMs()
    if (units.size >= UNITS_LIMIT || open.size >= OPEN_LIMIT)
      for (const [id, { untilMs }] of units) if (untilMs <= now) forget(id)
    const [oldestOpen] = open
    if (open.size >= OPEN_LIMIT && oldestOpen !== undefined) forget(oldestOpen)
    const [oldest] = units.keys()
    if (units.size >= UNITS_LIMIT && oldest !== undefined) forget(oldest)
  }

  const isLive = ({ untilMs, isOver }: Known) => untilMs > nowMs() && !isOver

  return {
    add(unit) {
      const id = idOf(unit.proof)
      const known = units.get(id)
      if (known && known.untilMs > nowMs()) return false
      makeRoom()
      change(id, unit)
      return true
    },
    covers(tag) {
      const own = units.get(byTag.get(tag) ?? '')
      if (own && isLive(own)) return true
      const fits = unitsThatFit(tag)
      for (const id of open) {
        const unit = units.get(id)
        if (!unit || !isLive(unit) || !fits(unit.proof)) continue
        change(id, { ...unit, tag })
        return true
      }
      return false
    },
    takenOf: (cti) =>
      [...units.values()].flatMap(({ proof, tag }) =>
        tag !== undefined && proof.kind === 'receipt' && Buffer.from(proof.cti).equals(cti)
          ? [{ tag, entry: proof.ordinal }]
          : [],
      ),
    itemsChanged(entries) {
      if (byTag.size === 0) return
      for (const { epc, tagUid } of entries) {
        for (const tag of [epc, tagUid === undefined ? undefined : `U${tagUid}`]) {
          const id = tag === undefined ? undefined : byTag.get(tag)
          const unit = id === undefined ? undefined : units.get(id)
          if (id === undefined || tag === undefined || !unit) continue
          byTag.delete(tag)
          change(id, { ...unit, isOver: true })
        }
      }
    },
    get size() {
      return units.size
    },
    stop() {
      saving?.()
      if (dirty.size > 0) save()
    },
  }
}

function idOf(proof: UnitProof): string {
  return proof.kind === 'receipt' ? `${Buffer.from(proof.cti).toString('hex')}.${proof.ordinal}` : proof.jti
}

function textOf(unit: Known): string {
  const { proof } = unit
  return JSON.stringify(
    proof.kind === 'receipt' ? { ...unit, proof: { ...proof, cti: Buffer.from(proof.cti).toString('hex') } } : unit,
  )
}

function unitOf(text: string): Known {
  const unit = JSON.parse(text) as Known & { proof: { cti?: string } }
  return unit.proof.kind === 'receipt'
    ? { ...unit, proof: { ...unit.proof, cti: Buffer.from(String(unit.proof.cti), 'hex') } }
    : unit
}
