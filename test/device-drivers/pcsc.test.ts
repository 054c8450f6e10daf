import { describe, expect, test } from 'vitest'
import { unhex } from '../../device-drivers/pcsc/protocol/apdu.ts'
import { supervise } from '../../device-drivers/supervisor.ts'
import type { ByteLink } from '../../device-drivers/transports/byte-link.ts'
import { memoryPort } from '../../device-drivers/transports/memory.ts'
import {
  icode,
  ndefRecord,
  ndefTlv,
  ntag,
  plainTag,
  storageAtr,
  type NfcTag,
} from '../../simulators/devices/nfc-tags.ts'
import { PcscdSimulator } from '../../simulators/devices/pcsc.ts'
import { virtualPlatform } from '../verification/simulation/virtual/virtual-platform.ts'
import { pcscBench, READER } from './pcsc-bench.ts'
import { entries, forEver } from './workbench.ts'

const UID = '04A2B3C4D5E680'
const ICODE = 'E00401500A1B2C3D'
const classic = (uid = '9A3B7C11') => plainTag(storageAtr(0x03, 0x0001), uid)
const link = (text: string) => ndefTlv(ndefRecord('U', Uint8Array.of(4, ...new TextEncoder().encode(text))))

async function ready(options: Parameters<typeof pcscBench>[0] = {}) {
  const bench = pcscBench(options)
  await bench.untilReady()
  return bench
}

describe('pcsc: events', () => {
  test('becomes ready with the reader’s name, and reports tags that come and go', async () => {
    const { status, pcscd, news } = await ready()
    expect(status()?.detail).toBe(`NFC reader ${READER}`)
    pcscd.put(READER, classic())
    expect(await news()).toEqual([{ tag: '9A3B7C11', technology: 'MifareClassic' }])
    pcscd.take(READER)
    expect(await news()).toEqual([{ gone: '9A3B7C11' }])
    pcscd.put(READER, plainTag(unhex('3B8180018080'), UID))
    expect(await news()).toEqual([{ tag: UID, technology: 'IsoDep' }])
  })

  test('reports a tag that lies there at the start, and one that was swapped between two reads', async () => {
    const bench = pcscBench()
    bench.pcscd.put(READER, classic())
    await bench.untilReady()
    expect(await bench.news()).toEqual([{ tag: '9A3B7C11', technology: 'MifareClassic' }])
    bench.pcscd.put(READER, classic('01020304'))
    expect(await bench.news()).toEqual([{ gone: '9A3B7C11' }, { tag: '01020304', technology: 'MifareClassic' }])
    bench.pcscd.take(READER)
    bench.pcscd.put(READER, classic('01020304'))
    expect(await bench.news()).toEqual([{ gone: '01020304' }, { tag: '01020304', technology: 'MifareClassic' }])
  })

  test.each([false, true])(
    'starts ISO 15693 UIDs with E0 in both orders of the reader (reversed: %s)',
    async (reversed) => {
      const { pcscd, news } = await ready()
      pcscd.put(READER, icode(ICODE, { reversed }))
      expect(await news()).toEqual([{ tag: ICODE, technology: 'NfcV' }])
    },
  )

  test('ignores a random UID without a fault', async () => {
    const { pcscd, news } = await ready()
    pcscd.put(READER, plainTag(unhex('3B8180018080'), '08A1B2C3'))
    expect(await news()).toEqual([])
    pcscd.put(READER, classic())
    expect(await news()).toHaveLength(1)
  })

  test('reports links and texts of Type 2 and Type 5 tags as scans, unless disabled', async () => {
    const { pcscd, news } = await ready()
    pcscd.put(READER, ntag(UID, link('example.com/r/ABC')))
    expect(await news()).toEqual([{ tag: UID, technology: 'MifareUltralight' }, { scan: 'https://example.com/r/ABC' }])
    pcscd.put(
      READER,
      icode(ICODE, {
        data: ndefTlv(ndefRecord('T', Uint8Array.of(2, ...new TextEncoder().encode('enGTIN 4006381333931')))),
      }),
    )
    expect(await news()).toEqual([{ gone: UID }, { tag: ICODE, technology: 'NfcV' }, { scan: 'GTIN 4006381333931' }])

    const off = await ready({ settings: { ndef: false } })
    off.pcscd.put(READER, ntag(UID, link('example.com')))
    expect(await off.news()).toEqual([{ tag: UID, technology: 'MifareUltralight' }])
  })

  test('resets a tag that states more memory than it has, and reports no text', async () => {
    const { pcscd, news } = await ready()
    const liar = ntag(UID, Uint8Array.of(0x03, 0xff, 0x01, 0x00, 0xd1), 512)
    pcscd.put(READER, liar)
    expect(await news()).toEqual([{ tag: UID, technology: 'MifareUltralight' }])
    pcscd.put(READER, liar)
    expect(await news()).toEqual([{ gone: UID }, { tag: UID, technology: 'MifareUltralight' }])
    // Without the reset, the second reading would need a retry.
    expect(pcscd.log.filter((command) => command === 'connect')).toHaveLength(2)
  })

  test('reads a card after another program released it, and reports an unreadable one once', async () => {
    const { pcscd, news, until, shortEvents } = await ready()
    pcscd.faults.refuse = { command: 'connect', code: 0x8010000b, times: 5 }
    pcscd.put(READER, classic())
    expect(await news()).toEqual([{ tag: '9A3B7C11', technology: 'MifareClassic' }])
    pcscd.take(READER)
    await news()
    pcscd.faults.refuse = { command: 'transmit', code: 0x80100013, times: 3 }
    pcscd.put(READER, classic('01020304'))
    await until(() => shortEvents.length > 0)
    expect(await news(30_000)).toEqual([{ fault: expect.stringMatching(/cannot be read: the reader failed to speak/) }])
    pcscd.put(READER, classic())
    expect(await news()).toEqual([{ tag: '9A3B7C11', technology: 'MifareClassic' }])
  })

  test('reads a card that powers up as soon as it has an ATR', async () => {
    const { pcscd, news } = await ready()
    pcscd.faults.powering = true
    pcscd.put(READER, classic())
    expect(await news()).toEqual([])
    pcscd.faults.powering = false
    expect(await news(11_000)).toHaveLength(1)
  })
})

