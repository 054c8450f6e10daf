import { describe, expect, test } from 'vitest'
import type { DeviceEvent } from '../../device-drivers/kit/device.ts'
import { osdpCodec } from '../../device-drivers/osdp/protocol/frame.ts'
import { supervise } from '../../device-drivers/supervisor.ts'
import { memoryPort } from '../../device-drivers/transports/memory.ts'
import { OSDP_EX_WORKS, OsdpDevice, type OsdpDeviceOptions } from '../../simulators/devices/osdp.ts'
import { virtualPlatform } from '../verification/simulation/virtual/virtual-platform.ts'
import { describeDriver } from './conformance.ts'
import { ADDRESS, entries, forEver, RELEASE } from './workbench.ts'

const KEY = '00112233445566778899AABBCCDDEEFF'
const KEY_BYTES = Uint8Array.from(Buffer.from(KEY, 'hex'))
const ENTRY = { driver: 'osdp', key: KEY, output: 0, confirmInput: 0, pulseMs: 500 }

const ons = (device: OsdpDevice) =>
  device.outputCommands.filter(({ output, control }) => output === 0 && control === 5).length

for (const [name, entry] of Object.entries({
  'osdp with a confirming input': ENTRY,
  'osdp, acknowledged only': { ...ENTRY, confirmInput: undefined },
})) {
  describeDriver('osdp', {
    name,
    entry,
    release: RELEASE,
    device(platform) {
      const device = new OsdpDevice({
        platform,
        key: KEY_BYTES,
        ...(entry.confirmInput === undefined ? { locks: [] } : {}),
      })
      return {
        serve: device.serve,
        mute: () => void device.faults.on({ kind: 'dead' }),
        heal: device.faults.heal,
        stir: () => device.card(Uint8Array.of(4, 1, 2, 3, 4, 5, 6)),
        fits: (event) => event.type === 'tags' && JSON.stringify(event.reads).includes('04010203040506'),
        releases: () => ons(device),
        loseAnswer() {
          device.faults.on({ kind: 'mute', functions: [0x68] })
        },
      }
    },
  })
}

async function ready(
  settings: Record<string, unknown> = {},
  device: Partial<OsdpDeviceOptions> = {},
  wire: (bytes: Uint8Array) => Uint8Array | null = (b) => b,
) {
  const world = virtualPlatform()
  const pd = new OsdpDevice({ platform: world, key: KEY_BYTES, ...device })
  const port = memoryPort(
    (link) =>
      void pd.serve({
        ...link,
        async write(bytes, signal) {
          const carried = wire(bytes)
          if (carried) await link.write(carried, signal)
        },
      }),
  )
  const events: DeviceEvent[] = []
  const supervisor = supervise({
    devices: entries({ deviceId: 'lock', link: { tcp: ADDRESS }, ...ENTRY, ...settings }),
    platform: world,
    openLink: (_, signal) => port.open(signal),
    onEvent: (_, event) => void events.push(event),
  })
  await world.advance(200)
  const state = () => supervisor.status('lock')?.state
  const faults = () => events.flatMap((event) => (event.type === 'fault' ? [event.detail] : []))
  const release = () => world.settle(supervisor.execute('lock', RELEASE, forEver()))
  const signal = (name: 'siren' | 'amber' | 'green', seconds: number) =>
    world.settle(supervisor.execute('lock', { kind: 'signal', signal: name, seconds }, forEver()))
  return { world, pd, port, events, supervisor, state, faults, release, signal }
}

