import { deadline, type Platform } from '../../policy/platform.ts'
import type { LinkFactory } from '../transports/byte-link.ts'
import { startPcscd } from './pcscd.ts'
import type { ReaderState } from './protocol/reader-states.ts'
import { PCSCD } from '../transports/link-settings.ts'

/**
 * Finds the reader with this name, or the only reader whose name contains this name. If there is no such
 * reader, returns the reason. pcscd's names end with the numbers of the reader and of the slot (`… 00 00`). The
 * reader's number depends on the order in which readers were plugged in, so omit this number in the settings.
 */
export function findReader(
  states: readonly ReaderState[],
  wanted: string,
  service = PCSCD,
): { readonly name: string } | { readonly missing: string } {
  const names = states.map((state) => state.name)
  if (names.includes(wanted)) return { name: wanted }
  const fitting = names.filter((name) => name.toLowerCase().includes(wanted.toLowerCase()))
  const [name] = fitting
  if (name !== undefined && fitting.length === 1) return { name }
  const list = (of: readonly string[]) => of.map((each) => `"${each}"`).join(', ')
  if (fitting.length > 1)
    return { missing: `"${wanted}" fits several readers: ${list(fitting)}; give more of the name in link.pcsc` }
  return {
    missing:
      names.length === 0
        ? `${service} has no reader; is one plugged in?`
        : `${service} has no reader "${wanted}"; it has ${list(names)}`,
  }
}

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
