import type { LaneState } from './lane-state.ts'

/** What is remembered at each device. */
export interface LaneStates {
  /** The state of this device; a new one if there is none. */
  of(deviceId: string): LaneState
  find(deviceId: string): LaneState | undefined
  readonly size: number
}

/** Devices with a state; the policy may name more. */
export const STATES_LIMIT = 1_000

/** Programs may name any device. Above the limit, the oldest device for which `isKnown` is false is dropped. */
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