describe('pcsc: missing services and readers', () => {
  test('names the fix without pcscd, without the reader and with two matching ones, then becomes ready', async () => {
    const bench = pcscBench({ plugged: false })
    const { world, port, pcscd, status, until } = bench
    port.unplug()
    await world.advance(5_000)
    expect(status()).toMatchObject({ state: 'absent' })
    port.plug()
    await until(() => status()?.detail === 'pcscd has no reader; is one plugged in?')
    pcscd.plug('Broadcom 5880 [Contacted SmartCard] 00 00')
    await world.advance(10)
    expect(status()).toMatchObject({
      state: 'absent',
      detail: 'pcscd has no reader "acr1552"; it has "Broadcom 5880 [Contacted SmartCard] 00 00"',
    })
    pcscd.plug(READER)
    pcscd.plug('ACS ACR1552 1S CL Reader SAM [000123] 00 01')
    await world.advance(10)
    expect(status()?.detail).toMatch(/^"acr1552" fits several readers: .*; give more of the name in link\.pcsc$/)
    pcscd.unplug('ACS ACR1552 1S CL Reader SAM [000123] 00 01')
    await world.advance(10)
    expect(status()).toMatchObject({ state: 'ready', detail: `NFC reader ${READER}` })
  })

  test('reports tag_gone when unplugged, and the tag after plugging in', async () => {
    const { pcscd, news, until, status } = await ready()
    pcscd.put(READER, classic())
    await news()
    pcscd.unplug(READER)
    expect(await news()).toEqual([{ gone: '9A3B7C11' }])
    expect(status()).toMatchObject({ state: 'absent', detail: 'pcscd has no reader; is one plugged in?' })
    pcscd.plug(READER)
    await until(() => status()?.state === 'ready', 1_000)
    pcscd.put(READER, classic())
    expect(await news()).toHaveLength(1)
  })

  test('does not report a tag twice after a restart of pcscd, but reports one that was removed', async () => {
    const { pcscd, news, port, untilReady, status, world } = await ready()
    for (const isTaken of [false, true]) {
      if (!isTaken) pcscd.put(READER, classic())
      await news()
      port.unplug()
      await world.advance(20_000)
      expect(status()?.state).toBe('absent')
      if (isTaken) pcscd.take(READER)
      port.plug()
      await untilReady()
      expect(await news()).toEqual(isTaken ? [{ gone: '9A3B7C11' }] : [])
    }
  })

  test('reports tag_gone if pcscd restarts without the reader', async () => {
    const { pcscd, news, port, world } = await ready()
    pcscd.put(READER, classic())
    await news()
    port.unplug()
    await world.advance(1_000)
    pcscd.unplug(READER)
    port.plug()
    expect(await news(20_000)).toEqual([{ gone: '9A3B7C11' }])
  })

  test('slows its retries if pcscd closes the connection at once (polkit), and says so', async () => {
    const bench = pcscBench()
    bench.pcscd.faults.closed = true
    await bench.world.advance(120_000)
    expect(bench.status()?.detail).toMatch(
      /^pcscd closed the connection at once; it does not admit this user \(polkit\)/,
    )
    expect(bench.port.opened).toBeLessThan(20)
    bench.pcscd.faults.closed = false
    await bench.untilReady()
  })

  test.each([
    ['waitReaderStateChange', /waitReaderStateChange within 10 s/],
    ['getReadersState', /getReadersState within 10 s/],
    ['transmit', /transmit within 6 s/],
    ['connect', /connect within 6 s/],
    ['disconnect', /disconnect within 6 s/],
    ['stopWaitingReaderStateChange', /stopWaitingReaderStateChange/],
  ] as const)('reconnects if pcscd does not answer %s', async (command, explanation) => {
    const { pcscd, states, news, until } = await ready()
    pcscd.faults.mute = new Set([command])
    pcscd.put(READER, classic())
    await until(() => states.some((state) => explanation.test(state.detail)))
    pcscd.faults.mute = new Set()
    await until(() => states.at(-1)?.state === 'ready')
    pcscd.take(READER)
    await news(20_000)
    pcscd.put(READER, classic('01020304'))
    expect((await news()).at(-1)).toEqual({ tag: '01020304', technology: 'MifareClassic' })
  })

  test('neither hangs nor hurries at garbage on the socket', async () => {
    for (let seed = 1; seed <= 60; seed++) {
      const world = virtualPlatform({ seed })
      const pcscd = new PcscdSimulator({ platform: world })
      pcscd.plug(READER)
      let isMad = true
      let opened = 0
      const babble = async (from: ByteLink) => {
        for await (const chunk of from.bytes) {
          // Some of this garbage has the right length and valid first answers, so the test also reaches later answers.
          const length = [8, 12, 160, 184 * 16, (chunk[4] ?? 0) * 7][(world.random.bytes(1)[0] ?? 0) % 5] ?? 1
          const bytes = world.random.bytes(length)
          if (seed % 2 === 0) bytes.fill(0, Math.max(0, length - 40))
          await from.write(bytes, forEver())
        }
      }
      const mad = memoryPort((end) => {
        opened++
        void (isMad ? babble(end).catch(() => {}) : pcscd.serve(end))
      })
      const supervisor = supervise({
        devices: entries({ deviceId: 'pad', driver: 'pcsc', link: { pcsc: 'acr1552' } }),
        platform: world,
        openLink: (_, signal) => mad.open(signal),
      })
      await world.advance(60_000)
      expect(opened).toBeLessThan(20)
      isMad = false
      mad.cut()
      await world.advance(40_000)
      expect(supervisor.status('pad')).toMatchObject({ state: 'ready' })
      await world.settle(supervisor.stop())
    }
  })

  test('stops without leftover timers and clients', async () => {
    const { pcscd, world, supervisor } = await ready()
    await world.settle(supervisor.stop())
    await world.advance(60_000)
    expect([world.pending, pcscd.clients]).toEqual([0, 0])
  })
})

