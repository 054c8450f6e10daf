import { describe, expect, test } from 'vitest'
import type { Platform } from '../../policy/platform.ts'
import type { DriverName } from '../../device-drivers/registry.ts'
import type { CommandResult, DeviceCommand, DeviceEvent } from '../../device-drivers/kit/device.ts'
import type { DeviceStatus } from '../../device-drivers/device-connection.ts'
import { supervise } from '../../device-drivers/supervisor.ts'
import type { Supervisor } from '../../device-drivers/supervisor.ts'
import type { ByteLink } from '../../device-drivers/transports/byte-link.ts'
import { memoryPort } from '../../device-drivers/transports/memory.ts'
import type { MemoryPort } from '../../device-drivers/transports/memory.ts'
import { seededRandom, virtualPlatform } from '../verification/simulation/virtual/virtual-platform.ts'
import type { VirtualPlatform } from '../verification/simulation/virtual/virtual-platform.ts'
import { capabilitiesWith, testCapabilities, undeclared } from './capability-conformance.ts'
import { ADDRESS, entries, forEver } from './workbench.ts'

/** A simulated device with the controls that the suite needs. */
export interface RigDevice {
  serve(link: ByteLink): Promise<void>
  /** Makes the device mute: it receives requests and does not answer. */
  mute(): void
  heal(): void
  /** Causes one event that the driver must report. */
  stir(): unknown
  /** Removes the tag of the last `stir` from the field. Required if the driver reports departures. */
  leave?(): void
  /** True if `event` is the event that `stir` causes. */
  fits(event: DeviceEvent): boolean
  /** Makes a release possible, for example by a tag on the reader. */
  prepare?(): void
  /** Stops the device's own activity, so that the driver's timers can be counted. */
  rest?(): void
  /** Number of releases that the device has executed. */
  releases?(): number
  /** Makes the device execute the next release without an answer. It does not answer repeats of that command either. */
  loseAnswer?(): void
}

export interface Rig {
  /** Title of the row, if a driver has several rows. */
  readonly name?: string
  /** Settings of the device, without `deviceId` and `driver`. Without `link` the device is on TCP. */
  readonly entry: Record<string, unknown>
  device(platform: Platform): RigDevice
  /** A command that moves the device; undefined for a device that cannot move. */
  readonly release?: DeviceCommand
  /** False for a device that answers no requests. */
  readonly answers?: boolean
  /** State of a device that is mute from the start; default `degraded`. A mute pcscd makes its readers `absent`. */
  readonly muteIs?: 'degraded' | 'absent'
  /** Maximum time until the driver detects a mute device, ms; default 5,000. */
  readonly noticedWithinMs?: number
}

const ID = 'thing'
const LONGEST_PAUSE_MS = 15_000
const BACK_WITHIN_MS = LONGEST_PAUSE_MS + 6_000

interface Bench {
  readonly world: VirtualPlatform
  readonly device: RigDevice
  readonly port: MemoryPort
  readonly supervisor: Supervisor
  readonly states: DeviceStatus[]
  readonly events: DeviceEvent[]
  readonly tries: number[]
  /** Cuts the link at the n-th chunk from now on, counted in both directions; Infinity: never. */
  cutAt(chunks: number): void
  /** Number of chunks on the link so far, in both directions. */
  readonly chunks: number
  /** Replaces the bytes in both directions by noise, as at a wrong speed. */
  scramble(on: boolean): void
  state(): string
  release(): Promise<CommandResult>
  until(condition: () => boolean, limitMs?: number): Promise<void>
  ready(): Promise<void>
}

function openBench(driver: DriverName, rig: Rig, seed: number): Bench {
  const world = virtualPlatform({ seed })
  const random = seededRandom(seed + 99)
  const device = rig.device(world)
  const port = memoryPort((link) => void device.serve(link))
  const tries: number[] = []
  const states: DeviceStatus[] = []
  const events: DeviceEvent[] = []
  let left = Infinity
  let chunks = 0
  let scrambled = false

  /** True when the link was cut at this chunk. */
  function cutNow(): boolean {
    chunks++
    if (--left > 0) return false
    left = Infinity
    port.cut()
    return true
  }
  const carried = (bytes: Uint8Array) => (scrambled ? random.bytes(bytes.length) : bytes)

  async function open(signal: AbortSignal): Promise<ByteLink> {
    tries.push(world.clock.elapsed())
    const near = await port.open(signal)
    async function* bytes() {
      for await (const chunk of near.bytes) {
        cutNow()
        yield carried(chunk)
      }
    }
    return {
      bytes: { [Symbol.asyncIterator]: bytes },
      write: (data, s) => {
        cutNow()
        return near.write(carried(data), s)
      },
      close: near.close,
    }
  }

  const supervisor = supervise({
    devices: entries({ deviceId: ID, link: { tcp: ADDRESS }, ...rig.entry, driver }),
    platform: world,
    openLink: (_, signal) => open(signal),
    onState: (status) => void states.push(status),
    onEvent: (_, event) => void events.push(event),
  })

  async function until(condition: () => boolean, limitMs = BACK_WITHIN_MS): Promise<void> {
    for (let waited = 0; !condition(); waited += 10) {
      if (waited >= limitMs)
        throw new Error(`not within ${limitMs} ms of virtual time: ${JSON.stringify(supervisor.statuses)}`)
      await world.advance(10)
    }
  }
  const state = () => supervisor.status(ID)?.state ?? ''

  return {
    world,
    device,
    port,
    supervisor,
    states,
    events,
    tries,
    state,
    until,
    cutAt: (n) => void (left = n),
    get chunks() {
      return chunks
    },
    scramble: (on) => void (scrambled = on),
    release: () => supervisor.execute(ID, rig.release ?? { kind: 'release' }, forEver()),
    async ready() {
      await until(() => state() === 'ready')
      device.prepare?.()
      await world.advance(100)
    },
  }
}

