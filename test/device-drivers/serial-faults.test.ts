import { describe, expect, test } from 'vitest'
import { randomFraction, type Platform } from '../../policy/platform.ts'
import type { DeviceCommand } from '../../device-drivers/kit/device.ts'
import { supervise } from '../../device-drivers/supervisor.ts'
import type { ByteLink } from '../../device-drivers/transports/byte-link.ts'
import { memoryPort } from '../../device-drivers/transports/memory.ts'
import type { Fault, FaultSwitches } from '../../simulators/devices/faults.ts'
import { M100Pad } from '../../simulators/devices/uhf-m100.ts'
import { OsdpDevice } from '../../simulators/devices/osdp.ts'
import { seededRandom, virtualPlatform } from '../verification/simulation/virtual/virtual-platform.ts'
import { ADDRESS, entries, forEver, RELEASE } from './workbench.ts'

interface Troubled {
  readonly faults: FaultSwitches
  readonly releases: number
  serve(link: ByteLink): Promise<void>
  restart(): void
  /** Prepares a successful release and returns its command. */
  prepare(): DeviceCommand
}

const KEY = '00112233445566778899AABBCCDDEEFF'

const DEVICES: Record<
  string,
  { entry: Record<string, unknown>; codes: readonly number[]; make(platform: Platform): Troubled }
> = {
  osdp: {
    entry: { driver: 'osdp', key: KEY, output: 0, confirmInput: 0 },
    codes: [0x60, 0x61, 0x65, 0x68, 0x68, 0x76, 0x77],
    make(platform) {
      const device = new OsdpDevice({ platform, key: Uint8Array.from(Buffer.from(KEY, 'hex')) })
      return {
        faults: device.faults,
        serve: device.serve,
        restart: device.restart,
        prepare: () => RELEASE,
        get releases() {
          return device.outputCommands.filter(({ control }) => control === 5).length
        },
      }
    },
  },
  'uhf-m100': {
    entry: { driver: 'uhf-m100', deactivate: { method: 'kill', password: '12345678' } },
    codes: [0x03, 0x0c, 0x27, 0x28, 0x65, 0x65],
    make(platform) {
      const pad = new M100Pad({ platform })
      let tags = 0
      return {
        faults: pad.faults,
        serve: pad.serve,
        restart: pad.restart,
        prepare() {
          const epc = `3034${(++tags).toString(16).toUpperCase().padStart(20, '0')}`
          pad.put({ epc, killPassword: '12345678' })
          return { kind: 'release', tag: { epc } }
        },
        get releases() {
          return pad.done.length
        },
      }
    },
  },
}

async function shift(name: string, seed: number, outcomes: Set<string>): Promise<void> {
  const kind = DEVICES[name]
  if (!kind) throw new Error(name)
  const random = seededRandom(seed)
  const below = (n: number) => Math.floor(randomFraction(random) * n)
  const world = virtualPlatform({ seed })
  const device = kind.make(world)
  const port = memoryPort((link) => void device.serve(link))
  const supervisor = supervise({
    devices: entries({ deviceId: 'thing', link: { tcp: ADDRESS }, ...kind.entry }),
    platform: world,
    openLink: (_, signal) => port.open(signal),
  })
  const fault = (): Fault => {
    const kinds: Fault[] = [
      { kind: 'mute' },
      { kind: 'dead' },
      { kind: 'garble' },
      { kind: 'cut-before-answer' },
      { kind: 'cut-after-answer' },
      { kind: 'exception', code: 1 + below(30) },
      { kind: 'delay', ms: below(900) },
      { kind: 'noise', bytes: random.bytes(1 + below(40)) },
    ]
    return {
      ...(kinds[below(kinds.length)] as Fault),
      functions: [kind.codes[below(kind.codes.length)] ?? 0],
      after: below(2),
      times: 1 + below(4),
    }
  }

  for (let step = 0; step < 25; step++) {
    await world.advance(below(700))
    if (below(3) === 0) port.plug()
    const what = below(8)
    if (what < 4) {
      const command = device.prepare()
      await world.advance(100)
      const before = device.releases
      const commandResult = await world.settle(supervisor.execute('thing', command, forEver()))
      await world.advance(2_000)
      const where = `${name}, seed ${seed}: ${JSON.stringify(commandResult)}`
      const done = device.releases - before
      expect(done, where).toBeLessThanOrEqual(commandResult.commanded ? 1 : 0)
      if (commandResult.outcome === 'confirmed') expect(done, where).toBe(1)
      if (commandResult.outcome === 'unknown') expect(commandResult.commanded, where).toBe(true)
      outcomes.add(commandResult.outcome)
    } else if (what < 6) device.faults.on(fault())
    else if (what === 6) [port.cut, port.unplug, device.restart][below(3)]?.()
  }
  device.faults.heal()
  port.plug()
  await world.advance(30_000)
  expect(supervisor.status('thing')?.state, `${name}, seed ${seed}`).toBe('ready')
  const last = device.prepare()
  await world.advance(200)
  expect(await world.settle(supervisor.execute('thing', last, forEver())), `${name}, seed ${seed}`).toMatchObject({
    outcome: 'confirmed',
  })
  await world.settle(supervisor.stop())
  device.restart()
  await world.advance(60_000)
  expect(world.pending, `${name}, seed ${seed}`).toBe(0)
}

describe.each(Object.keys(DEVICES))('a shift with random faults: %s', (name) => {
  test('releases at most once each and only if commanded, and ends ready without timers', async () => {
    const outcomes = new Set<string>()
    for (let seed = 1; seed <= 8; seed++) await shift(name, seed, outcomes)
    // The test must have reached every kind of outcome.
    expect([...outcomes].sort()).toEqual(['confirmed', 'failed', 'unknown'])
  })
})
