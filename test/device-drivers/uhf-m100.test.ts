import { describe, expect, test } from 'vitest'
import type { DeviceEvent } from '../../device-drivers/kit/device.ts'
import { M100 } from '../../device-drivers/uhf-m100/protocol/messages.ts'
import { supervise } from '../../device-drivers/supervisor.ts'
import { memoryPort } from '../../device-drivers/transports/memory.ts'
import { M100_EX_WORKS, M100Pad, type M100PadOptions } from '../../simulators/devices/uhf-m100.ts'
import { virtualPlatform } from '../verification/simulation/virtual/virtual-platform.ts'
import { describeDriver } from './conformance.ts'
import { ADDRESS, entries, forEver } from './workbench.ts'

const EPC = '3074257BF7194E4000001A85'
const OTHER = '30751FEB705C5904E3D50D70'
const PASSWORD = 'DEADBEEF'
const KILL = { method: 'kill', password: PASSWORD }

const stirredEpc = (n: number) => `E280${n.toString(16).toUpperCase().padStart(20, '0')}`

describeDriver('uhf-m100', {
  entry: { deactivate: KILL, powerDbm: 20 },
  release: { kind: 'release', tag: { epc: EPC } },
  device(platform) {
    const pad = new M100Pad({ platform })
    let stirred = 0
    return {
      serve: pad.serve,
      mute: () => void pad.faults.on({ kind: 'dead' }),
      heal: pad.faults.heal,
      stir: () => pad.put({ epc: stirredEpc(++stirred) }),
      leave: () => pad.take(stirredEpc(stirred)),
      fits: (event) =>
        event.type === 'tags' && event.reads.some(({ tag }) => 'epc' in tag && tag.epc.startsWith('E280')),
      prepare: () => pad.put({ epc: EPC, killPassword: PASSWORD }),
      rest: pad.restart,
      releases: () => pad.done.length,
      loseAnswer: () => void pad.faults.on({ kind: 'mute', functions: [0x65] }),
    }
  },
})

async function ready(settings: Record<string, unknown> = {}, options: Partial<M100PadOptions> = {}) {
  const world = virtualPlatform()
  const pad = new M100Pad({ platform: world, ...options })
  const port = memoryPort((link) => void pad.serve(link))
  const events: DeviceEvent[] = []
  const supervisor = supervise({
    devices: entries({ deviceId: 'pad', driver: 'uhf-m100', link: { tcp: ADDRESS }, ...settings }),
    platform: world,
    openLink: (_, signal) => port.open(signal),
    onEvent: (_, event) => void events.push(event),
  })
  await world.advance(20)
  const release = (epc: string) => world.settle(supervisor.execute('pad', { kind: 'release', tag: { epc } }, forEver()))
  return { world, pad, port, events, supervisor, release }
}

