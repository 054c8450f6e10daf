import { describe, expect, test } from 'vitest'
import type { DeviceEvent } from '../../device-drivers/drivers/device.ts'
import { supervise } from '../../device-drivers/supervisor.ts'
import { memoryPort } from '../../device-drivers/transports/memory.ts'
import { scannerSimulator } from '../../simulators/devices/scanner.ts'
import type { ScannerSimulatorOptions } from '../../simulators/devices/scanner.ts'
import { virtualPlatform } from '../../verification/simulation/virtual/virtual-platform.ts'
import { classifyScan } from '../../edge-agent/decisions/classify-scan.ts'
import { describeDriver } from './conformance.ts'
import { ADDRESS, entries, forEver, RELEASE } from './workbench.ts'

describeDriver('scanner', {
  entry: { feeds: 'door' },
  answers: false,
  device(platform) {
    const scanner = scannerSimulator({ platform })
    let scanned = 0
    return {
      serve: scanner.serve,
      mute() {},
      heal() {},
      stir: () => void scanner.scan(`CODE${++scanned}`),
      fits: (event) => event.type === 'scan' && event.text.startsWith('CODE'),
    }
  },
})

async function ready(settings: Record<string, unknown> = {}, simulator: Partial<ScannerSimulatorOptions> = {}) {
  const world = virtualPlatform()
  const scanner = scannerSimulator({ platform: world, ...simulator })
  const port = memoryPort((link) => void scanner.serve(link))
  const events: DeviceEvent[] = []
  const devices = entries({
    deviceId: 'scanner',
    driver: 'scanner',
    link: { tcp: ADDRESS },
    feeds: 'door',
    ...settings,
  })
  const supervisor = supervise({
    devices,
    platform: world,
    openLink: (_, signal) => port.open(signal),
    onEvent: (_, event) => void events.push(event),
  })
  await world.advance(10)
  expect(supervisor.status('scanner')?.state).toBe('ready')
  const texts = () => events.flatMap((event) => (event.type === 'scan' ? [event.text] : []))
  const noise = () =>
    events.flatMap((event) => (event.type === 'noise' ? [event.bytes] : [])).reduce((a, b) => a + b, 0)
  return { world, scanner, port, events, supervisor, texts, noise }
}

