import { pause } from '../../policy/platform.ts'
import type { Timers } from '../../policy/platform.ts'
import type { ByteLink } from '../../device-drivers/transports/byte-link.ts'
import type { Fault } from './faults.ts'

/** One answer of a simulated device, and the faults of this answer. */
export interface FaultyAnswer {
  readonly link: ByteLink
  readonly timers: Timers
  readonly hits: readonly Fault[]
  /** The correct answer; null if the device does not answer. */
  readonly bytes: Uint8Array | null
}

const NEVER_ABORTED = new AbortController().signal

/** Sends bytes on a link. Ignores the error of a closed link. */
export async function sendQuietly(link: ByteLink, bytes: Uint8Array): Promise<void> {
  await link.write(bytes, NEVER_ABORTED).catch(() => {})
}

/** The device's end of a line whose adapter repeats everything that the agent sends. */
export function echoingLink(link: ByteLink): ByteLink {
  async function* bytes() {
    for await (const chunk of link.bytes) {
      await sendQuietly(link, chunk)
      yield chunk
    }
  }
  return { bytes: { [Symbol.asyncIterator]: bytes }, write: link.write, close: link.close }
}

/** Flips the lowest bit of the byte at `at`; negative numbers count from the end. */
export function flipBit(bytes: Uint8Array, at: number): Uint8Array {
  const wrong = bytes.slice()
  const index = at < 0 ? wrong.length + at : at
  wrong[index] = (wrong[index] ?? 0) ^ 1
  return wrong
}

/**
 * Sends an answer with its faults: a delay, noise before it, a wrong bit, or a cut connection. May send nothing.
 * `garbleAt` is the index of a byte that the checksum of the frame covers.
 */
export async function answerWithFaults({ link, timers, hits, bytes }: FaultyAnswer, garbleAt: number): Promise<void> {
  const has = (kind: Fault['kind']) => hits.some((hit) => hit.kind === kind)
  if (has('cut-before-answer')) return link.close()
  for (const hit of hits) if (hit.kind === 'delay') await pause(timers, hit.ms)
  for (const hit of hits) if (hit.kind === 'noise') await sendQuietly(link, hit.bytes)
  if (bytes && !has('mute')) await sendQuietly(link, has('garble') ? flipBit(bytes, garbleAt) : bytes)
  if (has('cut-after-answer')) await link.close()
}
