import { describe, expect, test } from 'vitest'
import type { DeviceStatus } from '../../device-drivers/device-connection.ts'
import { supervise } from '../../device-drivers/supervisor.ts'
import { type ByteLink, LinkFault } from '../../device-drivers/transports/byte-link.ts'
import { memoryPort } from '../../device-drivers/transports/memory.ts'
import { RelayBoard } from '../../simulators/devices/modbus.ts'
import { virtualPlatform } from '../verification/simulation/virtual/virtual-platform.ts'
import { fakeDevice } from '../support/fake-device.ts'
import { ADDRESS, entries, forEver, RELEASE, workbench } from './workbench.ts'

const DOOR = { deviceId: 'door', driver: 'modbus', link: { tcp: ADDRESS }, output: 0, confirmInput: 0 }
const path = (states: readonly DeviceStatus[]) => states.map((status) => status.state)

describe('states', () => {
  test('goes from absent to ready', async () => {
    const bench = workbench()
    await bench.untilReady()
    expect(path(bench.states)).toEqual(['opening', 'identifying', 'ready'])
    expect(bench.supervisor.status('door')).toMatchObject({
      driver: 'modbus',
      detail: `Modbus TCP unit 1 at tcp:${ADDRESS}`,
      identity: { description: `Modbus TCP unit 1 at tcp:${ADDRESS}` },
    })
  })

  test('reports a missing device as absent with the reason, and fails its commands', async () => {
    const bench = workbench()
    bench.port.unplug()
    await bench.world.advance(1_000)
    expect(bench.supervisor.status('door')).toMatchObject({ state: 'absent', detail: 'the memory port is unplugged' })
    const detail = 'not_ready: absent: the memory port is unplugged'
    expect(await bench.release()).toEqual({ outcome: 'failed', commanded: false, detail })
    expect(await bench.supervisor.execute('nobody', RELEASE, forEver())).toMatchObject({
      outcome: 'failed',
      commanded: false,
    })
  })

  test('reports a board that is silent from the start as degraded', async () => {
    const bench = workbench()
    bench.board.faults.on({ kind: 'dead' })
    await bench.world.advance(60_000)
    expect(bench.supervisor.status('door')?.state).not.toBe('ready')
    expect(path(bench.states)).not.toContain('ready')
    bench.board.faults.heal()
    await bench.untilReady()
  })

  test('names the setting if the board lacks the output', async () => {
    const bench = workbench({ door: { output: 9 } })
    await bench.world.advance(1_000)
    expect(bench.states.find((status) => status.state === 'degraded')?.detail).toBe(
      'unit 1 refuses output 9: exception 2 (illegal data address); check the settings of door',
    )
  })

  test('stays connected but degraded while a person must change something, and releases nothing', async () => {
    const world = virtualPlatform()
    const fault = { code: 'reader_mode', detail: 'set the mode to X', isWarning: false } as const
    const warning = { code: 'reader_session', detail: 'use session 0', isWarning: true } as const
    const fake = fakeDevice(() => world.clock.elapsed())
    const device = {
      ...fake.device,
      identify: async () => ({ description: 'a reader', findings: [fault, warning] }),
    }
    const states: DeviceStatus[] = []
    const supervisor = supervise({
      devices: entries(DOOR),
      platform: world,
      openDevice: () => device,
      onState: (status) => void states.push(status),
    })
    await world.advance(100)
    expect(supervisor.status('door')).toMatchObject({
      state: 'degraded',
      detail: 'set the mode to X',
      findings: [fault, warning],
    })
    expect((await supervisor.execute('door', RELEASE, forEver())).detail).toBe('not_ready: degraded: set the mode to X')
    const siren = { kind: 'signal', signal: 'siren', seconds: 1 } as const
    expect((await supervisor.execute('door', siren, forEver())).outcome).toBe('confirmed')
    expect(fake.commands).toEqual([siren])
    fake.emit({ type: 'finding_over', code: 'reader_mode' })
    await world.advance(100)
    expect(supervisor.status('door')).toMatchObject({ state: 'ready', detail: 'a reader', findings: [warning] })
    const filters = { code: 'reader_filters', detail: 'set the time to live to 0', isWarning: false } as const
    fake.emit({ type: 'finding', finding: filters })
    await world.advance(100)
    expect(supervisor.status('door')).toMatchObject({ state: 'degraded', findings: [warning, filters] })
    expect(path(states)).toEqual(['opening', 'identifying', 'degraded', 'ready', 'degraded'])
    await supervisor.stop()
  })

  test('shows names of a device without control characters', async () => {
    const world = virtualPlatform()
    const fake = fakeDevice(() => world.clock.elapsed())
    const identify = async () => ({ description: 'FX\0\n9600 ü', firmwareVersion: '1.2\0', serialNumber: 'a\u009bb' })
    const supervisor = supervise({
      devices: entries(DOOR),
      platform: world,
      openDevice: () => ({ ...fake.device, identify }),
    })
    await world.advance(100)
    expect(supervisor.status('door')).toMatchObject({
      detail: 'FX 9600 ü',
      identity: { description: 'FX 9600 ü', firmwareVersion: '1.2', serialNumber: 'a b' },
    })
    await supervisor.stop()
  })

  test('is degraded after three lost polls, reopens and is ready again', async () => {
    const bench = workbench()
    await bench.untilReady()
    bench.board.faults.on({ kind: 'dead' })
    const from = bench.world.clock.elapsed()
    await bench.until(() => bench.supervisor.status('door')?.state !== 'ready')
    expect(bench.world.clock.elapsed() - from).toBeLessThan(2_000)
    bench.board.faults.heal()
    await bench.untilReady()
    expect(bench.port.opened).toBeGreaterThan(1)
  })

  test('watches a board without inputs by its outputs', async () => {
    const bench = workbench({ door: { confirmInput: undefined } })
    await bench.untilReady()
    bench.board.faults.on({ kind: 'dead' })
    await bench.until(() => bench.supervisor.status('door')?.state !== 'ready', 6_000)
  })

  test('tolerates two lost polls', async () => {
    const bench = workbench()
    await bench.untilReady()
    bench.board.faults.on({ kind: 'dead', times: 2 })
    await bench.world.advance(5_000)
    expect(path(bench.states)).toEqual(['opening', 'identifying', 'ready'])
  })
})

