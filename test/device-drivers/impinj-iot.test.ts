import { describe, expect, test } from 'vitest'
import type { DeviceEvent } from '../../device-drivers/kit/device.ts'
import type { DeviceStatus } from '../../device-drivers/device-connection.ts'
import { supervise } from '../../device-drivers/supervisor.ts'
import { memoryPort } from '../../device-drivers/transports/memory.ts'
import { ImpinjReader, type ImpinjReaderOptions } from '../../simulators/devices/impinj-iot.ts'
import { virtualPlatform } from '../verification/simulation/virtual/virtual-platform.ts'
import { describeDriver } from './conformance.ts'
import { entries, forEver, RELEASE } from './workbench.ts'

const EPC = '3034257BF7194E4000001A85'
const PASSWORD = 'not-the-factory-one'
const ENTRY = {
  driver: 'impinj-iot',
  link: { http: '10.0.0.9' },
  password: PASSWORD,
  antennas: { inside: [1], outside: [2] },
  siren: { gpo: 1 },
  green: { gpo: 2 },
  release: { gpo: 3, pulseMs: 200 },
}

describeDriver('impinj-iot', {
  entry: ENTRY,
  noticedWithinMs: 12_000,
  release: RELEASE,
  device(platform) {
    const reader = new ImpinjReader({ platform })
    return {
      serve: reader.serve,
      mute: () => reader.mute(true),
      heal() {
        reader.mute(false)
        reader.loseAnswers(false)
      },
      stir: () => reader.see(EPC),
      fits: (event) => event.type === 'tags' && event.reads.some(({ tag }) => 'epc' in tag && tag.epc === EPC),
      releases: () => reader.writes.filter(({ gpo, on }) => gpo === 3 && on).length,
      loseAnswer: () => reader.loseAnswers(true),
      rest: () => reader.reboot(),
    }
  },
})

function bench(settings: Record<string, unknown> = {}, options: Partial<ImpinjReaderOptions> = {}) {
  const world = virtualPlatform()
  const reader = new ImpinjReader({ platform: world, ...options })
  const port = memoryPort((link) => void reader.serve(link))
  const events: DeviceEvent[] = []
  const states: DeviceStatus[] = []
  const supervisor = supervise({
    devices: entries({ deviceId: 'gate', ...ENTRY, ...settings }),
    platform: world,
    openLink: (_, signal) => port.open(signal),
    onEvent: (_, event) => void events.push(event),
    onState: (status) => void states.push(status),
  })
  const status = () => supervisor.status('gate')
  const reads = () => events.flatMap((event) => (event.type === 'tags' ? event.reads : []))
  const faults = () => events.flatMap((event) => (event.type === 'fault' ? [event.detail] : []))
  async function until(condition: () => boolean, limitMs = 30_000): Promise<void> {
    for (let waited = 0; !condition(); waited += 10) {
      if (waited >= limitMs) throw new Error(`not within ${limitMs} ms: ${JSON.stringify([status(), faults()])}`)
      await world.advance(10)
    }
  }
  return {
    world,
    reader,
    port,
    events,
    states,
    supervisor,
    status,
    reads,
    faults,
    until,
    ready: () => until(() => status()?.state === 'ready'),
  }
}

