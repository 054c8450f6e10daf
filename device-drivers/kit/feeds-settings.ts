import { z } from 'zod'

const feedsError = { error: 'give the deviceId of the device that this reader serves' }
const minimumRssiError = { error: 'give dBm, -100 to 0, such as -45' }

/** Setting of readers: the device that receives their reads. */
export const FEEDS = {
  feeds: z.string(feedsError).min(1, feedsError).max(128, { error: 'at most 128 characters' }).optional().meta({
    description: 'device that receives what this reader reads; default: the reader is a separate device',
  }),
}

/** Setting of readers that only staff use. */
export const STAFF_CARDS = {
  staffCards: z.boolean({ error: 'use true (only staff present cards here) or false' }).default(false).meta({
    description: 'only staff present cards here: each card signs its operator in at the device of this reader',
  }),
}

/** `FEEDS` with a minimum signal, for UHF readers, which also read distant tags. */
export const FEEDS_WITH_MINIMUM_RSSI = {
  ...FEEDS,
  nearDbm: z.number(minimumRssiError).min(-100, minimumRssiError).max(0, minimumRssiError).optional().meta({
    description: 'minimum signal, not at gates: tags with a weaker signal are ignored; default: none',
  }),
}
