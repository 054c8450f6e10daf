// @module-tag extended
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { DeviceEvent } from '../../device-drivers/kit/device.ts'
import { unhex } from '../../device-drivers/pcsc/protocol/apdu.ts'
import { openPcscChild } from '../../device-drivers/transports/pcsc-library/child-link.ts'
import { icode, ndefRecord, ndefTlv, ntag, plainTag, storageAtr } from '../../simulators/devices/nfc-tags.ts'
import { ROOT } from '../house/sources.ts'
import { realBench } from './real-io.ts'
import { forEver } from './workbench.ts'
import { NO_VPCD, vpcdStation } from './vpcd-station.ts'
import type { VpcdStation } from './vpcd-station.ts'

const NAME = 'Virtual PCD 00 00'
const NO_PACKAGE = existsSync(join(ROOT, 'node_modules/nfc-pcsc'))
  ? ''
  : ' (skipped: run npm install --no-save -P nfc-pcsc@0.8.1)'
const isTag = (uid: string) => (event: DeviceEvent) =>
  event.type === 'tags' && event.reads.some(({ tag }) => 'tagUid' in tag && tag.tagUid === uid)
const isGone = (uid: string) => (event: DeviceEvent) =>
  event.type === 'tag_gone' && 'tagUid' in event.tag && event.tag.tagUid === uid

