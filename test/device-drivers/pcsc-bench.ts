import type { DeviceEvent } from '../../device-drivers/kit/device.ts'
import type { DeviceStatus } from '../../device-drivers/device-connection.ts'
import { supervise } from '../../device-drivers/supervisor.ts'
import { memoryPort } from '../../device-drivers/transports/memory.ts'
import { PcscdSimulator, type PcscdOptions } from '../../simulators/devices/pcsc.ts'
import { virtualPlatform } from '../verification/simulation/virtual/virtual-platform.ts'
import { entries, forEver } from './workbench.ts'

export const READER = 'ACS ACR1552 1S CL Reader PICC [000123] 00 00'

/** The events without their times. */
export type ShortEvent = { tag: string; technology?: string } | { gone: string } | { scan: string } | { fault: string }

/** An event, reduced to the fields that these tests compare. */
export function shortEventsOf(event: DeviceEvent): ShortEvent[] {
  if (event.type === 'tags')
    return event.reads.map(({ tag, technology }) => ({
      tag: 'tagUid' in tag ? tag.tagUid : tag.epc,
      ...(technology ? { technology } : {}),
    }))
  if (event.type === 'tag_gone') return [{ gone: 'tagUid' in event.tag ? event.tag.tagUid : event.tag.epc }]
  if (event.type === 'scan') return [{ scan: event.text }]
  return event.type === 'fault' ? [{ fault: event.detail }] : []
}

/** The driver and a simulated pcscd with one reader, joined in memory, on a virtual clock. */
export function pcscBench(
  options: { settings?: Record<string, unknown>; pcscd?: Partial<PcscdOptions>; plugged?: boolean } = {},
) {
  const world = virtualPlatform()
  const pcscd = new PcscdSimulator({ platform: world, ...options.pcscd })
  if (options.plugged !== false) pcscd.plug(READER)
  const port = memoryPort((link) => void pcscd.serve(link))
  const shortEvents: ShortEvent[] = []
  const states: DeviceStatus[] = []
  const supervisor = supervise({
    devices: entries({ deviceId: 'pad', driver: 'pcsc', link: { pcsc: 'acr1552' }, ...options.settings }),
    platform: world,
    openLink: (_, signal) => port.open(signal),
    onState: (status) => void states.push(status),
    onEvent: (_, event) => void shortEvents.push(...shortEventsOf(event)),
  })
  const status = () => supervisor.status('pad')

  async function until(condition: () => boolean, limitMs = 60_000): Promise<void> {
    for (let waited = 0; !condition(); waited += 10) {
      if (waited >= limitMs)
        throw new Error(`not within ${limitMs} ms of virtual time: ${JSON.stringify([status(), shortEvents])}`)
      await world.advance(10)
    }
  }

  return {
    world,
    pcscd,
    port,
    shortEvents,
    states,
    supervisor,
    status,
    until,
    untilReady: () => until(() => status()?.state === 'ready'),
    /** The events since the last call. */
    news: async (ms = 1_000) => {
      await world.advance(ms)
      return shortEvents.splice(0)
    },
    release: (tagUid?: string, signal = forEver()) =>
      world.settle(supervisor.execute('pad', { kind: 'release', ...(tagUid ? { tag: { tagUid } } : {}) }, signal)),
  }
}
