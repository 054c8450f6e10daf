/**
 * A key press. `TypedBurst` distinguishes keyboard-wedge scanners from people by the time between key presses. A
 * scanner types many characters in a few milliseconds, then Enter or Tab.
 */
interface TypedKey {
  /** Value of `KeyboardEvent.key`. */
  key: string
  /** Time of the key press, ms: the browser's time stamp of the event. */
  atMs: number
  /** True if a text field has the focus. */
  inField: boolean
}

export type BurstVerdict =
  /** Not part of a scan: the browser handles the key. */
  | { do: 'pass' }
  /** Part of a possible scan: the page must hide the key from the browser. */
  | { do: 'hold' }
  | { do: 'scan'; text: string }

interface TypedBurst {
  onKey(key: TypedKey): BurstVerdict
  /** Call this function `SILENCE_MS` after the last key. Ends the scan of a scanner that sends no Enter or Tab. */
  onSilence(inField: boolean): BurstVerdict
}

/** Time without a key that ends a scan, ms. Longer than `LOOSE_GAP_MS`, because a busy page receives keys late. */
export const SILENCE_MS = 500

/** Maximum time between characters of slow and wireless scanners, ms. */
const LOOSE_GAP_MS = 200
/** Maximum average time per character of a scan in a field, ms. People type more slowly. */
const FIELD_GAP_MS = 50
const SHORTEST = 3
const SHORTEST_IN_FIELD = 8
/**
 * Time in which a second Enter after a scan is hidden, ms. Scanners that end a scan with CR and LF send a second Enter.
 */
const ECHO_MS = 150
export const LONGEST_SCAN = 4_096

/** Makes the detector of scans. */
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
    // Before the scan: another keyboard, whose time stamps are behind.
    if (atMs < endedMs || atMs - endedMs > ECHO_MS) return { do: 'pass' }
    endedMs = atMs
    return { do: 'hold' }
  }

  /** Only a scan that is faster than people type ends without Enter. In a field the text stays as it is. */
  function endBySilence(inField: boolean): BurstVerdict {
    const isFastEnough = (lastMs - firstMs) / text.length <= FIELD_GAP_MS
    const scanned = text
    text = ''
    if (inField || scanned.length < SHORTEST_IN_FIELD || !isFastEnough) return { do: 'pass' }
    endedMs = lastMs
    return { do: 'scan', text: scanned }
  }

  return {
    onSilence: endBySilence,
    onKey({ key, atMs, inField }) {
      if (key === 'Enter' || key === 'Tab') return end(inField, atMs)
      // Modifier keys such as Shift occur between the characters of a scan.
      if ([...key].length !== 1) return { do: 'pass' }
      if (atMs - lastMs > LOOSE_GAP_MS) text = ''
      if (text === '') firstMs = atMs
      lastMs = atMs
      text = (text + key).slice(0, LONGEST_SCAN + 1)
      // People press the focused button with a single space.
      return inField || (key === ' ' && text === ' ') ? { do: 'pass' } : { do: 'hold' }
    },
  }
}
