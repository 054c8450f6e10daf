import type { ReaderState } from './protocol/reader-states.ts'
import { PCSCD } from '../transports/link-settings.ts'

/**
 * Finds the reader with the given name, or the only reader whose name contains the given name. If there is no such
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
