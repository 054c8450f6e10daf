import fc from 'fast-check'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { traceFile, traceFiles } from '../../bin/commands/edge.ts'
import type { DeviceEvent } from '../../device-drivers/kit/device.ts'
import { readTrace, traceLine } from '../../device-drivers/kit/protocol/codec.ts'
import { supervise } from '../../device-drivers/supervisor.ts'
import type { ByteLink } from '../../device-drivers/transports/byte-link.ts'
import { memoryPort } from '../../device-drivers/transports/memory.ts'
import { tracedLinks } from '../../device-drivers/transports/traced-link.ts'
import { RelayBoard } from '../../simulators/devices/modbus.ts'
import { replay } from '../../simulators/devices/replay.ts'
import { scannerSimulator } from '../../simulators/devices/scanner.ts'
import { virtualPlatform, type VirtualPlatform } from '../verification/simulation/virtual/virtual-platform.ts'
import { entries, forEver, RELEASE } from './workbench.ts'

const SCANNER = { deviceId: 'thing', driver: 'scanner', link: { tcp: '10.0.0.7:502' }, feeds: 'door' }
const BOARD = {
  deviceId: 'thing',
  driver: 'modbus',
  link: { tcp: '10.0.0.7:502' },
  output: 0,
  confirmInput: 0,
  pulseMs: 200,
}

/** A supervisor with traced links. `serve` receives the far end of each link. */
function bench(entry: Record<string, unknown>, world: VirtualPlatform, serve: (link: ByteLink) => Promise<void>) {
  const port = memoryPort((link) => void serve(link))
  const lines: string[] = []
  const events: DeviceEvent[] = []
  const supervisor = supervise({
    devices: entries(entry),
    platform: world,
    openLink: tracedLinks(
      (_, signal) => port.open(signal),
      (_, line) => void lines.push(line),
      world.clock,
    ),
    onEvent: (_, event) => void events.push(event),
  })
  return {
    port,
    lines,
    events,
    supervisor,
    trace: () => lines.join('\n'),
    state: () => supervisor.status('thing')?.state,
  }
}

describe('traces', () => {
  test('replays a scanner byte for byte, with noise', async () => {
    const world = virtualPlatform()
    const scanner = scannerSimulator({ platform: world, chunkBytes: 3 })
    const first = bench(SCANNER, world, (link) => scanner.serve(link))
    await world.advance(100)
    await world.settle(scanner.scan('4006381333931', ']E0'))
    await world.advance(2_000)
    await world.settle(scanner.halfLine('400'))
    await world.advance(2_000)
    await world.settle(scanner.scan('HTTPS://EXAMPLE.COM/R/UNTAG', ']Q1'))
    await world.advance(500)
    await world.settle(first.supervisor.stop())
    expect(first.events.map(({ type }) => type)).toEqual(['scan', 'noise', 'fault', 'scan'])

    const later = virtualPlatform({ seed: 2 })
    const device = replay(first.trace(), later)
    expect(device.connections).toBe(1)
    const again = bench(SCANNER, later, (link) => device.serve(link))
    await later.advance(6_000)
    // The replay repeats the last connection.
    expect(again.events.slice(0, first.events.length)).toEqual(first.events)
    await later.settle(again.supervisor.stop())
  })

  test('replays a Modbus release with the same outcome, also over a cut connection', async () => {
    const world = virtualPlatform()
    const board = new RelayBoard({ platform: world, locks: [{ coil: 0, input: 0, openMs: 30, closeMs: 30 }] })
    const first = bench(BOARD, world, (link) => board.serve(link))
    await world.advance(100)
    expect((await world.settle(first.supervisor.execute('thing', RELEASE, forEver()))).outcome).toBe('confirmed')
    await world.advance(1_000)
    first.port.cut()
    await world.advance(5_000)
    expect(first.state()).toBe('ready')
    const known = first.events
    await world.settle(first.supervisor.stop())

    const later = virtualPlatform()
    const device = replay(first.trace(), later)
    expect(device.connections).toBe(2)
    const again = bench(BOARD, later, (link) => device.serve(link))
    await later.advance(100)
    expect(again.state()).toBe('ready')
    expect(await later.settle(again.supervisor.execute('thing', RELEASE, forEver()))).toMatchObject({
      outcome: 'confirmed',
      detail: expect.stringContaining('input_changed'),
    })
    await later.advance(3_000)
    expect(again.events.filter(({ type }) => type === 'input').slice(0, 2)).toEqual(
      known.filter(({ type }) => type === 'input').slice(0, 2),
    )
    await later.settle(again.supervisor.stop())
  })

  test('parses what it wrote, and skips other lines', () => {
    const record = fc.record({
      atMs: fc.integer({ min: 0, max: 1e9 }).map((us) => us / 1_000),
      kind: fc.constantFrom('open' as const, 'close' as const, 'in' as const, 'out' as const),
      bytes: fc.uint8Array({ maxLength: 50 }),
    })
    fc.assert(
      fc.property(fc.array(record), (records) => {
        expect(readTrace(`${records.map(traceLine).join('\n')}\n12.3 < cut of`)).toEqual(records)
      }),
    )
    fc.assert(fc.property(fc.string(), (text) => void readTrace(text)))
  })

  test('writes two bounded files for each link, readable by the owner only, and stops with a message if the folder is not writable', () => {
    const dir = mkdtempSync(join(tmpdir(), 'untag-trace-'))
    const faults: Error[] = []
    const files = traceFiles(dir, (error) => void faults.push(error))
    const line = `1.000 < ${'A'.repeat(1_000)}`
    for (let i = 0; i < 12_000; i++) files.write('tcp:10.0.0.7:502', line)
    files.flush()
    const names = readdirSync(dir).toSorted()
    expect(names).toEqual(['tcp_10.0.0.7_502.1.trace', 'tcp_10.0.0.7_502.trace'])
    for (const name of names) {
      expect(statSync(join(dir, name)).size).toBeLessThanOrEqual(4 * 1_048_576)
      expect(statSync(join(dir, name)).mode & 0o077).toBe(0)
    }
    expect(readTrace(readFileSync(traceFile(dir, 'tcp:10.0.0.7:502'), 'utf8')).length).toBeGreaterThan(0)
    rmSync(dir, { recursive: true })
    files.write('x', line)
    files.flush()
    files.write('x', line)
    expect(faults).toHaveLength(1)
  })
})
