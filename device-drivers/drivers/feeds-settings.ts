import { z } from 'zod'

const feedsError = { error: 'give the deviceId of the device that this reader serves' }
const minimumRssiError = { error: 'give dBm, -100 to 0, such as -45' }

/** Setting of readers: the device that receives their reads. */
export const FEEDS = {
  feeds: z.string(feedsError).min(1, feedsError).max(128, { error: 'at most 128 characters' }).optional().meta({
    description: 'what this reader reads is presented at that device; left out: it is a device of its own',
  }),
}

/** Setting of readers that only staff use. */
export const STAFF_CARDS = {
  staffCards: z.boolean({ error: 'use true (its cards are those of staff) or false' }).default(false).meta({
    description: 'cards that are held here are those of staff: each signs its operator in where this reader serves',
  }),
}

/** `FEEDS` with a minimum signal, for UHF readers, which also read distant tags. */
export const FEEDS_WITH_MINIMUM_RSSI = {
  ...FEEDS,
  nearDbm: z.number(minimumRssiError).min(-100, minimumRssiError).max(0, minimumRssiError).optional().meta({
    description: 'not at gates: a tag that is heard more weakly is not meant; left out: every tag is',
  }),
}