describe('impinj-iot', () => {
  test('reports the identity, starts the configured inventory and requests frequent keepalives', async () => {
    const b = bench()
    await b.ready()
    expect(b.status()?.identity).toEqual({
      description: 'Impinj R700 at 10.0.0.9:80',
      serialNumber: '37021010001',
      firmwareVersion: '8.2.0.240',
    })
    const sent = (path: string) =>
      JSON.parse(
        b.reader.requests.findLast((request) => request.path.endsWith(path) && request.body !== '')?.body ?? 'null',
      ) as unknown
    const antenna = {
      transmitPowerCdbm: 3_000,
      rfMode: 1003,
      inventorySession: 1,
      inventorySearchMode: 'dual-target',
      estimatedTagPopulation: 32,
    }
    expect(sent('/inventory/start')).toMatchObject({
      antennaConfigs: [
        { antennaPort: 1, ...antenna },
        { antennaPort: 2, ...antenna },
      ],
      eventConfig: { tagInventory: { epcHex: 'enabled', lastSeenTime: 'enabled' } },
    })
    expect(sent('/http-stream')).toMatchObject({ keepAliveIntervalSeconds: 5, eventBufferSize: 1_000 })
    expect(b.faults()).toEqual([])
  })

  test.each([
    [{ searchMode: 'single-target' }, ['reader_session'], [1]],
    [{ searchMode: 'single-target-with-tagfocus', session: 2 }, ['reader_session'], [1]],
    [{ searchMode: 'single-target', session: 0 }, [], [1, 2]],
    [{ session: 2 }, [], [1, 2]],
    [{}, [], [1, 2]],
    [{ searchMode: 'single-target', antennas: { inside: [1, 2] } }, [], [1]],
  ])('warns of a session that hides the read outside: %o', async (settings, codes, antennas) => {
    const b = bench({ antennas: { inside: [1], outside: [2] }, ...settings })
    await b.ready()
    b.reader.see(EPC, { antenna: 1 })
    await b.world.advance(500)
    b.reader.see(EPC, { antenna: 2 })
    await b.world.advance(10)
    expect(b.reads().map(({ antenna }) => antenna)).toEqual(antennas)
    expect(b.status()?.findings.map(({ code, isWarning }) => [code, isWarning])).toEqual(
      codes.map((code) => [code, true]),
    )
  })

  test('becomes ready with a reader that needs 0.9 s for each answer, and stays ready', async () => {
    const b = bench({ requestTimeoutMs: 5_000 }, { answerDelayMs: 900 })
    await b.ready()
    await b.world.advance(60_000)
    expect(b.states.map(({ state }) => state)).toEqual(['opening', 'identifying', 'ready'])
  })

  test.each([
    [{ inventorySession: 2, inventorySearchMode: 'single-target' }, ['reader_session']],
    [{ inventorySession: 1, inventorySearchMode: 'single-target-b-to-a' }, ['reader_session']],
    [{ inventorySession: 0, inventorySearchMode: 'single-target' }, []],
    [{ inventorySession: 2, inventorySearchMode: 'dual-target' }, []],
    [{}, []],
  ])('is degraded with a preset that hides the read outside: %o', async (preset, codes) => {
    const b = bench({ antennas: { inside: [1], outside: [2] }, preset: 'default' }, { preset })
    await b.until(() => b.status()?.identity !== undefined)
    expect([b.status()?.state, b.status()?.findings.map(({ code }) => code)]).toEqual([
      codes.length > 0 ? 'degraded' : 'ready',
      codes,
    ])
  })

  test('finds out that a preset of the reader reports tags rarely', async () => {
    const b = bench(
      { antennas: { inside: [1, 2] }, preset: 'default' },
      { preset: { inventorySession: 1, inventorySearchMode: 'single-target' } },
    )
    await b.ready()
    for (let ms = 0; ms < 220 * 5_000; ms += 500) {
      b.reader.see(EPC, { antenna: 1 })
      await b.world.advance(500)
    }
    expect(b.status()).toMatchObject({
      state: 'degraded',
      findings: [{ code: 'reader_filters', detail: expect.stringContaining('or leave "preset" out') }],
    })
  })

  test('is degraded while the cable of an antenna is pulled, until this antenna reads', async () => {
    const b = bench()
    await b.ready()
    b.reader.setAntenna(2, false)
    await b.world.advance(10)
    expect(b.status()).toMatchObject({
      state: 'degraded',
      findings: [{ code: 'reader_antenna', detail: 'antenna 2 (outside): not connected; check the cable' }],
    })
    expect(b.faults()).toEqual(['antenna 2 is not connected'])
    b.reader.setAntenna(2, true)
    b.reader.see(EPC, { antenna: 2 })
    await b.world.advance(10)
    expect(b.status()?.state).toBe('ready')
  })

  test('is never ready at a reader that accepts the inventory and does not start it', async () => {
    const b = bench({}, { neverStarts: true })
    await b.world.advance(120_000)
    expect(b.states.map(({ state }) => state)).not.toContain('ready')
    expect(b.states.map(({ detail }) => detail)).toContain(
      'the reader accepts the inventory but does not start it; check region and antennas on its web page',
    )
  })

  test('starts its own inventory again after another program has started one', async () => {
    const b = bench()
    await b.ready()
    b.reader.startOther('stock')
    await b.world.advance(3_000)
    await b.ready()
    expect(b.faults()).toEqual(['another program has started the inventory "stock"; the agent starts its own again'])
    await b.world.advance(30_000)
    expect(b.faults()).toHaveLength(1)
  })

  test('gives the next read its true time after the clock of the reader was set back', async () => {
    const b = bench()
    await b.ready()
    b.reader.setClock(-3_600_000)
    await b.world.advance(3_000)
    b.reader.see(EPC)
    await b.world.advance(10)
    expect(b.reads().map(({ seenAtMs }) => b.world.clock.elapsed() - seenAtMs)).toEqual([10])
  })

  test('reports tags with antenna, signal and age, in hex and base64 alike', async () => {
    const b = bench()
    await b.ready()
    b.reader.see(EPC, { antenna: 2, rssiDbm: -61.5 })
    b.reader.see(EPC, { asBase64: true })
    await b.world.advance(10)
    const seenAtMs = b.world.clock.elapsed() - 10
    expect(b.reads()).toEqual([
      { tag: { epc: EPC }, antenna: 2, rssiDbm: -61.5, seenAtMs },
      { tag: { epc: EPC }, antenna: 1, rssiDbm: -55, seenAtMs },
    ])
  })

  test.each([0, -3 * 3_600_000, 3 * 3_600_000])(
    'keeps the age of reads that the reader buffered during a network failure (clock error %i ms)',
    async (offset) => {
      const b = bench()
      b.reader.setClock(offset)
      await b.ready()
      b.port.unplug()
      await b.world.advance(5_000)
      b.reader.see(EPC)
      const seenAt = b.world.clock.elapsed()
      await b.world.advance(20_000)
      b.port.plug()
      await b.ready()
      b.reader.see(EPC)
      await b.world.advance(10)
      const [old, fresh] = b.reads()
      expect(old?.seenAtMs).toBe(seenAt)
      expect(fresh?.seenAtMs).toBe(b.world.clock.elapsed() - 10)
    },
  )

  test('switches siren and lamps on and off by time, and writes the remaining time after a reboot', async () => {
    const b = bench()
    await b.ready()
    const reported = await b.world.settle(
      b.supervisor.execute('gate', { kind: 'signal', signal: 'siren', seconds: 20 }, forEver()),
    )
    expect(reported).toMatchObject({ outcome: 'confirmed', commanded: true })
    expect(b.reader.outputs.get(1)).toBe(true)
    b.reader.reboot()
    expect(b.reader.outputs.get(1)).toBe(false)
    await b.until(() => b.reader.outputs.get(1) === true)
    await b.ready()
    expect(b.reader.isReading).toBe(true)
    await b.world.advance(20_000)
    expect(b.reader.outputs.get(1)).toBe(false)
    await b.world.settle(b.supervisor.execute('gate', { kind: 'signal', signal: 'green', seconds: 60 }, forEver()))
    await b.world.settle(b.supervisor.stop())
    expect([...b.reader.outputs.values()]).toEqual([false, false, false])
    expect(b.reader.isReading).toBe(false)
  })

  test('reports configured inputs and passages, ignores others and late changes, and rejects firmware without inputs', async () => {
    const b = bench({ passageInput: 1 })
    b.reader.setClock(-3 * 3_600_000)
    await b.ready()
    const reported = () => b.events.splice(0).filter(({ type }) => type === 'input' || type === 'passage')
    b.reader.setInput(1, true)
    b.reader.setInput(2, true)
    b.reader.setInput(1, false)
    await b.world.advance(10)
    expect(reported()).toEqual([
      { type: 'input', input: 1, on: true },
      { type: 'passage' },
      { type: 'input', input: 1, on: false },
    ])
    b.port.unplug()
    await b.world.advance(1_000)
    b.reader.setInput(1, true)
    await b.world.advance(10_000)
    b.port.plug()
    await b.ready()
    b.reader.setInput(1, false)
    await b.world.advance(10)
    expect(reported()).toEqual([{ type: 'input', input: 1, on: false }])

    const old = bench({ inputs: [2] }, { hasInputs: false })
    await old.until(() => old.states.some(({ detail }) => detail.includes('this firmware has no inputs (GPI)')))
    const few = bench({ inputs: [3] })
    await few.until(() =>
      few.states.some(({ detail }) => detail === 'there is no input (GPI) 3; check the settings of gate'),
    )
  })

  test('transmits with readWhile only while the input is high, and does not take idle for stopped', async () => {
    const b = bench({ readWhile: { gpi: 2 } })
    await b.ready()
    await b.world.advance(20_000)
    expect([b.reader.isReading, b.status()?.state, b.faults()]).toEqual([false, 'ready', []])
    b.reader.setInput(2, true)
    b.reader.see(EPC)
    await b.world.advance(10)
    expect([b.reader.isReading, b.reads().length]).toEqual([true, 1])
    b.reader.setInput(2, false)
    b.reader.see(EPC)
    await b.world.advance(20_000)
    expect([b.reader.isReading, b.reads().length, b.status()?.state]).toEqual([false, 1, 'ready'])
  })

  test('is not ready with a wrong password, reports it, and becomes ready with the right one', async () => {
    const b = bench()
    b.reader.setPassword('another')
    await b.world.advance(60_000)
    expect(b.states.map(({ state }) => state)).not.toContain('ready')
    expect(
      b.states.some(({ detail }) => detail === 'the reader refuses user "root" (401); check user and password'),
    ).toBe(true)
    b.reader.setPassword(PASSWORD)
    await b.ready()
  })

  test('accepts the factory password and reports it as a fault, once', async () => {
    const b = bench({ password: 'impinj' }, { password: 'impinj' })
    await b.ready()
    b.port.cut()
    await b.until(() => b.status()?.state !== 'ready')
    await b.ready()
    expect(b.faults()).toEqual([expect.stringContaining('factory password')])
  })

  test('restarts an inventory that another client stopped', async () => {
    const b = bench()
    await b.ready()
    b.reader.stopReading()
    await b.until(() => b.status()?.state !== 'ready')
    await b.ready()
    expect(b.reader.isReading).toBe(true)
    expect(b.faults()).toEqual([expect.stringContaining('stopped reading')])
  })

  test('works with a web server that closes its connection after every third answer', async () => {
    const b = bench({}, { answersPerConnection: 3 })
    await b.ready()
    await b.world.advance(60_000)
    expect(b.states.map(({ state }) => state)).toEqual(['opening', 'identifying', 'ready'])
    for (let i = 0; i < 5; i++)
      expect((await b.world.settle(b.supervisor.execute('gate', RELEASE, forEver()))).outcome).toBe('confirmed')
    await b.world.advance(1_000)
    expect(b.reader.writes.filter(({ gpo, on }) => gpo === 3 && on)).toHaveLength(5)
  })

  test('reports garbage and long lines between events as noise, and the next tag as usual', async () => {
    const b = bench()
    await b.ready()
    b.reader.writeRaw('no json\r\n[1,2]\r\n{"tagInventoryEvent":{"epcHex":"xyz"}}\r\n')
    b.reader.writeRaw(`${'x'.repeat(70_000)}\r\n`)
    b.reader.see(EPC)
    await b.world.advance(2_000)
    expect(b.reads()).toHaveLength(1)
    expect(b.events.filter((event) => event.type === 'noise').length).toBeGreaterThan(0)
    expect(b.status()?.state).toBe('ready')
  })

  test('is degraded while the stream has only events that it cannot read, and keepalives are none', async () => {
    const b = bench()
    await b.ready()
    await b.world.advance(600_000)
    for (let n = 0; n < 3; n++) {
      expect(b.status()?.state).toBe('ready')
      b.reader.writeRaw('{"tagReport":{"tags":[]}}\r\n')
      await b.world.advance(6_000)
    }
    expect(b.status()).toMatchObject({
      state: 'degraded',
      findings: [{ code: 'unreadable_data', detail: expect.stringContaining('{"tagReport":{"tags":[]}}') }],
    })
    b.reader.see(EPC)
    await b.world.advance(10)
    expect(b.status()?.state).toBe('ready')
  })

  test.each([
    ['0.9 s for each answer', { answerDelayMs: 900 }],
    ['3 s to start its inventory', { startMs: 3_000 }],
  ])('becomes ready at a reader that takes %s', async (_, options) => {
    const b = bench({}, options)
    await b.until(() => b.status()?.state === 'ready')
    expect(b.states.map(({ state }) => state)).toEqual(['opening', 'identifying', 'ready'])
  })

  test('keeps a quiet reader whose firmware has no settings of the stream, and notices when it is gone', async () => {
    const b = bench({}, { hasStreamSettings: false })
    await b.ready()
    await b.world.advance(600_000)
    expect(b.states.map(({ state }) => state)).toEqual(['opening', 'identifying', 'ready'])
    expect(b.reader.requests.filter(({ method, path }) => method === 'PUT' && path.endsWith('http-stream'))).toEqual([])
    b.reader.mute(true)
    await b.world.advance(91_000)
    expect(b.status()?.state).not.toBe('ready')
  })

  test('sends Content-Length: 0 with a POST without body', async () => {
    const b = bench({}, { needsContentLength: true })
    await b.ready()
  })

  test('rejects impossible settings', () => {
    const faults = (settings: object) => {
      try {
        entries({ deviceId: 'gate', ...ENTRY, ...settings })
        return ''
      } catch (error) {
        return (error as Error).message
      }
    }
    expect(faults({ password: undefined })).toContain('devices[0].password: give the password')
    expect(faults({ link: { https: '10.0.0.9', fingerprint: 'ab' } })).toContain(
      'devices[0].link.fingerprint: give the SHA-256',
    )
    expect(faults({ preset: 'gate', readWhile: { gpi: 1 } })).toContain(
      'readWhile: a stored inventory has its own triggers',
    )
    expect(faults({ siren: { gpo: 3 } })).toContain('GPO 3 at http:10.0.0.9:80 is taken')
    expect(faults({ link: { https: '10.0.0.9:8443', fingerprint: Array(32).fill('AB').join(':') } })).toBe('')
  })
})