describe('OSDP: the secure channel', () => {
  test('reports the identity and the secure channel', async () => {
    const { supervisor, pd, state, faults } = await ready()
    expect(state()).toBe('ready')
    expect(supervisor.status('lock')?.identity).toEqual({
      description: `OSDP device CAFE01 1.2, address 0 at tcp:${ADDRESS}, in secure channel`,
      firmwareVersion: '3.4.5',
      serialNumber: '1234567',
    })
    expect(pd.isSecure).toBe(true)
    expect(faults()).toEqual([])
  })

  test('is never ready with another key, and names the fix', async () => {
    const { world, supervisor, state } = await ready({ key: 'FF'.repeat(16) })
    expect(supervisor.status('lock')?.detail).toBe(
      'the device has another key; check "key", or set "installMode" while a new device is installed',
    )
    await world.advance(60_000)
    expect(state()).not.toBe('ready')
  })

  // OSDP.Net#193: a device reports the default key although it uses its own.
  test.each([{}, { installMode: true }])(
    'takes a device whose cryptogram is right, whatever its flag says: %j',
    async (s) => {
      const { state, release, pd } = await ready(s, { quirks: { wrongKeyFlag: true } })
      expect(state()).toBe('ready')
      expect(pd.isSecure).toBe(true)
      expect(await release()).toMatchObject({ outcome: 'confirmed' })
    },
  )

  test('names the default key of a new device, and installs its own key', async () => {
    const { supervisor, state, world } = await ready({}, OSDP_EX_WORKS)
    expect(supervisor.status('lock')?.detail).toContain('the device has the default key only')
    await world.advance(60_000)
    expect(state()).not.toBe('ready')
    const installed = await ready({ installMode: true }, OSDP_EX_WORKS)
    expect(installed.state()).toBe('ready')
    expect(installed.pd.key).toEqual(KEY_BYTES)
  })

  test.each([{ echo: true }, { answerMs: 150 }])('works with %j', async (quirks) => {
    const { state, release, world } = await ready({}, { quirks })
    await world.advance(3_000)
    expect(state()).toBe('ready')
    expect(await release()).toMatchObject({ outcome: 'confirmed' })
  })

  test('rejects the default key outside install mode', async () => {
    const { world, state, pd } = await ready({}, { key: null })
    await world.advance(60_000)
    expect(state()).not.toBe('ready')
    expect(pd.key).toBeNull()
  })

  test('gives the device its own key in install mode, reports a fault, and uses that key from then on', async () => {
    const { pd, state, faults, port, world } = await ready({ installMode: true }, { key: null })
    expect(state()).toBe('ready')
    expect(pd.key).toEqual(KEY_BYTES)
    expect(pd.isSecure).toBe(true)
    expect(faults()).toEqual([
      'lock is in install mode: remove "installMode" from its settings when it works',
      'lock used the public default key, and receives its own key now',
    ])
    port.cut()
    await world.advance(20_000)
    expect(state()).toBe('ready')
    expect(faults().filter((fault) => fault.includes('default key'))).toHaveLength(1)
  })

  test('allows no channel only by the settings, and reports a fault', async () => {
    const { state, faults, release } = await ready({ key: undefined, insecure: true }, { key: null })
    expect(state()).toBe('ready')
    expect(faults()).toEqual(['lock has no secure channel: anybody with access to its line can open it'])
    expect(await release()).toMatchObject({ outcome: 'confirmed' })
  })

  test('detects a power failure and secures the channel again, without a release', async () => {
    const { world, pd, state } = await ready()
    pd.restart()
    await world.advance(5_000)
    expect(state()).toBe('ready')
    expect(pd.isSecure).toBe(true)
    expect(ons(pd)).toBe(0)
  })

  test('reports unknown for a forged plain NAK to a release', async () => {
    const codec = osdpCodec()
    const forge = (bytes: Uint8Array) => {
      const [frame] = codec.push(bytes)
      if (!frame || armed === 0 || pd.outputCommands.length < armed) return bytes
      armed = 0
      return codec.encode({ ...frame, security: null, mac: null, code: 0x41, data: Uint8Array.of(9) })
    }
    let armed = 0
    const { pd, release, state, world } = await ready({ confirmInput: undefined }, {}, forge)
    armed = pd.outputCommands.length + 1
    expect(await release()).toMatchObject({ outcome: 'unknown', commanded: true })
    await world.advance(5_000)
    expect(state()).toBe('ready')
    expect(ons(pd)).toBe(1)
  })

  test('rejects answers without the channel or with a wrong MAC, and reports them', async () => {
    const codec = osdpCodec()
    let forging = false
    const forge = (bytes: Uint8Array) => {
      const [frame] = codec.push(bytes)
      return frame && forging && frame.mac
        ? codec.encode({
            ...frame,
            security: null,
            mac: null,
            code: 0x50,
            data: Uint8Array.of(0, 0, 32, 0, 1, 2, 3, 4),
          })
        : bytes
    }
    const { world, events, faults } = await ready({}, {}, forge)
    forging = true
    await world.advance(1_000)
    expect(events.filter((event) => event.type === 'tags')).toEqual([])
    expect(faults()[0]).toContain('another sender uses this line')
  })
})

