import type { TagSighting } from './protocol/tag-sighting.ts'
import type { TagRead } from './device.ts'
import type { ReaderClock } from '../llrp/reader-clock.ts'

/**
 * Converts a sighting to a read. Converts the reader's timestamp to the agent's clock, so that a buffered read keeps
 * its age.
 */
export function readOf({ epc, antenna, rssiDbm, utcUs }: TagSighting, clock: ReaderClock): TagRead {
  return {
    tag: { epc },
    seenAtMs: clock.seenAt({ utcUs }),
    ...(antenna === undefined ? {} : { antenna }),
    ...(rssiDbm === undefined ? {} : { rssiDbm }),
  }
}
