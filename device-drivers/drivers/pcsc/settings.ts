import { z } from 'zod'
import { PcscLink } from '../../transports/link-settings.ts'
import { DeviceId } from '../driver.ts'
import { FEEDS, STAFF_CARDS } from '../feeding.ts'

/** One NFC/HF reader, or one slot of it, that pcscd drives. */
export const PcscSettings = z.strictObject({
  deviceId: DeviceId,
  driver: z.literal('pcsc'),
  link: PcscLink,
  ...FEEDS,
  ...STAFF_CARDS,
  ndef: z
    .boolean({ error: 'use true (links and texts on a tag are told as scans) or false' })
    .default(true)
    .meta({ description: 'read URI and text records from tags and tell them as scans' }),
})
export type PcscSettings = z.infer<typeof PcscSettings>
