import type { DeviceCommand, DeviceEvent } from '../../device-drivers/kit/device.ts'
import { checkDevices } from '../../device-drivers/kit/check-devices.ts'
import type { DeviceEntry } from '../../device-drivers/registry.ts'
import type { DeviceStatus } from '../../device-drivers/device-connection.ts'
import { supervise, type Supervisor } from '../../device-drivers/supervisor.ts'
import { LinkFault } from '../../device-drivers/transports/byte-link.ts'
import { linkKey } from '../../device-drivers/transports/link-settings.ts'
import { memoryPort, type MemoryPort } from '../../device-drivers/transports/memory.ts'
import { RelayBoard, type RelayBoardOptions } from '../../simulators/devices/modbus.ts'
import { virtualPlatform, type VirtualPlatform } from '../verification/simulation/virtual/virtual-platform.ts'

export const RELEASE: DeviceCommand = { kind: 'release' }
export const ADDRESS = '10.0.0.7:502'

/** Makes a signal that never aborts. Each call makes a new signal, as each request of an agent has its own. */
export const forEver = (): AbortSignal => new AbortController().signal

/** Checks entries as from a configuration file, and adds the defaults. */
export function entries(...raw: Record<string, unknown>[]): readonly DeviceEntry[] {
  const checked = checkDevices(raw)
  if ('errors' in checked) throw new Error(checked.errors.join('\n'))
  return checked.devices
}

export interface Workbench {
  readonly world: VirtualPlatform
  readonly board: RelayBoard
  readonly port: MemoryPort
  readonly supervisor: Supervisor
  readonly states: DeviceStatus[]
  readonly events: { deviceId: string; event: DeviceEvent }[]
  release(deviceId?: string): ReturnType<Supervisor['execute']>
  untilReady(deviceId?: string): Promise<void>
  /** Advances time in steps of 10 ms until `condition` is true. */
  until(condition: () => boolean, limitMs?: number): Promise<void>
}

const DOOR = { deviceId: 'door', driver: 'modbus', link: { tcp: ADDRESS }, output: 0, confirmInput: 0, pulseMs: 200 }

/** A supervisor and a simulated board, connected by a memory link, on a virtual clock. */
export function workbench(
  options: {
    devices?: Record<string, unknown>[]
    door?: Record<string, unknown>
    board?: Partial<RelayBoardOptions>
    seed?: number
  } = {},
): Workbench {
  const world = virtualPlatform({ seed: options.seed ?? 1 })
  const devices = entries(...(options.devices ?? [{ ...DOOR, ...options.door }]))
  const framing = devices.some((d) => d.driver === 'modbus' && d.framing === 'rtu') ? 'rtu' : 'tcp'
  const board = new RelayBoard({ platform: world, framing, ...options.board })
  const port = memoryPort((link) => void board.serve(link))
  const states: DeviceStatus[] = []
  const events: Workbench['events'] = []
  const key = linkKey({ tcp: ADDRESS })
  const supervisor = supervise({
    devices,
    platform: world,
    openLink: (link, signal) =>
      linkKey(link) === key ? port.open(signal) : Promise.reject(new LinkFault('refused', 'nothing there')),
    onState: (status) => void states.push(status),
    onEvent: (deviceId, event) => void events.push({ deviceId, event }),
  })

  async function until(condition: () => boolean, limitMs = 60_000): Promise<void> {
    for (let waited = 0; !condition(); waited += 10) {
      if (waited >= limitMs)
        throw new Error(`not within ${limitMs} ms of virtual time; ${JSON.stringify(supervisor.statuses)}`)
      await world.advance(10)
    }
  }

  return {
    world,
    board,
    port,
    supervisor,
    states,
    events,
    release: (deviceId = 'door') => supervisor.execute(deviceId, RELEASE, forEver()),
    untilReady: (deviceId = 'door') => until(() => supervisor.status(deviceId)?.state === 'ready'),
    until,
  }
}

/** The values that were written to one coil. */
export function writesTo(board: RelayBoard, coil: number): boolean[] {
  return board.writes.filter((write) => write.coil === coil).map((write) => write.on)
}
