import type { Board } from './board.ts'
import type { FailedAnswer } from './bus.ts'

/**
 * Maximum span of bits in one request. Some boards reverse the bytes of longer answers (simonvetter/modbus#47, a board
 * with 32 relays).
 */
const WIDEST_READ = 8

interface Span {
  readonly first: number
  readonly quantity: number
}

/**
 * Returns spans that cover `inputs`, each at most 8 addresses wide. Wider spans could also include addresses that the
 * board does not have.
 */
export function readSpans(inputs: readonly number[]): Span[] {
  const spans: Span[] = []
  for (const input of [...new Set(inputs)].sort((a, b) => a - b)) {
    const last = spans.at(-1)
    if (last && input - last.first < WIDEST_READ)
      spans[spans.length - 1] = { first: last.first, quantity: input - last.first + 1 }
    else spans.push({ first: input, quantity: 1 })
  }
  return spans
}

/** Reads the inputs once. Returns their states, or the first failed answer. */
export async function readInputs(
  board: Board,
  inputs: readonly number[],
): Promise<Map<number, boolean> | FailedAnswer> {
  const found = new Map<number, boolean>()
  for (const span of readSpans(inputs)) {
    const answer = await board.readInputs(span.first, span.quantity)
    if (answer.kind !== 'answered') return answer
    for (const input of inputs) {
      const bit = answer.values[input - span.first]
      if (input >= span.first && input < span.first + span.quantity) found.set(input, bit === 1)
    }
  }
  return found
}
