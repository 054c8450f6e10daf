import { deadline } from '../../policy/platform.ts'
import { supervise } from '../../device-drivers/supervisor.ts'
import type { Supervisor, SupervisorOptions } from '../../device-drivers/supervisor.ts'
import type { DeviceEvent } from '../../device-drivers/kit/device.ts'
import type { DeviceState, DeviceStatus } from '../../device-drivers/device-connection.ts'
import { realPlatform } from './platform.ts'
import { entries } from './workbench.ts'

const WAIT_AT_MOST_MS = 15_000

/** A supervisor on real time; tests wait for its events without sleeping. */
export interface RealBench {
  readonly supervisor: Supervisor
  readonly events: DeviceEvent[]
  /** Resolves when the device is in this state. */
  untilState(deviceId: string, state: DeviceState): Promise<DeviceStatus>
  /** Resolves with the first past or future event that fits. */
  untilEvent(fits: (event: DeviceEvent) => boolean): Promise<DeviceEvent>
}

export function realBench(devices: Record<string, unknown>[], options: Partial<SupervisorOptions> = {}): RealBench {
  const events: DeviceEvent[] = []
  const checks = new Set<() => void>()
  const check = () => checks.forEach((c) => c())
  const supervisor = supervise({
    platform: realPlatform,
    ...options,
    devices: entries(...devices),
    onState: check,
    onEvent(_, event) {
      events.push(event)
      check()
    },
  })

  function wait<T>(what: string, look: () => T | null | undefined): Promise<T> {
    return new Promise((resolve, reject) => {
      const limit = deadline(realPlatform.timers, WAIT_AT_MOST_MS)
      const tooLate = () => reject(new Error(`no ${what}: ${JSON.stringify([supervisor.statuses, events])}`))
      limit.signal.addEventListener('abort', tooLate, { once: true })
      const once = () => {
        const found = look()
        if (found === null || found === undefined) return
        checks.delete(once)
        limit.done()
        resolve(found)
      }
      checks.add(once)
      once()
    })
  }

  return {
    supervisor,
    events,
    untilState: (deviceId, state) =>
      wait(state, () => {
        const status = supervisor.status(deviceId)
        return status?.state === state ? status : null
      }),
    untilEvent: (fits) => wait('event', () => events.find(fits)),
  }
}
