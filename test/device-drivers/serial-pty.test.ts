// @module-tag extended
import ModbusRTU from 'modbus-serial'
import { afterEach, describe, expect, test } from 'vitest'
import { linkKey, LinkSettings, openLink } from '../../device-drivers/transports/link-settings.ts'
import { M100Pad } from '../../simulators/devices/uhf-m100.ts'
import { OsdpDevice } from '../../simulators/devices/osdp.ts'
import { scannerSimulator } from '../../simulators/devices/scanner.ts'
import { ThingMagicReader } from '../../simulators/devices/thingmagic.ts'
import { IS_FULL_SIZE } from '../support/full-size.ts'
import { realPlatform } from './platform.ts'
import { hasPty, ptyPair, type PtyPair } from './pty-pair.ts'
import { realBench } from './real-io.ts'
import { forEver, RELEASE } from './workbench.ts'

const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

async function ports(): Promise<PtyPair> {
  const pair = await ptyPair()
  cleanups.push(() => pair.close())
  return pair
}
const settings = (serial: string) => LinkSettings.parse({ serial, baudRate: 9600 })

describe.skipIf(!hasPty)(
  `serial ports of the operating system${hasPty ? '' : ' (skipped: install the package python3)'}`,
  () => {
    test('carries bytes, names the owner of a busy port, and detects unplugging', async () => {
      const pair = await ports()
      const near = await openLink(settings(pair.near), forEver())
      const far = await openLink(settings(pair.far), forEver())
      cleanups.push(
        () => near.close(),
        () => far.close(),
      )
      await near.write(Uint8Array.of(1, 2, 3), forEver())
      const reader = far.bytes[Symbol.asyncIterator]()
      expect([...((await reader.next()).value as Uint8Array)]).toEqual([1, 2, 3])

      await expect(openLink(settings(pair.near), forEver())).rejects.toMatchObject({
        code: 'busy',
        message: expect.stringMatching(
          new RegExp(`^${pair.near}: in use by another program; stop python.*\\(process ${pair.pid}\\)`),
        ),
      })

      const waiting = near.bytes[Symbol.asyncIterator]().next()
      pair.unplug()
      await expect(waiting).rejects.toMatchObject({ code: 'lost' })
      await expect(near.write(Uint8Array.of(1), forEver())).rejects.toMatchObject({ code: 'lost' })
    })

    test('ends its reader when it closes, and can be opened again', async () => {
      const pair = await ports()
      for (let i = 0; i < 3; i++) {
        const link = await openLink(settings(pair.near), forEver())
        const waiting = link.bytes[Symbol.asyncIterator]().next()
        await link.close()
        await link.close()
        expect((await waiting).done).toBe(true)
      }
    })

    test('detects every unplugging right after a read', async () => {
      for (let i = 0; i < (IS_FULL_SIZE ? 15 : 3); i++) {
        const pair = await ptyPair()
        const [near, far] = [
          await openLink(settings(pair.near), forEver()),
          await openLink(settings(pair.far), forEver()),
        ]
        await far.write(Uint8Array.of(i), forEver())
        const reader = near.bytes[Symbol.asyncIterator]()
        expect((await reader.next()).value).toEqual(Buffer.of(i))
        pair.unplug()
        await expect(reader.next()).rejects.toMatchObject({ code: 'lost' })
        await Promise.all([near.close(), far.close()])
        await pair.close()
      }
    })

    test('carries a scanner: scans, then absent when unplugged', async () => {
      const pair = await ports()
      const bench = realBench([
        { deviceId: 'scanner', driver: 'scanner', link: { serial: pair.near, baudRate: 9600 }, feeds: 'door' },
      ])
      cleanups.push(() => bench.supervisor.stop())
      await bench.untilState('scanner', 'ready')
      const scanner = scannerSimulator({ platform: realPlatform })
      const far = await openLink(settings(pair.far), forEver())
      void scanner.serve(far)
      cleanups.push(() => far.close())
      await scanner.scan('4006381333931', ']E0')
      expect(await bench.untilEvent((event) => event.type === 'scan')).toEqual({
        type: 'scan',
        text: '4006381333931',
        symbology: 'ean-13',
      })
      pair.unplug()
      const lost = await bench.untilState('scanner', 'absent')
      expect(lost.detail).toContain(pair.near)
    })

    test('carries a UHF pad: ready, a read, a kill, absent when unplugged', async () => {
      const pair = await ports()
      const pad = new M100Pad({ platform: realPlatform })
      const far = await openLink({ ...settings(pair.far), baudRate: 115_200 }, forEver())
      void pad.serve(far)
      cleanups.push(() => far.close())
      const link = { serial: pair.near, baudRate: 115_200 }
      const bench = realBench([
        { deviceId: 'pad', driver: 'uhf-m100', link, deactivate: { method: 'kill', password: '12345678' } },
      ])
      cleanups.push(() => bench.supervisor.stop())
      await bench.untilState('pad', 'ready')
      const tag = { epc: '3074257BF7194E4000001A85' }
      pad.put({ ...tag, killPassword: '12345678' })
      expect(await bench.untilEvent((event) => event.type === 'tags')).toMatchObject({ reads: [{ tag }] })
      expect(await bench.supervisor.execute('pad', { kind: 'release', tag }, forEver())).toMatchObject({
        outcome: 'confirmed',
      })
      expect(pad.tag(tag.epc)?.alive).toBe(false)
      pair.unplug()
      await bench.untilState('pad', 'absent')
      pad.restart()
    })

    test('carries a ThingMagic module: ready with settings, a tag, a lamp, absent when unplugged', async () => {
      const pair = await ports()
      const reader = new ThingMagicReader({ platform: realPlatform })
      const far = await openLink({ ...settings(pair.far), baudRate: 115_200 }, forEver())
      void reader.serve(far)
      cleanups.push(() => far.close())
      const link = { serial: pair.near, baudRate: 115_200 }
      const bench = realBench([
        { deviceId: 'shelf', driver: 'thingmagic', link, region: 'europe', powerDbm: 20, green: { output: 1 } },
      ])
      cleanups.push(() => bench.supervisor.stop())
      expect((await bench.untilState('shelf', 'ready')).identity).toMatchObject({ firmwareVersion: '01.03.01.47' })
      expect(reader.powerDbm).toBe(20)
      const tag = { epc: '3074257BF7194E4000001A85' }
      reader.put(tag)
      expect(await bench.untilEvent((event) => event.type === 'tags')).toMatchObject({ reads: [{ tag }] })
      reader.take(tag.epc)
      expect(await bench.untilEvent((event) => event.type === 'tag_gone')).toMatchObject({ tag })
      expect(
        await bench.supervisor.execute('shelf', { kind: 'signal', signal: 'green', seconds: 60 }, forEver()),
      ).toMatchObject({ outcome: 'confirmed' })
      expect(reader.outputs.get(1)).toBe(true)
      pair.unplug()
      expect((await bench.untilState('shelf', 'absent')).detail).toContain(pair.near)
      reader.restart()
    })

    test('carries an OSDP lock: secured, a card, a confirmed release', async () => {
      const pair = await ports()
      const key = '00112233445566778899AABBCCDDEEFF'
      const lock = new OsdpDevice({ platform: realPlatform, key: Uint8Array.from(Buffer.from(key, 'hex')) })
      const far = await openLink(settings(pair.far), forEver())
      void lock.serve(far)
      cleanups.push(() => far.close())
      const bench = realBench([
        {
          deviceId: 'lock',
          driver: 'osdp',
          link: { serial: pair.near, baudRate: 9600 },
          key,
          output: 0,
          confirmInput: 0,
        },
      ])
      cleanups.push(() => bench.supervisor.stop())
      expect((await bench.untilState('lock', 'ready')).detail).toContain('in secure channel')
      lock.card(Uint8Array.of(4, 1, 2, 3))
      expect(await bench.untilEvent((event) => event.type === 'tags')).toMatchObject({
        reads: [{ tag: { tagUid: '04010203' } }],
      })
      expect(await bench.supervisor.execute('lock', RELEASE, forEver())).toMatchObject({ outcome: 'confirmed' })
      await bench.supervisor.stop()
      expect(lock.outputs[0]).toBe(false)
    })

    test('carries our Modbus RTU driver and the serial board of modbus-serial', async () => {
      const pair = await ports()
      const coils = Array.from({ length: 8 }, () => false)
      const ons: number[] = []
      const vector = {
        getCoil: (at: number) => coils[at] === true,
        getDiscreteInput: (at: number) => coils[at] === true,
        setCoil: (at: number, on: boolean) => {
          coils[at] = on
          if (on) ons.push(at)
        },
      }
      const server = await new Promise<InstanceType<typeof ModbusRTU.ServerSerial>>((resolve) => {
        // `interval` is the silence that ends a frame.
        const options = { path: pair.far, baudRate: 9600, unitID: 1, interval: 5 }
        const made = new ModbusRTU.ServerSerial(vector, options)
        made.on('initialized', () => resolve(made))
        made.on('error', () => {})
      })
      cleanups.push(() => new Promise<void>((done) => server.close(() => done())))

      const link = { serial: pair.near, baudRate: 9600 }
      const bench = realBench([
        { deviceId: 'door', driver: 'modbus', link, output: 2, confirmInput: 2, pulseMs: 100, pollMs: 20 },
      ])
      cleanups.push(() => bench.supervisor.stop())
      expect((await bench.untilState('door', 'ready')).detail).toBe(
        `Modbus RTU unit 1 at ${linkKey(settings(pair.near))}`,
      )
      expect(await bench.supervisor.execute('door', RELEASE, forEver())).toMatchObject({ outcome: 'confirmed' })
      await bench.untilEvent((event) => event.type === 'input' && !event.on)
      expect(ons).toEqual([2])
      await bench.supervisor.stop()
      expect(coils[2]).toBe(false)
    })
  },
)
