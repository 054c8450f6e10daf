/**
 * Tells a keyboard-wedge scanner from a person. A scanner types many characters in a few milliseconds, then Enter or
 * Tab. Pure: takes keys with their times, and returns what to do with each.
 */
export interface TypedKey {
  /** Value of `KeyboardEvent.key`. */
  key: string
  /** When the key went down, ms; the browser's own time of the event, not of its handling. */
  atMs: number
  /** True if the focused field takes the character. */
  inField: boolean
}

export type BurstVerdict =
  /** Not part of a scan: the browser handles it. */
  | { do: 'pass' }
  /** Part of a possible scan: hidden from the page. */
  | { do: 'hold' }
  | { do: 'scan'; text: string }

export interface TypedBurst {
  take(key: TypedKey): BurstVerdict
}

/** Maximum pause of slow and wireless scanners between characters, ms. */
const LOOSE_GAP_MS = 200
/** Average time per character in a field, ms. No person types so fast. */
const FIELD_GAP_MS = 50
const SHORTEST = 3
const SHORTEST_IN_FIELD = 8
/** Some scanners end with CR and LF: the second Enter must not press the button that has the focus. */
const ECHO_MS = 150
export const LONGEST_SCAN = 4_096

/** Tells a scanner that types like a keyboard from a person. */
export function typedBurst(): TypedBurst {
  let text = ''
  let firstMs = 0
  let lastMs = Number.NEGATIVE_INFINITY
  let endedMs = Number.NEGATIVE_INFINITY

  function isFast(atMs: number, inField: boolean): boolean {
    if (atMs - lastMs > LOOSE_GAP_MS) return false
    return inField
      ? text.length >= SHORTEST_IN_FIELD && (atMs - firstMs) / text.length <= FIELD_GAP_MS
      : text.length >= SHORTEST
  }

  function end(inField: boolean, atMs: number): BurstVerdict {
    const isScan = isFast(atMs, inField)
    const scanned = text
    text = ''
    if (isScan) {
      endedMs = atMs
      return { do: 'scan', text: scanned }
    }
    if (atMs - endedMs > ECHO_MS) return { do: 'pass' }
    endedMs = atMs
    return { do: 'hold' }
  }

  return {
    take({ key, atMs, inField }) {
      if (key === 'Enter' || key === 'Tab') return end(inField, atMs)
      // Shift and its like come between the characters of a burst.
      if ([...key].length !== 1) return { do: 'pass' }
      if (atMs - lastMs > LOOSE_GAP_MS) text = ''
      if (text === '') firstMs = atMs
      lastMs = atMs
      text = (text + key).slice(0, LONGEST_SCAN + 1)
      // A single space is how a keyboard presses a button.
      return inField || (key === ' ' && text === ' ') ? { do: 'pass' } : { do: 'hold' }
    },
  }
}
