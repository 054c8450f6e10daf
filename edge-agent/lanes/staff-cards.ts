import type { DeviceEvent } from '../../device-drivers/drivers/device.ts'
import type { Platform } from '../../policy/platform.ts'
import { parseCardNumber } from '../../policy/operator-verifiers.ts'
import type { Wiring } from '../devices/wiring.ts'

/** Cards that staff hold before readers which are set up for that: each is told of once while it is held there. */
export interface StaffCards {
  /** Whether it was one; everything else goes its own way. */
  take(sourceId: string, laneId: string, event: DeviceEvent): boolean
}

export interface StaffCardsParts {
  platform: Pick<Platform, 'clock'>
  wiring: Pick<Wiring, 'readsStaffCards'>
  onCard(laneId: string, readerId: string, card: string): void
}

/** A card that was not told of for so long was taken away, ms. */
const AWAY_MS = 2_000

/** No card is held anywhere yet. */
export function openStaffCards({ platform, wiring, onCard }: StaffCardsParts): StaffCards {
  /** The last one at each reader. */
  const held = new Map<string, { card: string; seenMs: number }>()

  function show(sourceId: string, laneId: string, card: string): void {
    const nowMs = platform.clock.elapsed()
    const last = held.get(sourceId)
    const isHeld = last?.card === card && nowMs - last.seenMs <= AWAY_MS
    held.set(sourceId, { card, seenMs: nowMs })
    // Checking a card takes long on purpose: not again while it lies there.
    if (!isHeld) onCard(laneId, sourceId, card)
  }

  return {
    take(sourceId, laneId, event) {
      if (!wiring.readsStaffCards(sourceId)) return false
      if (event.type === 'tag_gone') return true
      if (event.type === 'tags') {
        // One card at a time; what a reader had kept is nobody who stands there.
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
