import type { TagSighting } from '../protocols/tag-sighting.ts'
import type { TagRead } from './device.ts'
import type { ReaderClock } from './llrp/reader-clock.ts'

/** A sighting on the agent's clock: one that the reader kept while nobody listened is as old as it is. */
export function readOf({ epc, antenna, rssiDbm, utcUs }: TagSighting, clock: ReaderClock): TagRead {
  return {
    tag: { epc },
    seenAtMs: clock.seenAt({ utcUs }),
    ...(antenna === undefined ? {} : { antenna }),
    ...(rssiDbm === undefined ? {} : { rssiDbm }),
  }
}
