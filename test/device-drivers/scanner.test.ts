import { describe, expect, test } from 'vitest'
import type { DeviceEvent } from '../../device-drivers/kit/device.ts'
import { supervise } from '../../device-drivers/supervisor.ts'
import { memoryPort } from '../../device-drivers/transports/memory.ts'
import { scannerSimulator } from '../../simulators/devices/scanner.ts'
import type { ScannerSimulatorOptions } from '../../simulators/devices/scanner.ts'
import { virtualPlatform } from '../verification/simulation/virtual/virtual-platform.ts'
import { classifyScan } from '../../edge-agent/decisions/classify-scan.ts'
import { describeDriver } from './conformance.ts'
import { ADDRESS, entries, forEver, RELEASE } from './workbench.ts'
import { CODES, UPC_CODES } from '../support/product-codes.ts'

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

  test('is degraded after three texts without a suffix, and names the setting', async () => {
    const { world, scanner, supervisor } = await ready()
    for (let n = 0; n < 3; n++) {
      expect(supervisor.status('scanner')?.state).toBe('ready')
      await scanner.halfLine('4006381333931')
      await world.advance(2_000)
    }
    expect(supervisor.status('scanner')).toMatchObject({
      state: 'degraded',
      findings: [{ code: 'unreadable_data', detail: expect.stringMatching(/suffix.*interByteMs.*'81333931'/) }],
    })
    await scanner.scan('4006381333931')
    await world.advance(1)
    expect(supervisor.status('scanner')?.state).toBe('ready')
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
  test.each([...CODES, ...UPC_CODES])('as the cloud does: $what', ({ text, ean, byHand }) => {
    expect(classifyScan(text)).toEqual(byHand ? { kind: 'unknown' } : { kind: 'ean', ean })
  })

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
    // UPC-E, expanded by the table of the GS1 General Specifications.
    ['UPC-E that ends with 1', '04252614', '', { kind: 'ean', ean: '0042100005264' }],
    ['UPC-E that is also a valid EAN-8', '01234565', '', { kind: 'ean', ean: '0012345000065' }],
    ['EAN-8 that the scanner names', '01234565', ']E4', { kind: 'ean', ean: '0000001234565' }],
    ['a magazine with an add-on of 2 digits', '977123456700305', ']E3', { kind: 'ean', ean: '9771234567003' }],
    ['a book with an add-on of 5 digits', '978030640615751995', '', { kind: 'ean', ean: '9780306406157' }],
    ['UPC-A with an add-on of 5 digits', '03600029145212345', '', { kind: 'ean', ean: '0036000291452' }],
    ['GS1-128 in its printed form', '(01)09506000134352(10)LOT(21)SER1', '', RICE],
    ['GS1-128 of a scanner that drops FNC1', '010950600013435210LOT-1234567890121SERIAL-17261231', '', RICE],
    ['an unknown identifier of the scanner', '9506000134352', ']X0', RICE],
    ['a wrong check digit', '9506000134353', ']E0', { kind: 'unknown' }],
    ['a code with a wrong check digit that looks like an EPC', '010400638133393210ABC123', ']C1', { kind: 'unknown' }],
    ['the content of a case', '020400638133393115261231', ']C1', { kind: 'unknown' }],
    ['a number that a person wrote, perhaps of a tag', '36000291452', '', { kind: 'unknown' }],
    ['a web address', 'https://example.com/menu', ']Q1', { kind: 'unknown' }],
  ])('%s', async (_, text, aim, understood) => {
    const { world, scanner, texts, events } = await ready()
    await scanner.scan(text, aim)
    await world.advance(1)
    expect(texts()).toEqual([text])
    const event = events.find((each) => each.type === 'scan')
    expect(classifyScan(text, event?.symbology)).toEqual(understood)
    // A keyboard wedge types the identifier with the text.
    expect(classifyScan(`${aim}${text}`)).toEqual(understood)
  })
})