describe('scanner', () => {
  test('reports a scan with its symbology', async () => {
    const { world, scanner, events } = await ready()
    await world.settle(scanner.scan('4006381333931', ']E0'))
    await world.advance(1)
    expect(events).toEqual([{ type: 'scan', text: '4006381333931', symbology: 'ean-13' }])
  })

  test('counts the same text once within 500 ms, another text at once, and the same again later', async () => {
    const { world, scanner, texts } = await ready()
    await scanner.scan('A')
    await world.advance(300)
    await scanner.scan('A')
    await scanner.scan('B')
    await world.advance(250)
    await scanner.scan('A')
    await world.advance(1)
    expect(texts()).toEqual(['A', 'B', 'A'])
  })

  test('counts every read with duplicateMs 0', async () => {
    const { world, scanner, texts } = await ready({ duplicateMs: 0 })
    await scanner.scan('A')
    await scanner.scan('A')
    await world.advance(1)
    expect(texts()).toEqual(['A', 'A'])
  })

  test('accepts single bytes', async () => {
    const { world, scanner, texts } = await ready({ suffix: 'CRLF' }, { suffix: 'CRLF', chunkBytes: 1 })
    await world.settle(scanner.scan('HTTPS://EXAMPLE.COM/R/UNTAG'))
    await world.advance(1)
    expect(texts()).toEqual(['HTTPS://EXAMPLE.COM/R/UNTAG'])
  })

  test('drops an incomplete line after a second, and reports the next scan', async () => {
    const { world, scanner, texts, noise } = await ready()
    await scanner.halfLine('40063')
    await world.advance(1_100)
    await scanner.scan('4006381333931')
    await world.advance(1)
    expect(texts()).toEqual(['4006381333931'])
    expect(noise()).toBe(5)
  })

  test('ends the text of a scanner without a suffix at a pause', async () => {
    const { world, scanner, texts } = await ready({ interByteMs: 50 })
    await scanner.halfLine('400638')
    await world.advance(20)
    await scanner.halfLine('1333931')
    await world.advance(60)
    expect(texts()).toEqual(['4006381333931'])
  })

  test('reports long lines and garbage as noise at most once a second, and continues', async () => {
    const { world, scanner, texts, events, noise } = await ready()
    for (let i = 0; i < 50; i++) await world.settle(scanner.scan('x'.repeat(5_000)))
    await world.settle(scanner.garbage(20_000))
    await world.advance(1_500)
    await scanner.scan('GOOD')
    await world.advance(1_500)
    expect(texts()).toEqual(['GOOD'])
    expect(noise()).toBeGreaterThanOrEqual(270_000)
    expect(events.filter((event) => event.type === 'noise').length).toBeLessThanOrEqual(4)
  })

  test('recovers after the plug was out, without repeating scans', async () => {
    const { world, scanner, port, texts, supervisor } = await ready()
    await scanner.scan('A')
    port.unplug()
    await world.advance(60_000)
    expect(supervisor.status('scanner')?.state).toBe('absent')
    await scanner.scan('nobody hears this')
    port.plug()
    await world.advance(16_000)
    await scanner.scan('B')
    await world.advance(1)
    expect(texts()).toEqual(['A', 'B'])
  })

  test('supports no release', async () => {
    const { supervisor } = await ready()
    expect(await supervisor.execute('scanner', RELEASE, forEver())).toMatchObject({
      outcome: 'failed',
      commanded: false,
    })
  })

  test('stops without leftover timers', async () => {
    const { world, scanner, supervisor } = await ready()
    await scanner.halfLine('half')
    await world.advance(10)
    await world.settle(supervisor.stop())
    await world.advance(60_000)
    expect(world.pending).toBe(0)
    expect(scanner.listeners).toBe(0)
  })
})

describe('what scanners read, as a lane understands it', () => {
  const RICE = { kind: 'ean', ean: '9506000134352' }
  test.each([
    ['EAN-13', '9506000134352', ']E0', RICE],
    ['EAN-8', '96385074', ']E4', { kind: 'ean', ean: '96385074' }],
    ['UPC-A as EAN-13', '0036000291452', ']E0', { kind: 'ean', ean: '0036000291452' }],
    ['UPC-A as it is', '036000291452', '', { kind: 'ean', ean: '0036000291452' }],
    ['GS1-128', '0109506000134352', ']C1', RICE],
    ['GS1 DataMatrix with lot and serial', '010950600013435210LOT\u001d21SER1', ']d2', RICE],
    ['GS1 DataBar', '0109506000134352', ']e0', RICE],
    ['a case of goods', '0119506000134359', ']C1', { kind: 'ean', ean: '19506000134359' }],
    ['a Digital Link in a QR code', 'https://id.gs1.org/01/09506000134352/21/SER1?17=261231', ']Q1', RICE],
    ['a Digital Link in a DataMatrix, in capitals', 'HTTPS://ID.GS1.ORG/01/09506000134352', ']d1', RICE],
    ['an EPC printed as QR code', '3074257BF7194E4000001A85', ']Q1', { kind: 'epc', epc: '3074257BF7194E4000001A85' }],
    ['a wrong check digit', '9506000134353', ']E0', { kind: 'unknown' }],
    ['a web address', 'https://example.com/menu', ']Q1', { kind: 'unknown' }],
  ])('%s', async (_, text, aim, understood) => {
    const { world, scanner, texts } = await ready()
    await scanner.scan(text, aim)
    await world.advance(1)
    expect(texts()).toEqual([text])
    expect(classifyScan(texts()[0] ?? '')).toEqual(understood)
  })
})
