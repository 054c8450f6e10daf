import type { Budget } from '../../policy/budget.ts'

/**
 * A program or browser that sends a request: the id of its pairing, or `unpaired` if the agent allows unpaired callers.
 */
export type Caller = { readonly id: string; readonly rights?: readonly string[]; readonly tillId?: string } | 'unpaired'

/** State of a lane: its last receipt and operator session. */
export interface LaneState {
  receipt?: { text: string; atMs: number }
  operatorSession?: string
  /** Codes of receipts that no sale has. */
  wrongCodes?: { readonly sinceMs: number; readonly count: number }
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

/** The states of the lanes, by device. */
export interface LaneStates {
  /** Returns the state of this device, and makes one if needed. */
  of(deviceId: string): LaneState
  find(deviceId: string): LaneState | undefined
  readonly size: number
}

/** Number of states above which the agent drops states of unknown devices. */
export const STATES_LIMIT = 1_000

/**
 * Makes an empty table of states. Above the limit, drops the state of the oldest unknown device, because programs may
 * name any device.
 */
export function laneStates(isKnown: (deviceId: string) => boolean): LaneStates {
  const states = new Map<string, LaneState>()

  function dropUnknown(): void {
    for (const deviceId of states.keys()) if (!isKnown(deviceId)) return void states.delete(deviceId)
  }

  return {
    of(deviceId) {
      const known = states.get(deviceId)
      if (known) return known
      if (states.size >= STATES_LIMIT) dropUnknown()
      const state: LaneState = {}
      states.set(deviceId, state)
      return state
    },
    find: (deviceId) => states.get(deviceId),
    get size() {
      return states.size
    },
  }
}
