import type { AntennaSides } from '../../../device-drivers/drivers/capabilities.ts'
import type { DeviceCommand, TagRead } from '../../../device-drivers/drivers/device.ts'
import type { Cancel, Platform } from '../../../policy/platform.ts'
import type { ReceiptClaims } from '../../../policy/receipts/claims.ts'
import type { ProtectionPolicy } from '../../../policy/store-policy.ts'
import type { ClaimExit } from '../../decisions/claim-exit.ts'
import type { ItemFile } from '../../items/database.ts'
import type { Replica } from '../../items/replica.ts'
import type { Log } from '../../log.ts'
import type { Zone } from './deduplicate.ts'
import type { DeviceJournal } from '../../devices/device-journal.ts'
import { openExitClaims } from './exit-claims.ts'
import { gateTagOf, tagNameOf } from './gate-tag.ts'
import { openGate, type GateCounts, type GateLane } from './gate-lane.ts'
import type { Judgement } from './judge.ts'
import type { TagEntry } from './receipt-pass.ts'
import { openReleasedUnits, type ReleasedUnit } from './released-units.ts'

/** The exit gates of this agent; each begins with the first thing that happens at it. */
export interface Gates {
  /** Tags that a reader of this gate has seen; `sourceId` is the reader. */
  onReads(deviceId: string, sourceId: string, reads: readonly TagRead[]): void
  onPassage(deviceId: string): void
  /** The tags that are at this gate with a receipt, each with the entry that it takes; none where no reader has seen any. */
  withReceipt(deviceId: string, claims: ReceiptClaims, unused: readonly number[]): TagEntry[]
  onReceipt(deviceId: string, claims: ReceiptClaims, unused: readonly number[], taken: readonly TagEntry[]): void
  /** A verified unit was released by this agent, or by another of its store. */
  onReleased(unit: ReleasedUnit): void
  counts(): ReadonlyMap<string, GateCounts>
  stop(): Promise<void>
}

export interface GatesParts {
  platform: Platform
  items: Replica
  memory: Pick<ItemFile, 'strays' | 'saveStrays' | 'releases' | 'saveReleases'>
  journal: DeviceJournal
  nowMs(): number
  policy(): ProtectionPolicy | undefined
  isOnline(): boolean
  ask(): Promise<void>
  execute(deviceId: string, command: DeviceCommand, signal: AbortSignal): Promise<unknown>
  /** Undefined: the reader cannot tell where a tag is. */
  antennasOf(sourceId: string): AntennaSides | undefined
  /** How long an alarm sounds at a gate, s. */
  sirenSecondsOf(deviceId: string): number
  /** Uses up the exit rights of paid tags that are gone. */
  claimExit: ClaimExit
  onAlarm(deviceId: string, tag: string, judgement: Judgement): void
  log: Log
}

const SAVE_MS = 30_000
const SIGNAL_WITHIN_MS = 2_000

/** No gate yet. */
export function openGates(parts: GatesParts): Gates {
  const { platform, items, memory, log } = parts
  const gates = new Map<string, { lane: GateLane; saved: string }>()
  const zones = new Map<string, Map<number, Zone> | undefined>()
  const exits = openExitClaims({ platform, nowMs: parts.nowMs, claim: parts.claimExit, log })
  let saving: Cancel | undefined
  const released = openReleasedUnits({ nowMs: parts.nowMs, timers: platform.timers, memory, safely })
  const stopListening = items.onChange((entries) => {
    released.itemsChanged(entries)
    for (const { lane } of gates.values()) lane.itemsChanged()
  })

  function signal(deviceId: string, command: DeviceCommand): void {
    const within = new AbortController()
    const cancel = platform.timers.after(SIGNAL_WITHIN_MS, () => within.abort())
    void parts.execute(deviceId, command, within.signal).finally(cancel)
  }

  function laneOf(deviceId: string): GateLane {
    const known = gates.get(deviceId)
    if (known) return known.lane
    const strays = safely(() => memory.strays(deviceId))
    const lane = openGate({
      ...parts,
      deviceId,
      strays,
      released,
      signal: (command) => signal(deviceId, command),
      sirenSeconds: parts.sirenSecondsOf(deviceId),
      record: parts.journal.add,
      onGone: (tag, leftMs) => exits.add(deviceId, tagNameOf(tag), leftMs),
      onAlarm: (tag, judgement) => parts.onAlarm(deviceId, tag, judgement),
    })
    gates.set(deviceId, { lane, saved: strays ? JSON.stringify(strays) : '' })
    saving ??= platform.timers.after(SAVE_MS, saveAll)
    return lane
  }

  function safely<T>(work: () => T): T | undefined {
    try {
      return work()
    } catch (error) {
      log.error({ err: error }, 'what a gate has learnt cannot be kept: it is learnt anew after a restart')
      return undefined
    }
  }

  /** What has changed since it was saved. */
  function save(): void {
    for (const [deviceId, gate] of gates) {
      const strays = gate.lane.strays()
      const text = JSON.stringify(strays)
      if (text === gate.saved) continue
      gate.saved = text
      safely(() => memory.saveStrays(deviceId, strays))
    }
  }

  function saveAll(): void {
    save()
    saving = platform.timers.after(SAVE_MS, saveAll)
  }

  function zonesOf(sourceId: string): Map<number, Zone> | undefined {
    if (zones.has(sourceId)) return zones.get(sourceId)
    const antennas = parts.antennasOf(sourceId)
    // With one side alone nobody can tell where a tag goes.
    const isBoth = antennas !== undefined && antennas.inside.length > 0 && antennas.outside.length > 0
    const table = isBoth
      ? new Map<number, Zone>([
          ...antennas.inside.map((n) => [n, 'inside'] as const),
          ...antennas.outside.map((n) => [n, 'outside'] as const),
        ])
      : undefined
    zones.set(sourceId, table)
    return table
  }

  return {
    onReads(deviceId, sourceId, reads) {
      const lane = laneOf(deviceId)
      const table = zonesOf(sourceId)
      for (const { tag, antenna, seenAtMs } of reads) {
        const zone = table && antenna !== undefined ? table.get(antenna) : 'none'
        // An antenna that is neither says nothing about a way out.
        if (zone !== undefined) lane.see(gateTagOf(tag), zone, seenAtMs)
      }
    },
    onPassage: (deviceId) => gates.get(deviceId)?.lane.passage(),
    withReceipt: (deviceId, claims, unused) => gates.get(deviceId)?.lane.withReceipt(claims, unused) ?? [],
    onReceipt: (deviceId, claims, unused, taken) => laneOf(deviceId).receipt(claims, unused, taken),
    onReleased(unit) {
      if (!released.add(unit)) return
      for (const { lane } of gates.values()) lane.releasesChanged()
    },
    counts: () => new Map([...gates].map(([deviceId, { lane }]) => [deviceId, { ...lane.counts }])),
    async stop() {
      saving?.()
      stopListening()
      released.stop()
      save()
      for (const { lane } of gates.values()) lane.stop()
      await exits.stop()
      await parts.journal.flush()
    },
  }
}
