import { describe, expect, test } from 'vitest'
import type { DeviceCommand, DeviceEvent } from '../../device-drivers/kit/device.ts'
import { EventQueue } from '../../device-drivers/kit/event-queue.ts'
import { isEmergency } from '../../device-drivers/kit/emergency-input.ts'
import { supervise } from '../../device-drivers/supervisor.ts'
import type { ByteLink } from '../../device-drivers/transports/byte-link.ts'
import { memoryPort } from '../../device-drivers/transports/memory.ts'
import { ImpinjReader } from '../../simulators/devices/impinj-iot.ts'
import { llrpReader } from '../../simulators/devices/llrp.ts'
import { mqttBroker } from '../../simulators/devices/mqtt-broker.ts'
import { OsdpDevice } from '../../simulators/devices/osdp.ts'
import { RelayBoard } from '../../simulators/devices/modbus.ts'
import { virtualPlatform, type VirtualPlatform } from '../verification/simulation/virtual/virtual-platform.ts'
import { ZebraReader } from '../../simulators/devices/zebra-iotc.ts'
import { ADDRESS, entries, forEver, RELEASE } from './workbench.ts'

interface Rig {
  serve(link: ByteLink): Promise<void>
  isOpen(): boolean
  sounds(): boolean
  /** Undefined if the driver has no inputs. */
  setInput?(on: boolean): void
  /** Simulates a short power failure, or another loss of the outputs. */
  forget(): void
}

const KEY = '00112233445566778899AABBCCDDEEFF'
const emergency = { input: 2, wiring: 'normally_open' }

const RIGS: Record<string, { entry: Record<string, unknown>; make(platform: VirtualPlatform): Rig }> = {
  modbus: {
    entry: { link: { tcp: ADDRESS }, output: 0, pulseMs: 200, siren: { output: 1 }, emergency },
    make(platform) {
      const board = new RelayBoard({ platform, locks: [] })
      return {
        serve: board.serve,
        isOpen: () => board.coils[0] === true,
        sounds: () => board.coils[1] === true,
        setInput: (on) => board.setInput(2, on),
        forget: board.restart,
      }
    },
  },
  'modbus with a pulse that the board ends': {
    entry: {
      driver: 'modbus',
      link: { tcp: ADDRESS },
      output: 0,
      pulseMs: 200,
      hardwarePulse: 'waveshare',
      siren: { output: 1 },
      emergency,
    },
    make(platform) {
      const board = new RelayBoard({ platform, locks: [], flash: true })
      return {
        serve: board.serve,
        isOpen: () => board.coils[0] === true,
        sounds: () => board.coils[1] === true,
        setInput: (on) => board.setInput(2, on),
        forget: board.restart,
      }
    },
  },
  osdp: {
    entry: { link: { tcp: ADDRESS }, key: KEY, output: 0, siren: { output: 1 }, emergency },
    make(platform) {
      const device = new OsdpDevice({ platform, key: Uint8Array.from(Buffer.from(KEY, 'hex')), locks: [] })
      return {
        serve: device.serve,
        isOpen: () => device.outputs[0] === true,
        sounds: () => device.outputs[1] === true,
        setInput: (on) => device.setInput(2, on),
        forget: device.restart,
      }
    },
  },
  llrp: {
    entry: { link: { tcp: '10.0.0.7:5084' }, release: { gpo: 3 }, siren: { gpo: 1 }, emergency },
    make(platform) {
      const reader = llrpReader({ platform, bootMs: 3_000 })
      return {
        serve: reader.serve,
        isOpen: () => reader.gpos[3] === true,
        sounds: () => reader.gpos[1] === true,
        setInput: (on) => reader.setInput(2, on),
        forget: reader.reboot,
      }
    },
  },
  'impinj-iot': {
    entry: {
      link: { http: '10.0.0.9' },
      password: 'not-the-factory-one',
      release: { gpo: 3 },
      siren: { gpo: 1 },
      emergency,
    },
    make(platform) {
      const reader = new ImpinjReader({ platform })
      return {
        serve: reader.serve,
        isOpen: () => reader.outputs.get(3) === true,
        sounds: () => reader.outputs.get(1) === true,
        setInput: (on) => reader.setInput(2, on),
        forget: reader.reboot,
      }
    },
  },
  'zebra-iotc': {
    entry: { link: { mqtt: '10.0.0.5' }, topics: 'zebra/FX9600F0F4B5', release: { gpo: 3 }, siren: { gpo: 1 } },
    make(platform) {
      const broker = mqttBroker()
      const reader = new ZebraReader({ platform, bus: broker })
      return {
        serve: broker.serve,
        isOpen: () => reader.outputs.get(3) === true,
        sounds: () => reader.outputs.get(1) === true,
        forget: reader.reboot,
      }
    },
  },
}