describe('an M100 pad', () => {
  test('reports its identity', async () => {
    const { supervisor, pad } = await ready({ powerDbm: 18.5, region: 'europe' })
    expect(supervisor.status('pad')).toMatchObject({
      state: 'ready',
      identity: { description: `UHF reader M100 26dBm V1.0 at tcp:${ADDRESS}`, firmwareVersion: 'V2.3.5' },
    })
    expect(pad.powerDbm).toBe(18.5)
    expect(pad.polling).toBe(true)
  })

  // Firmware with several antennas adds a byte to each notice, so that no EPC of whole words remains.
  test('is degraded while only notices arrive that it cannot read', async () => {
    const { world, pad, supervisor } = await ready()
    const notice = [0xc9, 0x30, 0x00, ...Buffer.from(EPC, 'hex'), 0x12, 0x34, 0x01]
    for (let n = 0; n < 3; n++) {
      expect(supervisor.status('pad')?.state).toBe('ready')
      pad.notice(notice)
      await world.advance(50)
    }
    expect(supervisor.status('pad')).toMatchObject({
      state: 'degraded',
      findings: [{ code: 'unreadable_data', detail: expect.stringContaining('c9 30 00 30 74') }],
    })
    pad.put({ epc: EPC })
    await world.advance(50)
    expect(supervisor.status('pad')?.state).toBe('ready')
  })

  test('is not ready with more power than it supports, and names the setting', async () => {
    const { supervisor, world } = await ready({ powerDbm: 30 })
    expect(supervisor.status('pad')?.detail).toBe(
      'the reader refuses a power of 30 dBm: error 17 (wrong command or parameters); check the settings of pad',
    )
    await world.advance(60_000)
    expect(supervisor.status('pad')?.state).not.toBe('ready')
  })

  test('reports a tag when it comes, every 250 ms while it stays, and when it leaves', async () => {
    const { world, pad, events } = await ready()
    pad.put({ epc: EPC, rssiDbm: -48 })
    await world.advance(1_000)
    pad.take(EPC)
    await world.advance(1_500)
    const reads = events.filter((event) => event.type === 'tags')
    expect(reads[0]).toEqual({
      type: 'tags',
      reads: [{ tag: { epc: EPC }, rssiDbm: -48, seenAtMs: expect.any(Number) }],
    })
    expect(reads.length).toBeGreaterThanOrEqual(4)
    expect(reads.length).toBeLessThanOrEqual(5)
    expect(events.at(-1)).toEqual({ type: 'tag_gone', tag: { epc: EPC } })
    expect(events.filter((event) => event.type === 'tag_gone')).toHaveLength(1)
  })

  test('reports two hundred tags at once', async () => {
    const { world, pad, events } = await ready()
    for (let i = 0; i < 200; i++) pad.put({ epc: `E280${i.toString(16).toUpperCase().padStart(20, '0')}` })
    await world.advance(100)
    const epcs = new Set(
      events.flatMap((event) => (event.type === 'tags' ? event.reads.map(({ tag }) => JSON.stringify(tag)) : [])),
    )
    expect(epcs.size).toBe(200)
  })

  test('restarts polling within a second after it ended or the pad lost power', async () => {
    const { world, pad, events, supervisor } = await ready({ powerDbm: 18 })
    pad.restart()
    pad.put({ epc: EPC })
    await world.advance(1_000)
    expect(pad.powerDbm).toBe(18)
    expect(events.some((event) => event.type === 'tags')).toBe(true)
    // 65,535 polls take 11 minutes.
    await world.advance(12 * 60_000)
    expect(pad.polling).toBe(true)
    expect(supervisor.status('pad')?.state).toBe('ready')
  })

  test('kills only the named tag with the right password, and continues polling', async () => {
    const { world, pad, release } = await ready({ deactivate: KILL })
    pad.put({ epc: EPC, killPassword: '00000001' })
    pad.put({ epc: OTHER, killPassword: PASSWORD })
    await world.advance(50)
    expect(await release(EPC)).toEqual({
      outcome: 'failed',
      commanded: true,
      detail: 'refused: error D0 (the tag refuses: kill, code 0)',
    })
    expect(await release(OTHER)).toEqual({ outcome: 'confirmed', commanded: true, detail: 'acknowledged' })
    expect([pad.tag(EPC)?.alive, pad.tag(OTHER)?.alive, pad.polling]).toEqual([true, false, true])
  })

  test('stops polling when it is closed', async () => {
    const { world, pad, supervisor } = await ready()
    await world.settle(supervisor.stop())
    expect(pad.polling).toBe(false)
  })

  test('switches an EAS bit off', async () => {
    const { world, pad, release } = await ready({ deactivate: { method: 'eas' } })
    pad.put({ epc: EPC })
    await world.advance(50)
    expect(await release(EPC)).toMatchObject({ outcome: 'confirmed' })
    expect(pad.tag(EPC)).toMatchObject({ alive: true, eas: false })
  })

  test('reports unknown for "no such tag" at an EAS command, because the bit may have changed', async () => {
    const { world, pad, release } = await ready({ deactivate: { method: 'eas' } })
    pad.put({ epc: EPC })
    await world.advance(50)
    pad.faults.on({ kind: 'exception', code: 0x1b, functions: [M100.changeEas], times: 1 })
    expect(await release(EPC)).toMatchObject({ outcome: 'unknown', commanded: true })
  })

  test('kills nothing that is absent, unnamed or not allowed by the settings', async () => {
    const { world, pad, release, supervisor } = await ready({ deactivate: KILL })
    expect(await release(EPC)).toMatchObject({
      outcome: 'failed',
      commanded: false,
      detail: expect.stringContaining('does not lie on the reader'),
    })
    expect(await world.settle(supervisor.execute('pad', { kind: 'release' }, forEver()))).toMatchObject({
      outcome: 'failed',
      commanded: false,
    })
    const reading = await ready()
    reading.pad.put({ epc: EPC, killPassword: PASSWORD })
    await reading.world.advance(50)
    expect(await reading.release(EPC)).toMatchObject({
      outcome: 'failed',
      commanded: false,
      detail: expect.stringMatching(/^not_supported/),
    })
    expect([...pad.done, ...reading.pad.done]).toEqual([])
  })

  test('reports "no such tag" at a kill as failed if the tag is read again, else as unknown', async () => {
    const { world, pad, release } = await ready({ deactivate: KILL })
    pad.put({ epc: EPC, killPassword: PASSWORD })
    await world.advance(50)
    pad.faults.on({ kind: 'exception', code: 0x12, functions: [0x65] })
    expect(await release(EPC)).toMatchObject({
      outcome: 'failed',
      commanded: true,
      detail: 'no_confirmation: the tag still answers',
    })
    const taken = release(EPC)
    pad.take(EPC)
    expect(await taken).toMatchObject({ outcome: 'unknown', commanded: true })
  })

  test('reports unknown for a garbled answer to a kill, and kills once', async () => {
    const { world, pad, release } = await ready({ deactivate: KILL })
    pad.put({ epc: EPC, killPassword: PASSWORD })
    await world.advance(50)
    pad.faults.on({ kind: 'garble', functions: [0x65] })
    expect(await release(EPC)).toMatchObject({ outcome: 'unknown', commanded: true })
    await world.advance(30_000)
    expect(pad.done).toHaveLength(1)
  })
})

