import { describe, expect, test } from 'vitest'
import { easFrame } from '../../device-drivers/pcsc/protocol/icode-eas.ts'
import { hex } from '../../device-drivers/pcsc/protocol/apdu.ts'
import { END_SESSION } from '../../device-drivers/pcsc/protocol/transparent.ts'
import { supervise } from '../../device-drivers/supervisor.ts'
import type { ByteLink } from '../../device-drivers/transports/byte-link.ts'
import { LinkFault } from '../../device-drivers/transports/byte-link.ts'
import { usesNfcPcsc } from '../../device-drivers/transports/link-settings.ts'
import { memoryPort } from '../../device-drivers/transports/memory.ts'
import { openSmartCards } from '../../device-drivers/transports/pcsc-library/smart-cards.ts'
import { serveSmartCards } from '../../device-drivers/transports/pcsc-library/serve.ts'
import { icode, ndefRecord, ndefTlv, ntag, plainTag, storageAtr } from '../../simulators/devices/nfc-tags.ts'
import { virtualPlatform } from '../verification/simulation/virtual/virtual-platform.ts'
import { describeDriver } from './conformance.ts'
import { shortEventsOf } from './pcsc-bench.ts'
import type { ShortEvent } from './pcsc-bench.ts'
import { pcscTray } from './pcsc-tray.ts'
import { entries, forEver } from './workbench.ts'

const READER = 'ACS ACR1552 1S CL Reader PICC 0'
const ICODE = 'E00401500A1B2C3D'
const EAS_RESET = hex(easFrame('reset', ICODE))
const classic = (uid = '9A3B7C11') => plainTag(storageAtr(0x03, 0x0001), uid)

describeDriver('pcsc', {
  name: 'pcsc by nfc-pcsc',
  entry: { link: { pcsc: 'acr1552', via: 'nfc-pcsc' } },
  muteIs: 'absent',
  noticedWithinMs: 15_000,
  release: { kind: 'release', tag: { tagUid: ICODE } },
  device() {
    const tray = pcscTray()
    tray.plug(READER)
    let isMute = false
    let stirred = 0
    let tag = icode(ICODE, { transparent: true })
    const withVoice = (link: ByteLink): ByteLink => ({
      ...link,
      write: (bytes, signal) => (isMute ? Promise.resolve() : link.write(bytes, signal)),
    })
    return {
      serve: (link: ByteLink) => serveSmartCards(openSmartCards(tray.load), withVoice(link)),
      mute: () => void (isMute = true),
      heal: () => void (isMute = false),
      stir: () => tray.put(READER, classic(`0100${(++stirred).toString(16).padStart(4, '0')}`.toUpperCase())),
      leave: () => tray.take(READER),
      fits: (event: { type: string; reads?: readonly { technology?: string }[] }) =>
        event.type === 'tags' && (event.reads ?? []).some(({ technology }) => technology === 'MifareClassic'),
      prepare() {
        tag = icode(ICODE, { transparent: true })
        tray.put(READER, tag)
      },
      releases: () => tag.log.filter((apdu) => apdu.includes(EAS_RESET)).length,
      loseAnswer() {
        tag = icode(ICODE, { transparent: true, resetFault: 'no-answer-done' })
        tray.put(READER, tag)
      },
    }
  },
})

/** The driver, and a process with the package, joined in memory on a virtual clock. */
function bench() {
  const world = virtualPlatform()
  const tray = pcscTray()
  tray.plug(READER)
  let started = 0
  const port = memoryPort((link) => {
    started++
    void serveSmartCards(openSmartCards(tray.load), link)
  })
  const shortEvents: ShortEvent[] = []
  const supervisor = supervise({
    devices: entries({ deviceId: 'pad', driver: 'pcsc', link: { pcsc: 'acr1552', via: 'nfc-pcsc' } }),
    platform: world,
    openLink: async (_, signal) => {
      try {
        return await port.open(signal)
      } catch (error) {
        throw new LinkFault('missing', (error as Error).message)
      }
    },
    onEvent: (_, event) => void shortEvents.push(...shortEventsOf(event)),
  })
  return {
    world,
    tray,
    supervisor,
    status: () => supervisor.status('pad'),
    /** Processes started so far. */
    started: () => started,
    news: async (ms = 1_000) => {
      await world.advance(ms)
      return shortEvents.splice(0)
    },
    release: () => world.settle(supervisor.execute('pad', { kind: 'release', tag: { tagUid: ICODE } }, forEver())),
  }
}