function bench(name: string, settings: Record<string, unknown> = {}) {
  const rig = RIGS[name]!
  const world = virtualPlatform()
  const device = rig.make(world)
  const port = memoryPort((link) => void device.serve(link))
  const events: DeviceEvent[] = []
  const start = () =>
    supervise({
      devices: entries({ deviceId: 'gate', driver: name, opensInEmergency: true, ...rig.entry, ...settings }),
      platform: world,
      openLink: (_, signal) => port.open(signal),
      onEvent: (_, event) => void events.push(event),
    })
  let supervisor = start()
  const command = (what: DeviceCommand) => supervisor.execute('gate', what, forEver())
  async function until(condition: () => boolean, limitMs = 30_000): Promise<void> {
    for (let waited = 0; !condition(); waited += 10) {
      if (waited >= limitMs) throw new Error(`not within ${limitMs} ms: ${JSON.stringify(supervisor.statuses)}`)
      await world.advance(10)
    }
  }
  return {
    world,
    device,
    port,
    events,
    until,
    command,
    levels: () => events.flatMap((event) => (event.type === 'emergency' ? [event.on] : [])),
    ready: () => until(() => supervisor.status('gate')?.state === 'ready'),
    emergency: (open: boolean, silent = false) => world.settle(command({ kind: 'emergency', open, silent })),
    siren: (seconds: number) => world.settle(command({ kind: 'signal', signal: 'siren', seconds })),
    stop: () => world.settle(supervisor.stop()),
    restart: () => void (supervisor = start()),
  }
}

test('takes no current as an emergency if normally closed, and current if normally open', () => {
  expect(isEmergency({ wiring: 'normally_closed' }, false)).toBe(true)
  expect(isEmergency({ wiring: 'normally_closed' }, true)).toBe(false)
  expect(isEmergency({ wiring: 'normally_open' }, true)).toBe(true)
  expect(isEmergency({ wiring: 'normally_open' }, false)).toBe(false)
})

test('puts an emergency before a flood of events, and queues only its newest level', async () => {
  const queue = new EventQueue()
  for (let i = 0; i < 2_000; i++) queue.put({ type: 'scan', text: String(i) })
  queue.put({ type: 'emergency', on: true })
  queue.put({ type: 'emergency', on: false })
  for (let i = 0; i < 2_000; i++) queue.put({ type: 'scan', text: String(i) })
  queue.end()
  const got: DeviceEvent[] = []
  for await (const event of queue.events) got.push(event)
  expect(got.filter(({ type }) => type === 'emergency')).toEqual([{ type: 'emergency', on: false }])
  expect(got.findIndex(({ type }) => type === 'emergency')).toBeLessThanOrEqual(1)
  // One of the events is a fault with the number of lost events.
  expect(got.length).toBeLessThanOrEqual(1_002)
})

