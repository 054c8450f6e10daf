import type { DeviceEvent } from '../../../device-drivers/drivers/device.ts'
import type { Actuators } from '../nodes/actuators.ts'
import type { Process } from '../virtual/machine.ts'
import type { Scheduler } from '../virtual/scheduler.ts'

/** The UHF reader between the pillars of the gate: an antenna looks into the shop, another one out of it. */
export interface GateReader {
  /** In the place of the real drivers; what this reader sees reaches the process that runs then. */
  readonly supervisor: Actuators['supervisor']
  /** Somebody carries these tags through. Resolves when they are through. */
  carry(epcs: readonly string[], way: 'in' | 'out'): Promise<void>
}

export const ANTENNAS = { inside: 1, outside: 2 } as const
/** Order of the reads when a tag passes: two at the first antenna, then two at the second. */
const READ_ORDER = ['first', 'first', 'second', 'second'] as const
const READ_PAUSE_MS = 350

/** A reader called `readerId` on the machine of agent `owner`. */
export function gateReader(devices: Actuators, owner: string, readerId: string, scheduler: Scheduler): GateReader {
  let tell:
    | { process: Process; onEvent: ((deviceId: string, event: DeviceEvent) => void | Promise<void>) | undefined }
    | undefined
  return {
    supervisor: (agent, process) => (options) => {
      if (agent === owner) tell = { process, onEvent: options.onEvent }
      return devices.supervisor(agent, process)(options)
    },
    async carry(epcs, way) {
      const order =
        way === 'out'
          ? ({ first: ANTENNAS.inside, second: ANTENNAS.outside } as const)
          : ({ first: ANTENNAS.outside, second: ANTENNAS.inside } as const)
      for (const look of READ_ORDER) {
        const { process, onEvent } = tell ?? {}
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