describe('pcsc: versions of pcscd', () => {
  test.each([
    ['1.9.9', 4, 4],
    ['2.3.0', 5, 5],
    ['2.4.1', 5, 4],
    ['2.5.1', 6, 4],
  ])('%s (4:%i, takes 4:%i)', async (_, minor, oldest) => {
    const { pcscd, news } = await ready({ pcscd: { minor, oldest } })
    pcscd.put(READER, classic())
    expect(await news()).toHaveLength(1)
  })

  test('names the version of a pcscd that accepts neither', async () => {
    const bench = pcscBench({ pcscd: { minor: 7, oldest: 7 } })
    await bench.world.advance(100)
    expect(bench.status()?.detail).toBe(
      'pcscd speaks protocol 4:7; this agent speaks 4:4 and 4:5 (pcscd 1.8.24 and later)',
    )
  })

  test('sees a change between a read and the request to wait', async () => {
    const { pcscd, news, world } = await ready()
    pcscd.faults.unseen = () => pcscd.put(READER, classic())
    pcscd.plug('Another 01 00')
    await world.advance(100)
    expect(pcscd.faults.unseen).toBeNull()
    expect(await news(100)).toHaveLength(1)
  })

  test.each([0, 8, 184, 1_000, 2_936, 2_944])(
    'sees a change message within the table, at byte %i',
    async (changeAt) => {
      const { pcscd, news, world } = await ready({ pcscd: { minor: 6, oldest: 4, changeAt } })
      const tags: NfcTag[] = [classic(), classic('01020304'), classic('0A0B0C0D')]
      for (const tag of tags) {
        pcscd.faults.race = () => pcscd.put(READER, tag)
        // Wakes the waiting driver, which then reads again.
        pcscd.plug('Another 01 00')
        await world.advance(100)
        expect(pcscd.faults.race).toBeNull()
        expect((await news(500)).at(-1)).toHaveProperty('tag')
      }
    },
  )
})