describe.each(Object.keys(RIGS))('%s in an emergency', (name) => {
  test('opens at once, stays open over a release, a power failure and a reconnect, and closes at the end', async () => {
    const b = bench(name)
    await b.ready()
    await b.emergency(false)
    expect(b.device.isOpen()).toBe(false)
    const released = b.command(RELEASE)
    await b.until(() => b.device.isOpen())
    expect(await b.emergency(true)).toMatchObject({ outcome: 'confirmed' })
    await b.world.settle(released)
    await b.world.advance(5_000)
    expect(b.device.isOpen()).toBe(true)
    b.device.forget()
    await b.until(() => !b.device.isOpen(), 5_000)
    await b.until(() => b.device.isOpen())
    b.port.cut()
    await b.world.advance(100)
    await b.ready()
    expect(b.device.isOpen()).toBe(true)
    await b.world.advance(5_000)
    expect(b.device.isOpen()).toBe(true)
    expect(await b.emergency(false)).toMatchObject({ outcome: 'confirmed' })
    expect(b.device.isOpen()).toBe(false)
    await b.world.advance(5_000)
    expect(b.device.isOpen()).toBe(false)
    await b.stop()
  })

  test('opens after the reconnect, and closes if the emergency ended while the device was away', async () => {
    const b = bench(name)
    await b.ready()
    await b.emergency(false)
    b.port.unplug()
    await b.world.advance(3_000)
    await b.emergency(true)
    b.port.plug()
    await b.ready()
    expect(b.device.isOpen()).toBe(true)
    b.port.unplug()
    await b.world.advance(3_000)
    await b.emergency(false)
    b.port.plug()
    await b.ready()
    expect(b.device.isOpen()).toBe(false)
    await b.stop()
  })

  test('keeps the exit open when the agent stops, and until the next agent has read the inputs', async () => {
    const b = bench(name)
    await b.ready()
    await b.emergency(true)
    await b.stop()
    expect(b.device.isOpen()).toBe(true)
    b.restart()
    await b.ready()
    await b.world.advance(5_000)
    expect(b.device.isOpen()).toBe(true)
    await b.emergency(false)
    expect(b.device.isOpen()).toBe(false)
    await b.stop()
  })

  test('silences the siren on request, and allows it again afterwards', async () => {
    const b = bench(name)
    await b.ready()
    await b.emergency(false)
    await b.siren(60)
    expect(b.device.sounds()).toBe(true)
    await b.emergency(true, true)
    await b.until(() => !b.device.sounds(), 1_000)
    expect(await b.siren(60)).toMatchObject({ outcome: 'failed', detail: expect.stringMatching(/^silenced/) })
    expect(b.device.sounds()).toBe(false)
    await b.emergency(false)
    await b.siren(60)
    expect(b.device.sounds()).toBe(true)
    await b.stop()
  })

  test('switches the output off at every connect if the device does not open in an emergency', async () => {
    const b = bench(name, { opensInEmergency: false })
    await b.ready()
    void b.command(RELEASE)
    await b.until(() => b.device.isOpen())
    b.port.cut()
    await b.until(() => !b.device.isOpen(), 20_000)
    await b.stop()
  })
})

describe.each(Object.keys(RIGS).filter((name) => name !== 'zebra-iotc'))('%s with an emergency input', (name) => {
  test('emits the level at each connect and each change', async () => {
    const b = bench(name)
    await b.ready()
    await b.until(() => b.levels().at(-1) === false, 2_000)
    b.device.setInput?.(true)
    await b.until(() => b.levels().at(-1) === true, 200)
    b.port.cut()
    await b.world.advance(100)
    const before = b.levels().length
    b.device.setInput?.(false)
    await b.ready()
    await b.until(() => b.levels().length > before && b.levels().at(-1) === false, 2_000)
    await b.stop()
    await b.world.advance(10_000)
  })

  test('takes no current as an emergency if normally closed', async () => {
    const b = bench(name, { emergency: { input: 2, wiring: 'normally_closed' } })
    await b.ready()
    await b.until(() => b.levels().at(-1) === true, 2_000)
    b.device.setInput?.(true)
    await b.until(() => b.levels().at(-1) === false, 200)
    await b.stop()
  })
})