describe('reconnecting', () => {
  test('becomes ready after a day within the longest pause', async () => {
    const bench = workbench()
    await bench.untilReady()
    bench.port.unplug()
    await bench.world.advance(24 * 3_600_000)
    expect(bench.supervisor.status('door')?.state).toBe('absent')
    expect(bench.world.pending).toBeLessThan(20)
    bench.port.plug()
    const from = bench.world.clock.elapsed()
    await bench.untilReady()
    expect(bench.world.clock.elapsed() - from).toBeLessThan(16_000)
  })

  test('spreads retries between half a ceiling and the ceiling, at most 15 s', async () => {
    const world = virtualPlatform({ seed: 3 })
    const tries: number[] = []
    const openLink = async (): Promise<ByteLink> => {
      tries.push(world.clock.elapsed())
      throw new LinkFault('refused', 'nothing there')
    }
    supervise({ devices: entries(DOOR), platform: world, openLink })
    await world.advance(600_000)
    const gaps = tries.slice(1).map((at, i) => at - (tries[i] ?? 0))
    expect(gaps[0]).toBeGreaterThanOrEqual(125)
    expect(gaps[0]).toBeLessThanOrEqual(250)
    expect(Math.max(...gaps)).toBeLessThanOrEqual(15_000)
    for (const gap of gaps.slice(8)) expect(gap).toBeGreaterThanOrEqual(7_500)
    expect(new Set(gaps).size).toBeGreaterThan(10)
  })

  test('slows down at a link that opens and ends at once', async () => {
    const world = virtualPlatform()
    let opened = 0
    const port = memoryPort((link) => {
      opened++
      void link.close()
    })
    supervise({ devices: entries(DOOR), platform: world, openLink: (_, signal) => port.open(signal) })
    await world.advance(60_000)
    expect(opened).toBeGreaterThan(3)
    expect(opened).toBeLessThan(40)
  })

  test('gives up an attempt to open after 5 s and retries', async () => {
    const world = virtualPlatform()
    let tries = 0
    const openLink = (_: unknown, signal: AbortSignal): Promise<ByteLink> =>
      new Promise((_resolve, reject) => {
        tries++
        signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
      })
    const supervisor = supervise({ devices: entries(DOOR), platform: world, openLink })
    await world.advance(30_000)
    expect(tries).toBeGreaterThan(2)
    expect(supervisor.status('door')?.state).toBe('absent')
  })

  test('leaves no timers after two hundred reconnects', async () => {
    const bench = workbench({ door: { pollMs: 1_000 } })
    for (let i = 0; i < 200; i++) {
      await bench.untilReady()
      await bench.world.advance(15_100)
      bench.port.cut()
      await bench.world.advance(10)
    }
    expect(bench.world.pending).toBeLessThan(20)
  })
})

describe('listeners', () => {
  test('survives a listener that throws or rejects', async () => {
    const world = virtualPlatform()
    const board = new RelayBoard({ platform: world })
    const port = memoryPort((link) => void board.serve(link))
    const errors: unknown[] = []
    const supervisor = supervise({
      devices: entries({ ...DOOR, passageInput: 5 }),
      platform: world,
      openLink: (_, signal) => port.open(signal),
      onState: () => {
        throw new Error('state')
      },
      onEvent: () => Promise.reject(new Error('event')),
      onListenerError: (error) => {
        errors.push(error)
        throw new Error('and this one too')
      },
    })
    await world.advance(1_000)
    board.setInput(5, true)
    await world.advance(1_000)
    expect(supervisor.status('door')?.state).toBe('ready')
    expect(errors.map(String)).toContain('Error: event')
    expect((await world.settle(supervisor.execute('door', RELEASE, forEver()))).outcome).toBe('confirmed')
  })
})

describe('commands', () => {
  test('restarts a device by closing its link', async () => {
    const bench = workbench()
    await bench.untilReady()
    expect(bench.supervisor.restart('door')).toBe(true)
    expect(bench.supervisor.restart('nobody')).toBe(false)
    await bench.until(() => bench.port.opened === 2)
    await bench.untilReady()
  })

  test('stops while opening, while absent and twice', async () => {
    const bench = workbench()
    bench.port.unplug()
    await bench.world.advance(5_000)
    const first = bench.supervisor.stop()
    expect(bench.supervisor.stop()).toBe(first)
    await bench.world.settle(first)
    await bench.world.advance(60_000)
    expect(bench.world.pending).toBe(0)
    expect(bench.supervisor.status('door')?.state).toBe('stopped')
  })
})
