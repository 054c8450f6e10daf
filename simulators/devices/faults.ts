/** What a simulated board does wrong. */
export type FaultKind =
  /** Does what it is told and says nothing. */
  | { readonly kind: 'mute' }
  /** Does nothing and says nothing, as a board without power. */
  | { readonly kind: 'dead' }
  /** Answers with one bit turned in the CRC (RTU) or with another transaction number (TCP). */
  | { readonly kind: 'garble' }
  /** Refuses with this exception code and does nothing. */
  | { readonly kind: 'exception'; readonly code: number }
  /** Does what it is told, then the connection breaks in place of the answer. */
  | { readonly kind: 'cut-before-answer' }
  /** The connection breaks right behind the answer. */
  | { readonly kind: 'cut-after-answer' }
  /** Answers so much later. */
  | { readonly kind: 'delay'; readonly ms: number }
  /** Sends these bytes before the answer. */
  | { readonly kind: 'noise'; readonly bytes: Uint8Array }

/** When it does it wrong; without limits: always. */
export interface FaultLimits {
  /** Only for these function codes. */
  readonly functions?: readonly number[]
  /** Only for this unit. */
  readonly unit?: number
  /** Lets so many matching requests pass first. */
  readonly after?: number
  /** Then only so many times. */
  readonly times?: number
}

export type Fault = FaultKind & FaultLimits

/** The fault switches of one simulated device. */
export interface FaultSwitches {
  /** Switches a fault on; the returned function switches it off. At most 100 at a time. */
  on(fault: Fault): () => void
  /** Switches all faults off. */
  heal(): void
  /** The faults that hit this request, counted. */
  hitting(unit: number, functionCode: number): Fault[]
}

const MAX_FAULTS = 100

/** All faults off. */
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
