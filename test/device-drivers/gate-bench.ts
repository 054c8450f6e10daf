import type { DeviceCommand, DeviceEvent, TagRead } from '../../device-drivers/kit/device.ts'
import type { DeviceStatus } from '../../device-drivers/device-connection.ts'
import { supervise } from '../../device-drivers/supervisor.ts'
import type { Supervisor } from '../../device-drivers/supervisor.ts'
import { memoryPort } from '../../device-drivers/transports/memory.ts'
import type { MemoryPort } from '../../device-drivers/transports/memory.ts'
import { llrpReader } from '../../simulators/devices/llrp.ts'
import type { LlrpReader, LlrpReaderOptions } from '../../simulators/devices/llrp.ts'
import { virtualPlatform } from '../verification/simulation/virtual/virtual-platform.ts'
import type { VirtualPlatform } from '../verification/simulation/virtual/virtual-platform.ts'
import { entries, forEver } from './workbench.ts'

export const GATE = {
  deviceId: 'gate',
  driver: 'llrp',
  link: { tcp: '10.0.0.7:5084' },
  antennas: { inside: [1], outside: [2] },
  siren: { gpo: 1, seconds: 5 },
}
export const EPC = '3034257BF7194E4000001A85'

export interface GateBench {
  readonly world: VirtualPlatform
  readonly reader: LlrpReader
  readonly port: MemoryPort
  readonly supervisor: Supervisor
  readonly states: DeviceStatus[]
  readonly events: DeviceEvent[]
  /** All tag reads so far. */
  reads(): TagRead[]
  faults(): string[]
  state(): DeviceStatus
  execute(command: DeviceCommand, signal?: AbortSignal): ReturnType<Supervisor['execute']>
  siren(seconds: number): ReturnType<Supervisor['execute']>
  untilReady(): Promise<void>
  /** Advances time in steps of 10 ms until `condition` is true. */
  until(condition: () => boolean, limitMs?: number): Promise<void>
}

/** A supervisor and a simulated reader, connected by a memory link, on a virtual clock. */
export function gateBench(
  options: { gate?: Record<string, unknown>; reader?: Partial<LlrpReaderOptions>; seed?: number } = {},
): GateBench {
  const world = virtualPlatform({ seed: options.seed ?? 1 })
  const reader = llrpReader({ platform: world, bootMs: 3_000, ...options.reader })
  const port = memoryPort((link) => void reader.serve(link))
  const states: DeviceStatus[] = []
  const events: DeviceEvent[] = []
  const supervisor = supervise({
    devices: entries({ ...GATE, ...options.gate }),
    platform: world,
    openLink: (_, signal) => port.open(signal),
    onState: (status) => void states.push(status),
    onEvent: (_, event) => void events.push(event),
  })
  const state = () => supervisor.status('gate')!

  async function until(condition: () => boolean, limitMs = 60_000): Promise<void> {
    for (let waited = 0; !condition(); waited += 10) {
      if (waited >= limitMs)
        throw new Error(
          `not within ${limitMs} ms of virtual time; ${JSON.stringify([state(), reader.received.slice(-5)])}`,
        )
      await world.advance(10)
    }
  }

  const execute: GateBench['execute'] = (command, signal = forEver()) => supervisor.execute('gate', command, signal)
  return {
    world,
    reader,
    port,
    supervisor,
    states,
    events,
    reads: () => events.flatMap((event) => (event.type === 'tags' ? event.reads : [])),
    faults: () => events.flatMap((event) => (event.type === 'fault' ? [event.detail] : [])),
    state,
    execute,
    siren: (seconds) => execute({ kind: 'signal', signal: 'siren', seconds }),
    untilReady: () => until(() => state().state === 'ready'),
    until,
  }
}

/** The values that were written to one output. */
export function writesTo(reader: LlrpReader, gpo: number): boolean[] {
  return reader.writes.filter((write) => write.gpo === gpo).map((write) => write.on)
}
