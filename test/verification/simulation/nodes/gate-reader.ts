import type { DeviceEvent } from '../../../../device-drivers/kit/device.ts'
import type { Actuators } from './actuators.ts'
import type { Process } from '../virtual/machine.ts'
import type { Scheduler } from '../virtual/scheduler.ts'

/** UHF reader of the gate. One antenna reads inside the shop, and one antenna reads outside. */
export interface GateReader {
  /** Replaces the supervisor with the real drivers. The reader sends its reads to the current process. */
  readonly supervisor: Actuators['supervisor']
  /** Carries these tags through the gate, as a shopper does. Resolves when the shopper is through. */
  carry(epcs: readonly string[], way: 'in' | 'out'): Promise<void>
}

export const ANTENNAS = { inside: 1, outside: 2 } as const
/** Antennas that read a passing tag, in order. */
const READ_ORDER = ['first', 'first', 'second', 'second'] as const
const READ_PAUSE_MS = 350

/** Creates a reader with the id `readerId` at the agent `owner`. */
export function gateReader(devices: Actuators, owner: string, readerId: string, scheduler: Scheduler): GateReader {
  let listener:
    | { process: Process; onEvent: ((deviceId: string, event: DeviceEvent) => void | Promise<void>) | undefined }
    | undefined
  return {
    supervisor: (agent, process) => (options) => {
      if (agent === owner) listener = { process, onEvent: options.onEvent }
      return devices.supervisor(agent, process)(options)
    },
    async carry(epcs, way) {
      const order =
        way === 'out'
          ? ({ first: ANTENNAS.inside, second: ANTENNAS.outside } as const)
          : ({ first: ANTENNAS.outside, second: ANTENNAS.inside } as const)
      for (const look of READ_ORDER) {
        const { process, onEvent } = listener ?? {}
        if (process?.isAlive && onEvent && epcs.length > 0) {
          const seenAtMs = process.platform.clock.elapsed()
          void onEvent(readerId, {
            type: 'tags',
            reads: epcs.map((epc) => ({ tag: { epc }, antenna: order[look], seenAtMs })),
          })
        }
        await scheduler.pause(READ_PAUSE_MS)
      }
    },
  }
}