describe('OSDP: commands', () => {
  test('releases by one timed output that the device ends', async () => {
    const { world, pd, release } = await ready()
    expect(await release()).toEqual({
      outcome: 'confirmed',
      commanded: true,
      detail: 'input_changed: input 0 changed to 1',
    })
    expect(pd.outputs[0]).toBe(true)
    await world.advance(600)
    expect(pd.outputs[0]).toBe(false)
    expect(ons(pd)).toBe(1)
  })

  test('repeats a command whose answer is lost; the device executes it once', async () => {
    for (const kind of ['mute', 'garble'] as const) {
      const { pd, release } = await ready({ confirmInput: undefined })
      pd.faults.on({ kind, functions: [0x68], times: 1 })
      expect(await release()).toMatchObject({ outcome: 'confirmed' })
      expect(ons(pd)).toBe(1)
    }
  })

  test('repeats a command that is lost; the device executes it once', async () => {
    const { pd, release } = await ready({ confirmInput: undefined })
    pd.faults.on({ kind: 'dead', functions: [0x68], times: 2 })
    expect(await release()).toMatchObject({ outcome: 'confirmed' })
    expect(ons(pd)).toBe(1)
  })

  test('repeats a command while the device is BUSY; it executes it once', async () => {
    const { pd, release } = await ready({ confirmInput: undefined })
    pd.busy(5)
    expect(await release()).toMatchObject({ outcome: 'confirmed' })
    expect(ons(pd)).toBe(1)
  })

  test('reports a refusal, a missing output and a missing input', async () => {
    const refusing = await ready()
    refusing.pd.faults.on({ kind: 'exception', code: 9, functions: [0x68], times: 1 })
    // A NAK within the channel is authentic.
    expect(await refusing.release()).toMatchObject({ commanded: true })
    expect(ons(refusing.pd)).toBe(0)
    expect((await ready({ output: 7 })).supervisor.status('lock')?.detail).toContain('refuses output 7: NAK 9')
    expect((await ready({ confirmInput: 7 })).supervisor.status('lock')?.detail).toContain('no input 7, only 4')
  })

  test('reports unknown if the input was not read for the length of the pulse', async () => {
    const { pd, release } = await ready({ pulseMs: 100 }, { locks: [] })
    expect(await release()).toMatchObject({ outcome: 'failed', detail: expect.stringMatching(/^no_confirmation/) })
    pd.faults.on({ kind: 'delay', ms: 150, functions: [0x65], after: 1, times: 1 })
    expect(await release()).toMatchObject({ outcome: 'unknown', commanded: true })
  })

  test('commands nothing if the input is 1 before', async () => {
    const { pd, release } = await ready()
    pd.setInput(0, true)
    expect(await release()).toMatchObject({
      outcome: 'failed',
      commanded: false,
      detail: expect.stringMatching(/^input_stuck/),
    })
    expect(ons(pd)).toBe(0)
  })

  test('reports cards of whole bytes as tags, others and on request all as scans', async () => {
    const { world, pd, events } = await ready()
    pd.card(Uint8Array.of(0x04, 0xa1, 0xb2, 0xc3))
    pd.card(Uint8Array.of(0xaa, 0xbb, 0xcc, 0x40), 26)
    await world.advance(500)
    expect(events).toEqual([
      { type: 'tags', reads: [{ tag: { tagUid: '04A1B2C3' }, seenAtMs: expect.any(Number) }] },
      { type: 'scan', text: 'AABBCC40' },
    ])
    const scans = await ready({ cards: 'scans' })
    scans.pd.card(Uint8Array.of(0x04, 0xa1, 0xb2, 0xc3))
    await scans.world.advance(500)
    expect(scans.events).toEqual([{ type: 'scan', text: '04A1B2C3' }])
  })

  test('reports passages and tampering', async () => {
    const { world, pd, events } = await ready({ passageInput: 2 })
    pd.setInput(2, true)
    pd.tamper(true)
    await world.advance(5_000)
    expect(events).toContainEqual({ type: 'passage' })
    expect(events).toContainEqual({ type: 'input', input: 2, on: true })
    expect(events.filter((event) => event.type === 'fault')).toEqual([
      { type: 'fault', detail: 'its housing is open or its sensor says so (tamper)' },
    ])
  })

  test('times siren and lamps on the device, and writes the remaining time after a reconnect', async () => {
    const { world, pd, port, signal } = await ready({ siren: { output: 2 }, amber: { led: 1 } })
    expect(await signal('siren', 60)).toMatchObject({ outcome: 'confirmed' })
    expect(await signal('amber', 5)).toMatchObject({ outcome: 'confirmed' })
    expect(await signal('green', 5)).toMatchObject({ outcome: 'failed', commanded: false })
    expect(pd.outputs[2]).toBe(true)
    expect([...(pd.led ?? [])].slice(1, 9)).toEqual([1, 2, 1, 0, 3, 0, 50, 0])
    pd.restart()
    port.cut()
    await world.advance(20_000)
    expect(pd.outputs[2]).toBe(true)
    await world.advance(60_000)
    expect(pd.outputs[2]).toBe(false)
  })

  test('keeps a lamp as it was switched during the set-up', async () => {
    let confirmed = 0
    for (let at = 4; at <= 12; at++) {
      let [replies, lit]: [number, Promise<unknown> | undefined] = [0, undefined]
      let isCut = false
      const bench = await ready({ siren: { output: 2 }, amber: { led: 1 } }, {}, (bytes) => {
        if (isCut && ++replies === at)
          lit = bench.supervisor.execute('lock', { kind: 'signal', signal: 'amber', seconds: 60 }, forEver())
        return bytes
      })
      bench.pd.restart()
      bench.port.cut()
      isCut = true
      await bench.world.advance(3_000)
      if (!lit) continue
      const { outcome } = (await bench.world.settle(lit)) as { outcome: string }
      if (outcome === 'confirmed') confirmed++
      // The third byte 2 means "set the temporary state".
      if (outcome === 'confirmed') expect([at, bench.pd.led?.[2], bench.pd.led?.[5]]).toEqual([at, 2, 3])
    }
    expect(confirmed).toBeGreaterThan(2)
  })

  test('switches an output off that is on without a pulse, and reports it', async () => {
    const { world, pd, faults } = await ready({ confirmInput: undefined })
    const outputs = pd.outputs as boolean[]
    outputs[0] = true
    await world.advance(5_000)
    expect(pd.outputs[0]).toBe(false)
    expect(faults()).toEqual(['output 0 was on and is switched off again'])
  })

  test('works with checksum instead of CRC', async () => {
    const { state, release } = await ready({ check: 'checksum' })
    expect(state()).toBe('ready')
    expect(await release()).toMatchObject({ outcome: 'confirmed' })
  })

  test('drives eight devices on one line, of which a dead one does not block the others', async () => {
    const world = virtualPlatform()
    const pds = Array.from({ length: 8 }, (_, address) => new OsdpDevice({ platform: world, address, key: KEY_BYTES }))
    const port = memoryPort((line) => {
      // All devices are on one line.
      const ports = pds.map(() => memoryPort(() => {}))
      void ports
      const chunks = pds.map(() => [] as Uint8Array[])
      const wakes = pds.map(() => () => {})
      void (async () => {
        for await (const chunk of line.bytes) {
          chunks.forEach((list, i) => {
            list.push(chunk)
            wakes[i]?.()
          })
        }
      })().catch(() => {})
      pds.forEach((pd, i) => {
        async function* bytes() {
          for (;;) {
            const next = chunks[i]?.shift()
            if (next) yield next
            else await new Promise<void>((resolve) => (wakes[i] = resolve))
          }
        }
        void pd.serve({ bytes: { [Symbol.asyncIterator]: bytes }, write: line.write, close: async () => {} })
      })
    })
    const supervisor = supervise({
      devices: entries(
        ...pds.map((_, address) => ({ deviceId: `lock${address}`, link: { tcp: ADDRESS }, ...ENTRY, address })),
      ),
      platform: world,
      openLink: (_, signal) => port.open(signal),
    })
    await world.advance(5_000)
    expect(supervisor.statuses.map(({ state }) => state)).toEqual(pds.map(() => 'ready'))
    pds[3]?.faults.on({ kind: 'dead' })
    await world.advance(20_000)
    expect(supervisor.statuses.filter(({ state }) => state === 'ready').map(({ deviceId }) => deviceId)).toEqual(
      [0, 1, 2, 4, 5, 6, 7].map((i) => `lock${i}`),
    )
    expect(await world.settle(supervisor.execute('lock5', RELEASE, forEver()))).toMatchObject({ outcome: 'confirmed' })
    expect(pds.map(ons)).toEqual([0, 0, 0, 0, 0, 1, 0, 0])
    expect(port.opened).toBe(1)
  })
})

describe('OSDP: a cabinet with a door', () => {
  const cabinet = () => ready({ pulseMs: 5_000, door: { input: 2, openSeconds: 30 }, siren: { buzzer: true } })
  const doors = (events: DeviceEvent[]) => events.flatMap((event) => (event.type === 'door' ? [event.state] : []))

  test('relocks when the door opens, and reports a door that is left open or forced until it is shut', async () => {
    const { pd, world, events, faults, release } = await cabinet()
    expect(await release()).toMatchObject({ outcome: 'confirmed' })
    expect(pd.outputs[0]).toBe(true)
    pd.setInput(2, true)
    await world.advance(500)
    expect(pd.outputs[0]).toBe(false)
    pd.setInput(2, false)
    await world.advance(60_000)
    expect([doors(events), faults()]).toEqual([['shut', 'open', 'shut'], []])
    await release()
    pd.setInput(2, true)
    await world.advance(32_000)
    pd.setInput(2, false)
    await world.advance(1_000)
    pd.setInput(2, true)
    await world.advance(1_000)
    expect(doors(events).slice(3)).toEqual(['open', 'left_open', 'shut', 'forced'])
    expect(faults()).toEqual(['the door has been open for 30 s', 'the door was opened without a release'])
  })
})