describe('a module that starts in select mode 1', () => {
  test.each([KILL, { method: 'eas' }])(
    'changes the named tag, not another one in the field: %j',
    async (deactivate) => {
      const { world, pad, release } = await ready({ deactivate }, M100_EX_WORKS)
      pad.put({ epc: OTHER, killPassword: PASSWORD })
      pad.put({ epc: EPC, killPassword: PASSWORD })
      await world.advance(50)
      expect(await release(EPC)).toMatchObject({ outcome: 'confirmed' })
      expect(pad.done.map(({ epc }) => epc)).toEqual([EPC])
      // The module forgets its mode at each power failure.
      pad.restart()
      pad.put({ epc: EPC, killPassword: PASSWORD })
      await world.advance(2_000)
      expect(await release(EPC)).toMatchObject({ outcome: 'confirmed' })
      expect(pad.done.map(({ epc }) => epc)).toEqual([EPC, EPC])
    },
  )

  test('receives no kill if it refuses the mode', async () => {
    const { world, pad, release } = await ready({ deactivate: KILL }, M100_EX_WORKS)
    pad.put({ epc: EPC, killPassword: PASSWORD })
    await world.advance(50)
    pad.faults.on({ kind: 'exception', code: 0x17, functions: [M100.setSelectMode] })
    expect(await release(EPC)).toMatchObject({ outcome: 'failed', commanded: false })
    expect(pad.done).toEqual([])
  })

  test.each([{ answerMs: 300 }, { echo: true }])('works with %j', async (quirk) => {
    const { world, pad, supervisor, release } = await ready({ deactivate: KILL }, { quirks: quirk })
    await world.advance(3_000)
    expect(supervisor.status('pad')?.state).toBe('ready')
    pad.put({ epc: EPC, killPassword: PASSWORD })
    await world.advance(2_000)
    expect(await release(EPC)).toMatchObject({ outcome: 'confirmed' })
  })
})
