/** A program or browser that sends a request, by the id of its pairing; `unpaired` only where the agent does not require pairing. */
export type Caller = { readonly id: string } | 'unpaired'

/** What is remembered at a device. */
export interface LaneState {
  receipt?: { text: string; atMs: number }
  operatorSession?: string
  /** As the last policy had it. */
  wasGate?: boolean
}

/** The session at a device, for requests that count as the operator's: those of paired callers and of the device's own scanner. */
export function sessionFor({ operatorSession }: LaneState, caller: Caller | undefined): string | undefined {
  return caller === 'unpaired' ? undefined : operatorSession
}
