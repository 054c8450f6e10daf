import { deadline } from '../../policy/platform.ts'
import type { Platform } from '../../policy/platform.ts'
import type { LinkFactory } from '../transports/byte-link.ts'
import { findReader } from './find-reader.ts'
import { startPcscd } from './pcscd.ts'

/** A reader of PC/SC. `stableName` does not depend on the USB socket, and fits only this reader. */
export interface ListedReader {
  readonly name: string
  readonly stableName: string
  readonly cardPresent: boolean
}

const OPEN_WITHIN_MS = 5_000

/** Lists the present readers of PC/SC, over a link that `open` opens. Rejects with an error that names the fix. */
export async function listReaders(open: LinkFactory, platform: Platform): Promise<ListedReader[]> {
  const limit = deadline(platform.timers, OPEN_WITHIN_MS)
  const link = await open(limit.signal).finally(limit.done)
  try {
    const pcscd = startPcscd(link, platform)
    await pcscd.negotiate()
    const states = await pcscd.readers()
    return states.map(({ name, cardPresent }) => {
      // Removes the final numbers. pcscd appends two numbers (`… 00 00`): of the reader, by the order of plugging in,
      // and of the slot. Windows and macOS append only the number of the reader: `… 0`.
      const part = name.replace(/ [0-9A-F]{2}(?: [0-9A-F]{2})?$| \d$/, '')
      return { name, stableName: part !== '' && 'name' in findReader(states, part) ? part : name, cardPresent }
    })
  } finally {
    await link.close()
  }
}
