/** A fault of a simulated device. */
export type FaultKind =
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
export interface FaultLimits {
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
