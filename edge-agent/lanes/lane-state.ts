/** A program or browser that sends a request, by the id of its pairing; `unpaired` only where the agent does not require pairing. */
export type Caller = { readonly id: string } | 'unpaired'

/** What is remembered at a device. */
export interface LaneState {
  receipt?: { text: string; atMs: number }
  operatorSession?: string
  /** True if the last accepted policy listed the device as a gate. */
  wasGate?: boolean
}

/** The operator session of a device, for paired callers and the device's own scanner. Undefined for unpaired callers. */
export function sessionFor({ operatorSession }: LaneState, caller: Caller | undefined): string | undefined {
  return caller === 'unpaired' ? undefined : operatorSession
}
