import type { DeviceEvent } from '../../device-drivers/drivers/device.ts'
import type { Platform } from '../../policy/platform.ts'
import { parseCardNumber } from '../../policy/operator-verifiers.ts'
import type { Wiring } from '../devices/wiring.ts'

/** Handles staff cards at readers that are configured for them. Reports a presented card once. */
export interface StaffCards {
  /** Handles the event of a reader for staff cards. Returns false if the event is for another handler. */
  onEvent(sourceId: string, laneId: string, event: DeviceEvent): boolean
}

export interface StaffCardsParts {
  platform: Pick<Platform, 'clock'>
  wiring: Pick<Wiring, 'readsStaffCards'>
  onCard(laneId: string, readerId: string, card: string): void
}

/** Time without a read after which a card counts as removed, ms. */
const AWAY_MS = 2_000

/** Starts without cards. */
export function openStaffCards({ platform, wiring, onCard }: StaffCardsParts): StaffCards {
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