describe.skipIf(NO_VPCD !== null)(`the real pcscd${NO_VPCD === null ? '' : ` (skipped: ${NO_VPCD})`}`, () => {
  let station: VpcdStation
  const cleanups: (() => Promise<unknown>)[] = []
  beforeAll(async () => {
    station = await vpcdStation()
    await station.startPcscd()
  })
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
  })
  afterAll(() => station?.close())

  async function pads() {
    const link = (slot: string) => ({ pcsc: `Virtual PCD 00 ${slot}`, socket: station.socket })
    const bench = realBench([
      { deviceId: 'pad', driver: 'pcsc', link: link('00') },
      { deviceId: 'second', driver: 'pcsc', link: link('01') },
    ])
    cleanups.push(() => bench.supervisor.stop())
    await bench.untilState('pad', 'ready')
    await bench.untilState('second', 'ready')
    return bench
  }

  test('reads a tag with a link, and an ISO 15693 card in the second slot meanwhile', async () => {
    const bench = await pads()
    expect(bench.supervisor.status('pad')?.detail).toBe(`NFC reader ${NAME}`)
    const takeFirst = station.insert(
      0,
      ntag(
        '04A2B3C4D5E680',
        ndefTlv(ndefRecord('U', Uint8Array.of(4, ...new TextEncoder().encode('example.com/r/1')))),
      ),
    )
    expect(await bench.untilEvent(isTag('04A2B3C4D5E680'))).toMatchObject({
      reads: [{ technology: 'MifareUltralight', seenAtMs: expect.any(Number) }],
    })
    expect(await bench.untilEvent((event) => event.type === 'scan')).toEqual({
      type: 'scan',
      text: 'https://example.com/r/1',
    })

    const takeSecond = station.insert(1, icode('E00401500A1B2C3D', { reversed: true }))
    expect(await bench.untilEvent(isTag('E00401500A1B2C3D'))).toMatchObject({ reads: [{ technology: 'NfcV' }] })
    takeFirst()
    await bench.untilEvent(isGone('04A2B3C4D5E680'))
    takeSecond()
    await bench.untilEvent(isGone('E00401500A1B2C3D'))
    expect(bench.events.filter((event) => event.type === 'fault')).toEqual([])
  })

  test('switches the EAS bit of a tag off', async () => {
    const bench = await pads()
    const tag = icode('E0040150AABBCCDD', { transparent: true })
    const take = station.insert(0, tag)
    await bench.untilEvent(isTag('E0040150AABBCCDD'))
    const release = () =>
      bench.supervisor.execute('pad', { kind: 'release', tag: { tagUid: 'E0040150AABBCCDD' } }, forEver())
    expect(await release()).toMatchObject({ outcome: 'confirmed', commanded: true })
    expect(tag.eas).toBe(false)
    take()
    await bench.untilEvent(isGone('E0040150AABBCCDD'))
    expect(await release()).toMatchObject({ outcome: 'failed', commanded: false })
  })

  test.skipIf(NO_PACKAGE !== '')(
    `reads and releases tags by nfc-pcsc in a process of its own, also after a crash of pcscd${NO_PACKAGE}`,
    async () => {
      const bench = realBench(
        [{ deviceId: 'pad', driver: 'pcsc', link: { pcsc: NAME, socket: station.socket, via: 'nfc-pcsc' } }],
        {
          openLink: (_, signal) =>
            openPcscChild(
              () =>
                spawn(process.execPath, [join(ROOT, 'dist/host/pcsc-child.js')], {
                  env: { ...process.env, PCSCLITE_CSOCK_NAME: station.socket },
                  stdio: 'pipe',
                }),
              signal,
            ),
        },
      )
      cleanups.push(() => bench.supervisor.stop())
      await bench.untilState('pad', 'ready')
      const take = station.insert(0, icode('E0040150AABB0001', { transparent: true }))
      expect(await bench.untilEvent(isTag('E0040150AABB0001'))).toMatchObject({ reads: [{ technology: 'NfcV' }] })
      const release = { kind: 'release', tag: { tagUid: 'E0040150AABB0001' } } as const
      expect(await bench.supervisor.execute('pad', release, forEver())).toMatchObject({ outcome: 'confirmed' })
      take()
      await bench.untilEvent(isGone('E0040150AABB0001'))
      await station.killPcscd()
      await bench.untilState('pad', 'absent')
      await station.startPcscd()
      await bench.untilState('pad', 'ready')
      const takeSecond = station.insert(0, plainTag(storageAtr(0x03, 0x0001), '2A2B2C2D'))
      expect(await bench.untilEvent(isTag('2A2B2C2D'))).toMatchObject({ reads: [{ technology: 'MifareClassic' }] })
      takeSecond()
      await bench.untilEvent(isGone('2A2B2C2D'))
    },
  )

  test('recovers after pcscd was killed and restarted', async () => {
    const bench = await pads()
    for (const uid of ['0A0B0C0D', '1A1B1C1D']) {
      const take = station.insert(0, plainTag(storageAtr(0x03, 0x0001), uid))
      expect(await bench.untilEvent(isTag(uid))).toMatchObject({ reads: [{ technology: 'MifareClassic' }] })
      take()
      await bench.untilEvent(isGone(uid))
      if (uid === '1A1B1C1D') break
      await station.killPcscd()
      expect((await bench.untilState('pad', 'absent')).detail).toMatch(/pcscd is not running; start it/)
      await station.startPcscd()
      await bench.untilState('pad', 'ready')
    }
  })

  test('ignores a card with a random UID, and lists the readers if the configured one is missing', async () => {
    const bench = await pads()
    const take = station.insert(0, plainTag(unhex('3B8180018080'), '08A1B2C3'))
    const other = station.insert(1, plainTag(unhex('3B8180018080'), '04112233445566'))
    await bench.untilEvent(isTag('04112233445566'))
    take()
    other()
    await bench.untilEvent(isGone('04112233445566'))
    expect(bench.events.filter((event) => event.type === 'tags')).toHaveLength(1)

    const lost = realBench([{ deviceId: 'lost', driver: 'pcsc', link: { pcsc: 'ACR122', socket: station.socket } }])
    cleanups.push(() => lost.supervisor.stop())
    await expect
      .poll(() => lost.supervisor.status('lost')?.detail)
      .toBe(`pcscd has no reader "ACR122"; it has "${NAME}", "Virtual PCD 00 01"`)
  })
})

test('names the packages to install if there is no pcscd', async () => {
  const bench = realBench([
    { deviceId: 'pad', driver: 'pcsc', link: { pcsc: 'ACR122', socket: '/nowhere/pcscd.comm' } },
  ])
  const { detail } = await bench.untilState('pad', 'absent').finally(() => undefined)
  expect(detail === 'not tried yet' || detail.includes('install the packages pcscd and libccid')).toBe(true)
  await expect
    .poll(() => bench.supervisor.status('pad')?.detail)
    .toMatch(
      process.platform === 'linux'
        ? /^\/nowhere\/pcscd\.comm: pcscd is not there; install the packages pcscd and libccid/
        : /Linux only/,
    )
  await bench.supervisor.stop()
})
