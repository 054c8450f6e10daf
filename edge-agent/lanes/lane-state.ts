import type { Budget } from '../../policy/budget.ts'

/**
 * A program or browser that sends a request: the id of its pairing, or `unpaired` if the agent allows unpaired callers.
 */
export type Caller = { readonly id: string } | 'unpaired'

/** State of a lane: its last receipt and operator session. */
export interface LaneState {
  receipt?: { text: string; atMs: number }
  operatorSession?: string
  /** What the device's own scanner may still send, and how many of its texts are being decided. */
  ownScans?: { readonly budget: Budget; running: number; dropped: number }
  /** True if the last accepted policy listed the device as a gate. */
  wasGate?: boolean
}

/**
 * Returns the device's operator session to paired callers and to the device's own scanner. Undefined for unpaired
 * callers.
 */
export function sessionFor({ operatorSession }: LaneState, caller: Caller | undefined): string | undefined {
  return caller === 'unpaired' ? undefined : operatorSession
}
