import { describe, expect, test } from 'vitest'
import { easFrame } from '../../device-drivers/pcsc/protocol/icode-eas.ts'
import { hex } from '../../device-drivers/pcsc/protocol/apdu.ts'
import { supervise } from '../../device-drivers/supervisor.ts'
import type { ByteLink } from '../../device-drivers/transports/byte-link.ts'
import { LinkFault } from '../../device-drivers/transports/byte-link.ts'
import { PCSC_PACKAGES, pcscPackages } from '../../device-drivers/transports/link-settings.ts'
import type { PcscPackage } from '../../device-drivers/transports/link-settings.ts'
import { memoryPort } from '../../device-drivers/transports/memory.ts'
import { openSmartCards } from '../../device-drivers/transports/pcsc-library/open-smart-cards.ts'
import { serveSmartCards } from '../../device-drivers/transports/pcsc-library/serve.ts'
import { icode, ndefRecord, ndefTlv, ntag, plainTag, storageAtr } from '../../simulators/devices/nfc-tags.ts'
import { virtualPlatform } from '../verification/simulation/virtual/virtual-platform.ts'
import { describeDriver } from './conformance.ts'
import { shortEventsOf } from './pcsc-bench.ts'
import type { ShortEvent } from './pcsc-bench.ts'
import { pcscTray } from './pcsc-packages.ts'
import { entries, forEver } from './workbench.ts'

const READER = 'ACS ACR1552 1S CL Reader PICC 0'
const ICODE = 'E00401500A1B2C3D'
const EAS_RESET = hex(easFrame('reset', ICODE))
const classic = (uid = '9A3B7C11') => plainTag(storageAtr(0x03, 0x0001), uid)

function rig(via: PcscPackage) {
  return {
    name: `pcsc by ${via}`,
    entry: { link: { pcsc: 'acr1552', via } },
    muteIs: 'absent' as const,
    noticedWithinMs: 15_000,
    release: { kind: 'release' as const, tag: { tagUid: ICODE } },
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
        serve: (link: ByteLink) =>
          serveSmartCards(
            openSmartCards([via], (name) => tray.packages[name]()),
            withVoice(link),
          ),
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
  }
}

// The names as literals: `driver-parts.test.ts` searches for them.
describeDriver('pcsc', rig('pcsc-mini'))
describeDriver('pcsc', rig('nfc-pcsc'))

/** The driver, and a process with the package, joined in memory on a virtual clock. */
function bench(via: PcscPackage) {
  const world = virtualPlatform()
  const tray = pcscTray()
  tray.plug(READER)
  let started = 0
  const port = memoryPort((link) => {
    started++
    void serveSmartCards(
      openSmartCards([via], (name) => tray.packages[name]()),
      link,
    )
  })
  const shortEvents: ShortEvent[] = []
  const supervisor = supervise({
    devices: entries({ deviceId: 'pad', driver: 'pcsc', link: { pcsc: 'acr1552', via } }),
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

describe.each([...PCSC_PACKAGES])('pcsc by %s', (via) => {
  test('reports tags with their technology, links on them, and the swap of two tags', async () => {
    const { tray, news, status } = bench(via)
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
    const { tray, news } = bench(via)
    await news()
    const liar = ntag('04A2B3C4D5E680', Uint8Array.of(0x03, 0xff, 0x01, 0x00, 0xd1), 512)
    for (let i = 0; i < 3; i++) {
      tray.put(READER, liar)
      expect(await news()).toContainEqual({ tag: '04A2B3C4D5E680', technology: 'MifareUltralight' })
    }
  })

  test('follows readers that are unplugged and plugged in', async () => {
    const { tray, news, status } = bench(via)
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
    const { tray, news, status, started } = bench(via)
    await news()
    tray.put(READER, classic())
    await news()
    tray.stop()
    tray.start()
    expect(await news(20_000)).toEqual([])
    expect([status()?.state, started()]).toEqual(['ready', 2])
    tray.take(READER)
    expect(await news()).toEqual([{ gone: '9A3B7C11' }])
  })

  test('leaves a process whose package hangs, and starts another', async () => {
    const { tray, news, release, started } = bench(via)
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

  test('goes on after connections that cannot be ended', async () => {
    const { tray, news, status } = bench(via)
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

describe('packages for PC/SC', () => {
  test('are for other systems than Linux, unless the configuration names one', () => {
    expect(pcscPackages({ pcsc: 'a' }, 'linux')).toBeNull()
    expect(pcscPackages({ pcsc: 'a' }, 'win32')).toEqual(['pcsc-mini', 'nfc-pcsc'])
    expect(pcscPackages({ pcsc: 'a', via: 'nfc-pcsc' }, 'linux')).toEqual(['nfc-pcsc'])
    expect(pcscPackages({ pcsc: 'a', via: 'pcscd' }, 'darwin')).toBeNull()
  })

  test('fall back to the second if the first cannot be loaded', () => {
    const tray = pcscTray()
    const load = (name: PcscPackage) => {
      if (name === 'pcsc-mini')
        throw new Error('Required addon dependency not found (@pcsc-mini/windows-x86_64-node):\nError')
      return tray.packages[name]()
    }
    expect(openSmartCards(PCSC_PACKAGES, load).readers).toEqual([])
  })

  test('are named with the reasons and the fix if none can be loaded', () => {
    const load = (name: PcscPackage) => {
      if (name === 'nfc-pcsc')
        throw Object.assign(new Error(`Cannot find module '${name}'\nRequire stack:`), { code: 'MODULE_NOT_FOUND' })
      throw new Error('Required addon dependency not found (@pcsc-mini/windows-x86_64-node):\nError')
    }
    expect(() => openSmartCards(PCSC_PACKAGES, load)).toThrow(
      'no package for smart cards can be loaded (pcsc-mini: Required addon dependency not found (@pcsc-mini/windows-x86_64-node); nfc-pcsc: not installed); run npm install --no-save -O @pcsc-mini/windows-x86_64-node, see docs/reference/hardware/pcsc.md',
    )
  })

  test('say that the service does not run', () => {
    const tray = pcscTray()
    tray.stop()
    expect(() => openSmartCards(['pcsc-mini'], (name) => tray.packages[name]())).toThrow(
      'pcsc-mini: the smart-card service does not run (NoService)',
    )
  })
})