/**
 * Conformance tests of a driver on a byte link, for any protocol. Pass the driver's name as a literal, because
 * `driver-parts.test.ts` searches for it.
 */
export function describeDriver(driver: DriverName, rig: Rig): void {
  const name = rig.name ?? driver
  const answers = rig.answers ?? true
  const bench = (seed = 1) => openBench(driver, rig, seed)

  describe(`${name} driver`, () => {
    test('opens, identifies, becomes ready and reports events, also between noise', async () => {
      const b = bench()
      await b.ready()
      expect(b.states.map((status) => status.state)).toEqual(['opening', 'identifying', 'ready'])
      for (let i = 0; i < 3; i++) {
        const before = b.events.length
        await b.device.stir()
        await b.until(() => b.events.slice(before).some((event) => b.device.fits(event)), 3_000)
        await b.world.advance(2_000)
      }
    })

    if (answers)
      test('is not ready on a line that only repeats what the agent sends', async () => {
        const repeats = (link: ByteLink) => {
          void (async () => {
            for await (const chunk of link.bytes) await link.write(chunk, forEver())
          })().catch(() => {})
          return Promise.resolve()
        }
        const b = openBench(driver, { ...rig, device: (platform) => ({ ...rig.device(platform), serve: repeats }) }, 1)
        await b.world.advance(60_000)
        expect(b.states.filter(({ state }) => state === 'ready')).toEqual([])
      })

    testCapabilities(driver, rig.entry, rig.release !== undefined)

    test('emits only events that its capabilities announce', async () => {
      const b = bench()
      await b.ready()
      await b.device.stir()
      await b.until(() => b.events.some((event) => b.device.fits(event)), 3_000)
      b.device.leave?.()
      await b.world.advance(5_000)
      const can = capabilitiesWith(driver, rig.entry)
      expect(new Set(b.events.flatMap((event) => undeclared(can, event) ?? []))).toEqual(new Set())
      if (can.departures === 'reported')
        expect(
          b.events.some(({ type }) => type === 'tag_gone'),
          "`departures` is 'reported': send `tag_gone`, and give the conformance row `leave`",
        ).toBe(true)
    })

    test('recovers when the plug is pulled in any state, without a release', async () => {
      const first = bench()
      await first.ready()
      for (let chunk = 1; chunk <= first.chunks + 3; chunk++) {
        const b = bench(chunk)
        b.cutAt(chunk)
        await b.world.advance(3_000)
        b.cutAt(Infinity)
        await b.until(() => b.state() === 'ready')
        await b.device.stir()
        await b.until(() => b.events.some((event) => b.device.fits(event)), 3_000)
        expect(b.device.releases?.() ?? 0).toBe(0)
        await b.world.settle(b.supervisor.stop())
      }
    })

    test('retries for a day at most every 15 s, never in step, and then becomes ready without leftover timers', async () => {
      const b = bench()
      await b.ready()
      b.port.unplug()
      b.device.rest?.()
      await b.world.advance(24 * 3_600_000)
      expect(b.state()).toBe('absent')
      const gaps = b.tries.slice(2).map((at, i) => at - (b.tries[i + 1] ?? 0))
      expect(Math.max(...gaps)).toBeLessThanOrEqual(LONGEST_PAUSE_MS)
      expect(new Set(gaps).size).toBeGreaterThan(100)
      b.port.plug()
      await b.until(() => b.state() === 'ready')
      await b.world.settle(b.supervisor.stop())
      b.device.rest?.()
      await b.world.advance(120_000)
      expect(b.world.pending).toBe(0)
    })

    test('stops in any state without leftovers, and stops twice without harm', async () => {
      for (const after of [0, 1, 30, 300]) {
        const b = bench(after + 1)
        await b.world.advance(after)
        if (rig.release) void b.release()
        await b.world.settle(b.supervisor.stop())
        await b.supervisor.stop()
        b.device.rest?.()
        await b.world.advance(120_000)
        expect(b.world.pending).toBe(0)
        expect(b.state()).toBe('stopped')
      }
    })

    if (!answers) return
    test('never becomes ready at a mute device, commands nothing, and recovers when it is healed', async () => {
      const b = bench()
      b.device.mute()
      await b.world.advance(60_000)
      expect(b.states.map((status) => status.state)).not.toContain('ready')
      expect(b.states.map((status) => status.state)).toContain(rig.muteIs ?? 'degraded')
      expect(await b.world.settle(b.release())).toMatchObject({
        outcome: 'failed',
        commanded: false,
        detail: expect.stringMatching(/^not_ready/),
      })
      b.device.heal()
      await b.until(() => b.state() === 'ready')
      expect(b.device.releases?.() ?? 0).toBe(0)
    })

    test('detects a device that becomes mute, reports it, reopens the link, and recovers when it is healed', async () => {
      const b = bench()
      await b.ready()
      b.device.mute()
      await b.until(() => b.state() !== 'ready', rig.noticedWithinMs ?? 5_000)
      b.device.heal()
      await b.until(() => b.state() === 'ready')
      expect(b.tries.length).toBeGreaterThan(1)
    })

    test('reports noise at most once a second at a wrong speed, commands nothing, and recovers at the right one', async () => {
      const b = bench()
      b.scramble(true)
      await b.world.advance(60_000)
      expect(b.states.map((status) => status.state)).not.toContain('ready')
      expect(b.events.filter((event) => event.type === 'noise').length).toBeLessThanOrEqual(61)
      b.scramble(false)
      await b.until(() => b.state() === 'ready')
      expect(b.device.releases?.() ?? 0).toBe(0)
    })
  })

  if (!rig.release) return
  describe(`${name} driver, releases`, () => {
    test('confirms a release and executes it once', async () => {
      const b = bench()
      await b.ready()
      expect(await b.world.settle(b.release())).toMatchObject({ outcome: 'confirmed', commanded: true })
      await b.world.advance(5_000)
      expect(b.device.releases?.()).toBe(1)
    })

    test('releases at most once, never without "commanded" and never later, when the plug is pulled at any moment', async () => {
      const whole = bench()
      await whole.ready()
      const before = whole.chunks
      await whole.world.settle(whole.release())
      await whole.world.advance(500)
      const outcomes = new Set<string>()
      // Covers every chunk of the command, and some chunks of the polling after it.
      const last = whole.chunks - before
      const moments = Array.from({ length: last }, (_, i) => i + 1).filter(
        (chunk) => chunk <= 24 || chunk % Math.ceil(last / 12) === 0,
      )
      for (const chunk of moments) {
        const b = bench(chunk)
        await b.ready()
        b.cutAt(chunk)
        const commandResult = await b.world.settle(b.release())
        const where = `chunk ${chunk}: ${JSON.stringify(commandResult)}`
        const done = b.device.releases?.() ?? 0
        outcomes.add(commandResult.outcome)
        expect(done, where).toBeLessThanOrEqual(commandResult.commanded ? 1 : 0)
        if (commandResult.outcome === 'confirmed') expect(done, where).toBe(1)
        if (commandResult.outcome === 'failed') expect(commandResult.commanded, where).toBe(false)
        await b.world.advance(3_000)
        await b.until(() => b.state() === 'ready')
        await b.world.advance(3_000)
        expect(b.device.releases?.(), where).toBeLessThanOrEqual(Math.max(done, commandResult.commanded ? 1 : 0))
        await b.world.settle(b.supervisor.stop())
      }
      // The test must have reached each kind of outcome.
      expect([...outcomes].sort()).toEqual(expect.arrayContaining(['confirmed', 'unknown']))
    })

    test('reports unknown for a lost answer and never repeats the command, not even after a reconnect', async () => {
      const b = bench()
      await b.ready()
      b.device.loseAnswer?.()
      expect(await b.world.settle(b.release())).toMatchObject({ outcome: 'unknown', commanded: true })
      b.device.heal()
      await b.world.advance(2_000)
      b.supervisor.restart(ID)
      await b.world.advance(20_000)
      await b.until(() => b.state() === 'ready')
      expect(b.device.releases?.()).toBe(1)
    })

    test('runs releases one after the other, and does not command one that is cancelled while it waits', async () => {
      const b = bench()
      await b.ready()
      const giveUp = new AbortController()
      const both = [b.release(), b.supervisor.execute(ID, rig.release ?? { kind: 'release' }, giveUp.signal)]
      giveUp.abort()
      const [first, second] = await b.world.settle(Promise.all(both))
      expect(first).toMatchObject({ outcome: 'confirmed' })
      expect(second).toMatchObject({ outcome: 'failed', commanded: false, detail: expect.stringMatching(/^cancelled/) })
      await b.world.advance(5_000)
      expect(b.device.releases?.()).toBe(1)
    })
  })
}
