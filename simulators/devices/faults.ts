import { pause, type Timers } from '../../policy/platform.ts'
import type { ByteLink } from '../../device-drivers/transports/byte-link.ts'

/** A fault of a simulated device. */
type FaultKind =
  /** Executes the command, but does not answer. */
  | { readonly kind: 'mute' }
  /** Neither executes nor answers, like a device without power. */
  | { readonly kind: 'dead' }
  /** Flips a bit of the CRC (RTU), or changes the transaction number (TCP). */
  | { readonly kind: 'garble' }
  /** Refuses the command with this exception code. */
  | { readonly kind: 'exception'; readonly code: number }
  /** Executes the command, then breaks the connection instead of answering. */
  | { readonly kind: 'cut-before-answer' }
  /** Breaks the connection after the answer. */
  | { readonly kind: 'cut-after-answer' }
  /** Delays the answer. */
  | { readonly kind: 'delay'; readonly ms: number }
  /** Sends these bytes before the answer. */
  | { readonly kind: 'noise'; readonly bytes: Uint8Array }

/** When the fault applies; default: always. */
interface FaultLimits {
  /** Only for these function codes. */
  readonly functions?: readonly number[]
  /** Only for this unit. */
  readonly unit?: number
  /** Number of matching requests that pass before the fault begins. */
  readonly after?: number
  /** Number of requests that then get the fault. */
  readonly times?: number
}

export type Fault = FaultKind & FaultLimits

/** The fault switches of one simulated device. */
export interface FaultSwitches {
  /** Switches a fault on; the returned function switches it off. At most 100 faults can be on at a time. */
  on(fault: Fault): () => void
  /** Switches all faults off. */
  heal(): void
  /** Returns the faults that apply to this request, and counts the request. */
  hitting(unit: number, functionCode: number): Fault[]
}

const MAX_FAULTS = 100

/** Makes the switches; all faults are off. */
export function faultSwitches(): FaultSwitches {
  const active = new Map<object, { fault: Fault; seen: number }>()

  return {
    on(fault) {
      if (active.size >= MAX_FAULTS) throw new RangeError(`at most ${MAX_FAULTS} faults at a time`)
      const key = {}
      active.set(key, { fault, seen: 0 })
      return () => void active.delete(key)
    },
    heal: () => active.clear(),
    hitting(unit, functionCode) {
      const hits: Fault[] = []
      for (const entry of active.values()) {
        const { functions, unit: only, after = 0, times = Infinity } = entry.fault
        if ((functions && !functions.includes(functionCode)) || (only !== undefined && only !== unit)) continue
        const turn = entry.seen++
        if (turn >= after && turn < after + times) hits.push(entry.fault)
      }
      return hits
    },
  }
}

/** One answer of a simulated device, and the faults of this answer. */
interface FaultyAnswer {
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
function flipBit(bytes: Uint8Array, at: number): Uint8Array {
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
