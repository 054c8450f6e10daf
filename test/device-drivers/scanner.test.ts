import { describe, expect, test } from 'vitest'
import type { DeviceEvent } from '../../device-drivers/drivers/device.ts'
import { supervise } from '../../device-drivers/supervisor.ts'
import { memoryPort } from '../../device-drivers/transports/memory.ts'
import { scannerSimulator } from '../../simulators/devices/scanner.ts'
import type { ScannerSimulatorOptions } from '../../simulators/devices/scanner.ts'
import { virtualPlatform } from '../../simulators/world/virtual-platform.ts'
import { ADDRESS, entries, forEver, RELEASE } from './workbench.ts'

async function ready(settings: Record<string, unknown> = {}, simulator: Partial<ScannerSimulatorOptions> = {}) {
  const world = virtualPlatform()
  const scanner = scannerSimulator({ platform: world, ...simulator })
  const port = memoryPort((link) => void scanner.serve(link))
  const events: DeviceEvent[] = []
  const devices = entries({ deviceId: 'scanner', driver: 'scanner', link: { tcp: ADDRESS }, feeds: 'door', ...settings })
  const supervisor = supervise({
    devices,
    platform: world,
    openLink: (_, signal) => port.open(signal),
    onEvent: (_, event) => void events.push(event),
  })
  await world.advance(10)
  expect(supervisor.status('scanner')?.state).toBe('ready')
  const texts = () => events.flatMap((event) => (event.type === 'scan' ? [event.text] : []))
  const noise = () => events.flatMap((event) => (event.type === 'noise' ? [event.bytes] : [])).reduce((a, b) => a + b, 0)
  return { world, scanner, port, events, supervisor, texts, noise }
}

describe('scanner', () => {
  test('a scan with its symbology', async () => {
    const { world, scanner, events } = await ready()
    await world.settle(scanner.scan('4006381333931', ']E0'))
    await world.advance(1)
    expect(events).toEqual([{ type: 'scan', text: '4006381333931', symbology: 'ean-13' }])
  })

  test('the same text within 500 ms counts once, another text at once, the same again later', async () => {
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

  test('duplicateMs 0: every read counts', async () => {
    const { world, scanner, texts } = await ready({ duplicateMs: 0 })
    await scanner.scan('A')
    await scanner.scan('A')
    await world.advance(1)
    expect(texts()).toEqual(['A', 'A'])
  })

  test('byte by byte', async () => {
    const { world, scanner, texts } = await ready({ suffix: 'CRLF' }, { suffix: 'CRLF', chunkBytes: 1 })
    await world.settle(scanner.scan('HTTPS://EXAMPLE.COM/R/UNTAG'))
    await world.advance(1)
    expect(texts()).toEqual(['HTTPS://EXAMPLE.COM/R/UNTAG'])
  })

  test('a half line is dropped after a second and does not spoil the next scan', async () => {
    const { world, scanner, texts, noise } = await ready()
    await scanner.halfLine('40063')
    await world.advance(1_100)
    await scanner.scan('4006381333931')
    await world.advance(1)
    expect(texts()).toEqual(['4006381333931'])
    expect(noise()).toBe(5)
  })

  test('a scanner without a suffix: the pause ends the text', async () => {
    const { world, scanner, texts } = await ready({ interByteMs: 50 })
    await scanner.halfLine('400638')
    await world.advance(20)
    await scanner.halfLine('1333931')
    await world.advance(60)
    expect(texts()).toEqual(['4006381333931'])
  })

  test('over-long lines and garbage become noise, at most one event a second, and scanning goes on', async () => {
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

  test('comes back after the plug was out, and does not repeat itself', async () => {
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

  test('has nothing to release', async () => {
    const { supervisor } = await ready()
    expect(await supervisor.execute('scanner', RELEASE, forEver())).toMatchObject({ outcome: 'failed', commanded: false })
  })

  test('stops and leaves no timers', async () => {
    const { world, scanner, supervisor } = await ready()
    await scanner.halfLine('half')
    await world.advance(10)
    await world.settle(supervisor.stop())
    await world.advance(60_000)
    expect(world.pending).toBe(0)
    expect(scanner.listeners).toBe(0)
  })
})
