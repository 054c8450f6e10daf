import { isConnected, type DeviceStatus } from '../../device-drivers/device-connection.ts'
import type { Clock } from '../../policy/platform.ts'
import type { DeviceHealth } from '../../policy/documents/agent-messages.ts'

/** Health of a device, as the agent reports it to the cloud. */
export interface KnownHealth {
  readonly deviceId: string
  readonly state: DeviceHealth
  /** Reason for the state, or the description of a device that is ready. */
  readonly detail: string
  /** Time of the clock (`elapsed`) since which the device is ready or is not, ms. */
  readonly sinceMs: number
}

const FIRST_DETAIL = 'the agent has not reached it since its start'

/**
 * Health of the devices for the cloud. A driver that reconnects passes through `opening` and `identifying` again and
 * again. These states say nothing about the device, so its health stays the same until the attempt has ended.
 */
export class DevicesHealth {
  readonly #clock: Pick<Clock, 'elapsed'>
  readonly #known = new Map<string, KnownHealth>()
  #version = 0

  constructor(clock: Pick<Clock, 'elapsed'>) {
    this.#clock = clock
  }

  /** Rises with each change. */
  get version(): number {
    return this.#version
  }

  /** Health of the devices with these statuses. */
  of(statuses: readonly DeviceStatus[]): KnownHealth[] {
    return statuses.map((status) => this.#known.get(status.deviceId) ?? this.#next(status))
  }

  /** Returns whether this status changes the health of the device. */
  note(status: DeviceStatus): boolean {
    const before = this.#known.get(status.deviceId)
    const after = this.#next(status)
    if (before?.state === after.state && before.detail === after.detail) return false
    this.#known.set(status.deviceId, after)
    this.#version++
    return true
  }

  #next(status: DeviceStatus): KnownHealth {
    const { deviceId, state } = status
    const before = this.#known.get(deviceId)
    const nowMs = this.#clock.elapsed()
    if (state !== 'ready' && state !== 'degraded' && state !== 'absent')
      return before ?? { deviceId, state: 'absent', detail: FIRST_DETAIL, sinceMs: nowMs }
    // A lost device is `degraded` until the agent has tried to reconnect it. For a person it is absent at once.
    const health = state === 'degraded' && !isConnected(status) ? 'absent' : state
    const isSame = before !== undefined && (before.state === 'ready') === (health === 'ready')
    return { deviceId, state: health, detail: status.detail, sinceMs: isSame ? before.sinceMs : nowMs }
  }
}