describe('pcsc by nfc-pcsc', () => {
  test('reports tags with their technology, links on them, and the swap of two tags', async () => {
    const { tray, news, status } = bench()
    await news()
    expect(status()).toMatchObject({ state: 'ready', detail: `NFC reader ${READER}` })
    const link = Uint8Array.of(4, ...new TextEncoder().encode('example.com/r/ABC'))
    tray.put(READER, ntag('04A2B3C4D5E680', ndefTlv(ndefRecord('U', link))))
    expect(await news()).toEqual([
      { tag: '04A2B3C4D5E680', technology: 'MifareUltralight' },
      { scan: 'https://example.com/r/ABC' },
    ])
    tray.put(READER, classic())
    expect(await news()).toEqual([{ gone: '04A2B3C4D5E680' }, { tag: '9A3B7C11', technology: 'MifareClassic' }])
    tray.take(READER)
    expect(await news()).toEqual([{ gone: '9A3B7C11' }])
  })

  test('resets a tag after a refused address, so that it can be read again', async () => {
    const { tray, news } = bench()
    await news()
    const liar = ntag('04A2B3C4D5E680', Uint8Array.of(0x03, 0xff, 0x01, 0x00, 0xd1), 512)
    for (let i = 0; i < 3; i++) {
      tray.put(READER, liar)
      expect(await news()).toContainEqual({ tag: '04A2B3C4D5E680', technology: 'MifareUltralight' })
    }
  })

  test('follows readers that are unplugged and plugged in', async () => {
    const { tray, news, status } = bench()
    await news()
    tray.put(READER, classic())
    await news()
    tray.unplug(READER)
    expect(await news()).toEqual([{ gone: '9A3B7C11' }])
    expect(status()).toMatchObject({ state: 'absent', detail: 'PC/SC has no reader; is one plugged in?' })
    tray.plug(READER)
    await news(16_000)
    expect(status()?.state).toBe('ready')
  })

  test('starts a new process when the smart-card service ends, and reports a tag that stayed only once', async () => {
    const { tray, news, status, started } = bench()
    await news()
    tray.put(READER, classic())
    await news()
    tray.stop()
    expect(await news(20_000)).toEqual([])
    expect([status()?.state, started()]).toEqual(['ready', 2])
    tray.take(READER)
    expect(await news()).toEqual([{ gone: '9A3B7C11' }])
  })

  test('leaves a process whose package hangs, and starts another', async () => {
    const { tray, news, release, started } = bench()
    await news()
    tray.put(READER, icode(ICODE, { transparent: true }))
    await news()
    tray.faults.hangs = true
    expect(await release()).toMatchObject({
      outcome: 'failed',
      commanded: false,
      detail: expect.stringMatching(/^not_ready: PC\/SC does not answer transmit within 6 s/),
    })
    tray.faults.hangs = false
    await news(20_000)
    expect(started()).toBe(2)
    expect(await release()).toMatchObject({ outcome: 'confirmed' })
  })

  test('reports no release if another program ends the session of the reader between two commands', async () => {
    const { tray, news, release } = bench()
    await news()
    const tag = icode(ICODE, { transparent: true })
    tray.put(READER, tag)
    await news()
    tray.faults.intruder = (used, next) => {
      if (hex(next).includes(EAS_RESET)) used.answer(END_SESSION)
    }
    expect(await release()).toMatchObject({
      outcome: 'failed',
      commanded: true,
      detail: expect.stringMatching(/^refused: the reader/),
    })
    expect(tag.eas).toBe(true)
    tray.faults.intruder = null
    expect(await release()).toMatchObject({ outcome: 'confirmed' })
  })

  test('goes on after connections that cannot be ended', async () => {
    const { tray, news, status } = bench()
    await news()
    tray.faults.disconnectFails = true
    for (let i = 1; i <= 8; i++) {
      tray.put(READER, classic(`0100000${i}`))
      await news(100)
    }
    tray.faults.disconnectFails = false
    await news(20_000)
    tray.put(READER, classic())
    expect(await news()).toContainEqual({ tag: '9A3B7C11', technology: 'MifareClassic' })
    expect(status()?.state).toBe('ready')
  })
})

describe('the package nfc-pcsc', () => {
  test('is for other systems than Linux, unless the configuration names it', () => {
    expect(usesNfcPcsc({ pcsc: 'a' }, 'linux')).toBe(false)
    expect(usesNfcPcsc({ pcsc: 'a' }, 'win32')).toBe(true)
    expect(usesNfcPcsc({ pcsc: 'a', via: 'nfc-pcsc' }, 'linux')).toBe(true)
    expect(usesNfcPcsc({ pcsc: 'a', via: 'pcscd' }, 'darwin')).toBe(false)
  })

  test('is named with the reason and the fix if it cannot be loaded', () => {
    const opening = (error: Error) => () =>
      openSmartCards(() => {
        throw error
      })
    const missing = Object.assign(new Error("Cannot find module 'nfc-pcsc'\nRequire stack:"), {
      code: 'MODULE_NOT_FOUND',
    })
    expect(opening(missing)).toThrow(
      'the package nfc-pcsc cannot be loaded (not installed); run npm install --no-save -P nfc-pcsc, see docs/reference/hardware/pcsc.md',
    )
    expect(opening(new Error('Could not locate the bindings file. Tried:\n → a'))).toThrow(
      'the package nfc-pcsc cannot be loaded (Could not locate the bindings file. Tried); run npm',
    )
  })

  test('says that the service does not run', () => {
    const NFC = function () {
      throw new Error('SCardEstablishContext error: Access denied.(0x8010006A)')
    }
    expect(() => openSmartCards(() => ({ NFC }))).toThrow(
      'nfc-pcsc: the smart-card service does not run (SCardEstablishContext error: Access denied.(0x8010006A))',
    )
  })

  test('shows the first 16 readers, and a further one when one of them was unplugged', async () => {
    const tray = pcscTray()
    const names = Array.from({ length: 17 }, (_, i) => `reader ${i}`)
    for (const name of names) tray.plug(name)
    const cards = openSmartCards(tray.load)
    await Promise.resolve()
    expect(cards.readers.map(({ name }) => name)).toEqual(names.slice(0, 16))
    tray.unplug('reader 3')
    tray.put('reader 16', classic())
    expect(cards.readers.map(({ name }) => name)).toEqual(names.filter((name) => name !== 'reader 3'))
  })
})
