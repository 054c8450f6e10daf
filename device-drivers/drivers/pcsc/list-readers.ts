import { deadline } from '../../../policy/platform.ts'
import type { Platform } from '../../../policy/platform.ts'
import { openPcscd } from '../../transports/pcscd.ts'
import { findReader } from './find-reader.ts'
import { startPcscd } from './pcscd.ts'

/** A reader, and the part of its name that stays when it is plugged in elsewhere and still fits no other. */
export interface ListedReader {
  readonly name: string
  readonly stableName: string
  readonly cardPresent: boolean
}

const OPEN_WITHIN_MS = 2_000

/** The readers that the pcscd at `socket` sees now. Rejects with what is wrong, and its fix. */
export async function listReaders(socket: string, platform: Platform): Promise<ListedReader[]> {
  const limit = deadline(platform.timers, OPEN_WITHIN_MS)
  const link = await openPcscd(socket, limit.signal).finally(limit.done)
  try {
    const pcscd = startPcscd(link, platform)
    await pcscd.greet()
    const states = await pcscd.readers()
    return states.map(({ name, cardPresent }) => {
      // pcscd counts readers in the order of plugging in, and their slots: `… 00 00`.
      const part = name.replace(/ [0-9A-F]{2} [0-9A-F]{2}$/, '')
      return { name, stableName: part !== '' && 'name' in findReader(states, part) ? part : name, cardPresent }
    })
  } finally {
    await link.close()
  }
}
