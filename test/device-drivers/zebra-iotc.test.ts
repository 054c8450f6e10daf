import { Aedes } from 'aedes'
import fc from 'fast-check'
import { connect as connectMqtt } from 'mqtt'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import type { DeviceEvent } from '../../device-drivers/kit/device.ts'
import type { DeviceStatus } from '../../device-drivers/device-connection.ts'
import { zebraResponse, zebraTags } from '../../device-drivers/zebra-iotc/protocol/messages.ts'
import { supervise } from '../../device-drivers/supervisor.ts'
import { memoryPort } from '../../device-drivers/transports/memory.ts'
import { mqttBroker } from '../../simulators/devices/mqtt-broker.ts'
import { EVERY_READ, VENDOR_MODE, ZebraReader, type ZebraReaderOptions } from '../../simulators/devices/zebra-iotc.ts'
import { virtualPlatform } from '../verification/simulation/virtual/virtual-platform.ts'
import { describeDriver } from './conformance.ts'
import { realPlatform } from './platform.ts'
import { realBench } from './real-io.ts'
import { entries, forEver, RELEASE } from './workbench.ts'

const EPC = '3034257BF7194E4000001A85'
const BASE = 'zebra/FX9600F0F4B5'
const ENTRY = {
  driver: 'zebra-iotc',
  link: { mqtt: '10.0.0.5' },
  topics: BASE,
  siren: { gpo: 1 },
  release: { gpo: 3, pulseMs: 200 },
}

describeDriver('zebra-iotc', {
  entry: ENTRY,
  noticedWithinMs: 12_000,
  release: RELEASE,
  device(platform) {
    const broker = mqttBroker()
    const reader = new ZebraReader({ platform, bus: broker })
    return {
      serve: broker.serve,
      mute() {
        broker.mute(true)
        reader.mute(true)
      },
      heal() {
        broker.mute(false)
        reader.mute(false)
        reader.loseAnswers(false)
      },
      stir: () => reader.see(EPC),
      fits: (event) => event.type === 'tags' && event.reads.some(({ tag }) => 'epc' in tag && tag.epc === EPC),
      releases: () => reader.writes.filter(({ gpo, on }) => gpo === 3 && on).length,
      loseAnswer: () => reader.loseAnswers(true),
    }
  },
})

function bench(
  settings: Record<string, unknown> = {},
  others: Record<string, unknown>[] = [],
  options: Partial<ZebraReaderOptions> = {},
) {
  const world = virtualPlatform()
  const broker = mqttBroker()
  const reader = new ZebraReader({ platform: world, bus: broker, ...options })
  const port = memoryPort((link) => void broker.serve(link))
  const events: { deviceId: string; event: DeviceEvent }[] = []
  const states: DeviceStatus[] = []
  const supervisor = supervise({
    devices: entries({ deviceId: 'gate', ...ENTRY, ...settings }, ...others),
    platform: world,
    openLink: (_, signal) => port.open(signal),
    onEvent: (deviceId, event) => void events.push({ deviceId, event }),
    onState: (status) => void states.push(status),
  })
  const status = (id = 'gate') => supervisor.status(id)
  const reads = (id = 'gate') =>
    events.flatMap(({ deviceId, event }) => (deviceId === id && event.type === 'tags' ? event.reads : []))
  async function until(condition: () => boolean, limitMs = 30_000): Promise<void> {
    for (let waited = 0; !condition(); waited += 10) {
      if (waited >= limitMs) throw new Error(`not within ${limitMs} ms: ${JSON.stringify(supervisor.statuses)}`)
      await world.advance(10)
    }
  }
  return {
    world,
    broker,
    reader,
    port,
    events,
    states,
    supervisor,
    status,
    reads,
    until,
    ready: () => until(() => status()?.state === 'ready'),
  }
}

/** A real broker (aedes). The reader is a separate client of it (mqtt.js). */
async function realBroker(options: { clean?: boolean; clientId?: string } = {}) {
  const aedes = await Aedes.createBroker()
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    aedes.handle(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const client = connectMqtt(`mqtt://127.0.0.1:${port}`, options)
  await new Promise<void>((resolve) => client.once('connect', () => resolve()))
  const listeners = new Map<string, (text: string) => void>()
  client.on('message', (topic, payload) => listeners.get(topic)?.(payload.toString()))
  const reader = new ZebraReader({
    platform: realPlatform,
    bus: {
      publish: (topic, payload) => void client.publish(topic, Buffer.from(payload), { qos: 1 }),
      subscribe(topic, listener) {
        listeners.set(topic, listener)
        client.subscribe(topic, { qos: 1 })
      },
    },
  })
  const onceConnected = () => new Promise<void>((resolve) => client.once('connect', () => resolve()))
  const end = () => new Promise<void>((resolve) => client.end(true, () => resolve()))
  return {
    port,
    sockets,
    reader,
    away: end,
    back() {
      const connected = onceConnected()
      client.reconnect()
      return connected
    },
    async close() {
      await end()
      for (const socket of sockets) socket.destroy()
      server.close()
      await new Promise<void>((resolve) => aedes.close(() => resolve()))
    },
  }
}

describe('zebra-iotc', () => {
  test('reports the reader’s identity, and one or many tags in a message', async () => {
    const b = bench()
    await b.ready()
    expect(b.status()?.identity).toEqual({
      description: `Zebra FX9600 on ${BASE}/data at mqtt:10.0.0.5:1883`,
      firmwareVersion: '3.21.23.0',
      serialNumber: '84248df0f4b5',
    })
    b.reader.see(EPC, { antenna: 2, rssiDbm: -48 })
    b.reader.seeMany([EPC, '112233445566778899001134'])
    await b.world.advance(10)
    expect(b.reads()).toMatchObject([
      { tag: { epc: EPC }, antenna: 2, rssiDbm: -48 },
      { tag: { epc: EPC } },
      { tag: { epc: '112233445566778899001134' }, antenna: 1 },
    ])
  })

  test.each([0, -3 * 3_600_000, 3 * 3_600_000])(
    'keeps the age of reads that the reader buffered during a network failure (clock error %i ms)',
    async (offset) => {
      const b = bench()
      b.reader.setClock(offset)
      await b.ready()
      // The status has whole seconds; the first live read corrects the clock.
      b.reader.see(EPC)
      await b.world.advance(500)
      b.reader.disconnect(true)
      b.reader.see(EPC)
      const seenAt = b.world.clock.elapsed()
      await b.world.advance(4_000)
      b.reader.disconnect(false)
      await b.world.advance(10)
      expect(b.reads().at(-1)?.seenAtMs).toBe(seenAt)
    },
  )

  test('writes the remaining siren time after a reboot of the reader', async () => {
    const b = bench()
    await b.ready()
    expect(
      await b.world.settle(b.supervisor.execute('gate', { kind: 'signal', signal: 'siren', seconds: 60 }, forEver())),
    ).toMatchObject({ outcome: 'confirmed' })
    expect(b.reader.outputs.get(1)).toBe(true)
    b.reader.reboot()
    await b.until(() => b.reader.outputs.get(1) === true && b.reader.isReading)
    expect(b.events.some(({ event }) => event.type === 'fault' && event.detail.includes('stopped reading'))).toBe(true)
    await b.ready()
    await b.world.settle(b.supervisor.stop())
    expect(b.reader.outputs.get(1)).toBe(false)
    expect(b.reader.isReading).toBe(false)
  })

  test('reports a wrong password at the broker, and connects with the right one', async () => {
    const b = bench({ link: { mqtt: '10.0.0.5', user: 'edge', password: 'right' } })
    b.broker.login('edge', 'wrong')
    await b.world.advance(30_000)
    expect(b.states.some(({ detail }) => detail.includes('user or password is wrong'))).toBe(true)
    expect(b.states.map(({ state }) => state)).not.toContain('ready')
    b.broker.login('edge', 'right')
    await b.ready()
  })

  test('reports a switched-off reader, and does not disturb other readers of the broker', async () => {
    const b = bench({}, [
      { deviceId: 'other', driver: 'zebra-iotc', link: ENTRY.link, topics: 'zebra/OFF' },
      { deviceId: 'deaf', driver: 'zebra-iotc', link: ENTRY.link, topics: { data: 'handheld/data' } },
    ])
    await b.ready()
    await b.world.advance(120_000)
    expect(b.status('other')?.state).not.toBe('ready')
    expect(b.states.some(({ deviceId, detail }) => deviceId === 'other' && detail.includes('is the reader on'))).toBe(
      true,
    )
    expect(b.states.filter(({ deviceId }) => deviceId === 'gate').map(({ state }) => state)).toEqual([
      'opening',
      'identifying',
      'ready',
    ])
    expect(b.port.opened).toBe(1)
    b.broker.publish(
      'handheld/data',
      JSON.stringify({
        type: 'INVENTORY',
        timestamp: '2026-05-19T14:15:22Z',
        data: { tagData: [{ EPCid: EPC, eventNum: 1 }] },
      }),
    )
    await b.world.advance(10)
    expect([b.reads('deaf').length, b.reads('gate').length]).toEqual([1, 0])
  })

  test('becomes ready at a reader that takes 1.2 s for each answer', async () => {
    const b = bench({ amber: { gpo: 2 }, green: { gpo: 4 } }, [], { answerDelayMs: 1_200 })
    await b.ready()
    expect(b.states.map(({ state }) => state)).toEqual(['opening', 'identifying', 'ready'])
  })

  test('names the step that a broker does not answer', async () => {
    const b = bench()
    b.broker.ignore('subscribe')
    await b.world.advance(60_000)
    expect(b.states.map(({ detail }) => detail)).toContainEqual(
      expect.stringContaining('waiting for the broker to accept the subscription'),
    )
  })

  test('reports garbage on the data topic as noise', async () => {
    const b = bench()
    await b.ready()
    for (const text of ['', 'x', '[1,2]', '{"data":{"idHex":"zz"}}', '{"data":[{}]}'])
      b.broker.publish(`${BASE}/data`, text)
    b.reader.see(EPC)
    await b.world.advance(1_500)
    expect(b.reads()).toHaveLength(1)
    expect(b.events.filter(({ event }) => event.type === 'noise').length).toBeGreaterThan(0)
    expect(b.status()?.state).toBe('ready')
  })

  test('reads several objects in one message and one behind a byte order mark, and no silent drops', async () => {
    const b = bench()
    await b.ready()
    const event = (epc: string) => JSON.stringify({ data: { idHex: epc, eventNum: 1 }, type: 'SIMPLE' })
    const second = '3034257BF400B800000000C9'
    b.broker.publish(`${BASE}/data`, `\ufeff${event(EPC)}\n${event(second)}`)
    await b.world.advance(10)
    expect(b.reads().map(({ tag }) => tag)).toEqual([{ epc: EPC }, { epc: second }])
    for (let n = 0; n < 3; n++) {
      b.broker.publish(`${BASE}/data`, '{"tags":["3034"]}')
      b.broker.publish(`${BASE}/data`, '{"type":"heartbeat","data":{}}')
      b.broker.publish(`${BASE}/data`, '[]')
      await b.world.advance(10)
    }
    expect(b.status()).toMatchObject({
      state: 'degraded',
      findings: [{ code: 'unreadable_data', detail: expect.stringContaining('{"tags":["3034"]}') }],
    })
    b.reader.see(EPC)
    await b.world.advance(10)
    expect(b.status()?.state).toBe('ready')
  })

  test.each([
    ['which the broker did not take is not left on its way: the line is opened anew', true, 2],
    ['which the broker took and the reader did not answer leaves the line to its neighbours', false, 1],
  ])('a release %s', async (_, isBrokerDeaf, opened) => {
    const b = bench({}, [{ ...ENTRY, deviceId: 'neighbour', topics: 'zebra/other' }])
    void new ZebraReader({ platform: b.world, bus: b.broker, base: 'zebra/other' })
    await b.until(() => b.status()?.state === 'ready' && b.status('neighbour')?.state === 'ready')
    if (isBrokerDeaf) b.broker.mute(true)
    else b.reader.mute(true)
    const commandResult = b.supervisor.execute('gate', RELEASE, forEver())
    await b.world.advance(2_100)
    expect(await commandResult).toMatchObject({ outcome: 'unknown' })
    b.broker.mute(false)
    b.reader.mute(false)
    await b.ready()
    expect(b.port.opened).toBe(opened)
  })

  test('works over a real broker (aedes) with a reader that is a separate client (mqtt.js)', async () => {
    const { port, sockets, reader, close } = await realBroker()
    const b = realBench([{ deviceId: 'gate', ...ENTRY, link: { mqtt: `127.0.0.1:${port}` } }])
    await b.untilState('gate', 'ready')
    reader.see(EPC)
    await b.untilEvent((event) => event.type === 'tags' && event.reads.length === 1)
    expect(await b.supervisor.execute('gate', RELEASE, forEver())).toMatchObject({ outcome: 'confirmed' })
    reader.seeMany(Array.from({ length: 1_000 }, (_, i) => i.toString(16).padStart(24, '0')))
    await b.untilEvent((event) => event.type === 'tags' && event.reads.length > 500)
    for (const socket of sockets) socket.destroy()
    await b.untilState('gate', 'degraded')
    await b.untilState('gate', 'ready')
    await b.supervisor.stop()
    await close()
  })

  test('does not execute a missed release after the reconnect, although the broker keeps the session', async () => {
    const { port, reader, away, back, close } = await realBroker({ clean: false, clientId: 'fx9600' })
    const b = realBench([{ deviceId: 'gate', ...ENTRY, requestTimeoutMs: 500, link: { mqtt: `127.0.0.1:${port}` } }])
    await b.untilState('gate', 'ready')
    await away()
    expect(await b.supervisor.execute('gate', RELEASE, forEver())).toMatchObject({
      outcome: 'unknown',
      detail: expect.stringContaining('no answer to set_gpo'),
    })
    await back()
    await b.untilState('gate', 'ready')
    expect(reader.writes.filter(({ on }) => on)).toEqual([])
    expect(await b.supervisor.execute('gate', RELEASE, forEver())).toMatchObject({ outcome: 'confirmed' })
    await b.supervisor.stop()
    await close()
  })
})

const SIDES = { antennas: { inside: [1], outside: [2] } }
// The payload that Zebra's schemas (operatingMode.v1, tagReportFilter.v1, query, tagMetaData) give for every read.
const PAYLOAD =
  '{"type":"SIMPLE","antennas":[1,2],"query":{"tagPopulation":32,"sel":"ALL","session":"S0","target":"A"},"tagMetaData":["ANTENNA","RSSI"],"reportFilter":{"type":"PER_ANTENNA","duration":0}}'

describe('the operating mode of a Zebra reader', () => {
  test.each<[string, NonNullable<ZebraReaderOptions['mode']>, Record<string, unknown>, string[]]>([
    ['the default', VENDOR_MODE, SIDES, ['reader_filters', 'reader_mode', 'reader_session']],
    ['the default without sides', VENDOR_MODE, {}, ['reader_filters']],
    ['PORTAL', { type: 'PORTAL' }, SIDES, ['reader_filters', 'reader_session']],
    ['CONVEYOR', { type: 'CONVEYOR' }, {}, ['reader_filters']],
    ['INVENTORY', { ...EVERY_READ, type: 'INVENTORY' }, SIDES, ['reader_filters']],
    [
      'a filter of a second',
      { ...EVERY_READ, reportFilter: { type: 'PER_ANTENNA', duration: 1 } },
      {},
      ['reader_filters'],
    ],
    [
      'a filter of all antennas',
      { ...EVERY_READ, reportFilter: { type: 'RADIO_WIDE', duration: 0 } },
      SIDES,
      ['reader_filters'],
    ],
    ['no antenna', { ...EVERY_READ, tagMetaData: ['RSSI'] }, SIDES, ['reader_mode']],
    ['one of two antennas', { ...EVERY_READ, antennas: [1] }, SIDES, ['reader_mode']],
    ['session S1', { ...EVERY_READ, query: {} }, SIDES, ['reader_session']],
    ['session S1 without sides', { ...EVERY_READ, query: {} }, {}, []],
    ['every read', EVERY_READ, SIDES, []],
    // A verbose mode lists the settings without effect, too (a published set_mode of an FX9600).
    [
      'settings without effect',
      {
        ...EVERY_READ,
        radioStartConditions: {},
        radioStopConditions: {},
        modeSpecificSettings: { interval: { unit: 'seconds', value: 0 } },
        delayBetweenAntennaCycles: { type: 'DISABLED', duration: 0 },
      },
      SIDES,
      [],
    ],
    [
      'a start condition',
      { ...EVERY_READ, radioStartConditions: { type: 'GPI', gpis: [{ port: 1, signal: 'HIGH' }] } },
      SIDES,
      ['reader_mode'],
    ],
    ['a stop condition', { ...EVERY_READ, radioStopConditions: { duration: 10 } }, {}, ['reader_mode']],
    [
      'a trigger',
      { ...EVERY_READ, type: 'PORTAL', modeSpecificSettings: { startTrigger: { port: 1, signal: 'LOW' } } },
      SIDES,
      ['reader_mode'],
    ],
    [
      'a pause between rounds',
      { ...EVERY_READ, delayBetweenAntennaCycles: { type: 'NO_TAGS', duration: 5_000 } },
      SIDES,
      ['reader_mode'],
    ],
  ])('with %s', async (_, mode, settings, codes) => {
    const b = bench(settings, [], { mode })
    await b.until(() => b.status()?.identity !== undefined)
    expect(b.status()?.findings.map(({ code }) => code)).toEqual(codes)
    expect(b.status()?.state).toBe(codes.length > 0 ? 'degraded' : 'ready')
    const details = b.status()?.findings.map(({ detail }) => detail) ?? []
    if (settings === SIDES && codes.length > 0)
      expect(details[0]).toContain(`"setMode": true, or send set_mode with the payload ${PAYLOAD}`)
    for (const detail of details.slice(1)) expect(detail).toMatch(/; the same set_mode changes it$/)
    // It reads nevertheless, and the release is refused.
    expect(b.reader.isReading).toBe(true)
    expect((await b.world.settle(b.supervisor.execute('gate', RELEASE, forEver()))).outcome).toBe(
      codes.length > 0 ? 'failed' : 'confirmed',
    )
  })

  test('is set with "setMode": true, with the power of the reader, and only if the present mode does not fit', async () => {
    const b = bench({ ...SIDES, setMode: true }, [], { mode: { ...VENDOR_MODE, transmitPower: 25.1 } })
    await b.ready()
    expect(b.status()?.findings).toEqual([])
    expect(b.reader.mode).toEqual({ ...JSON.parse(PAYLOAD), transmitPower: 25.1 })
    const set = b.reader.mode
    b.reader.see(EPC, { antenna: 1 })
    b.reader.see(EPC, { antenna: 2 })
    b.reader.see(EPC, { antenna: 2 })
    await b.world.advance(10)
    expect(b.reads().map(({ antenna }) => antenna)).toEqual([1, 2, 2])
    b.reader.stopReading()
    await b.until(() => b.status()?.state !== 'ready')
    await b.ready()
    expect(b.reader.mode).toBe(set)
    expect(() => bench({ topics: { data: 'x/data' }, siren: undefined, release: undefined, setMode: true })).toThrow(
      'setMode needs the topics controlCommand and controlResponse',
    )
  })

  test.each([
    [{ filter: { value: '3034', match: 'prefix', operation: 'include' } }, '"filter"'],
    [{ rssiFilter: { type: 'ABSOLUTE', value: -40 } }, '"rssiFilter"'],
  ])('warns of a mode that selects tags, and does not replace it: %o', async (more, field) => {
    const mode = { ...EVERY_READ, ...more }
    const b = bench({ ...SIDES, setMode: true }, [], { mode })
    await b.ready()
    expect(b.status()?.findings).toMatchObject([
      { code: 'reader_filters', isWarning: true, detail: expect.stringContaining(field) },
    ])
    expect(b.reader.mode).toBe(mode)
  })

  test('keeps the power of each antenna when it is set', async () => {
    const b = bench({ ...SIDES, setMode: true }, [], {
      mode: { ...VENDOR_MODE, antennas: [1, 2], transmitPower: [20, 15.5] },
    })
    await b.ready()
    expect(b.reader.mode.transmitPower).toEqual([20, 15.5])
  })

  test('is checked again after another program has changed it', async () => {
    const b = bench(SIDES)
    await b.ready()
    b.reader.changeMode(VENDOR_MODE)
    await b.until(() => b.status()?.findings.some(({ code }) => code === 'reader_filters') === true)
    expect(b.status()?.state).toBe('degraded')
  })

  test('that does not start the radio never makes the reader ready', async () => {
    const b = bench(SIDES, [], { neverStarts: true })
    await b.world.advance(120_000)
    expect(b.states.map(({ state }) => state)).not.toContain('ready')
    expect(b.states.map(({ detail }) => detail)).toContainEqual(expect.stringContaining('its radio stays inactive'))
  })

  test('and its status show a pulled antenna cable, and correct the clock', async () => {
    const b = bench(SIDES)
    await b.ready()
    b.reader.setAntenna(2, false)
    b.reader.setAntenna(4, false)
    b.reader.setClock(-3_600_000)
    await b.world.advance(3_100)
    expect(b.status()?.findings).toMatchObject([
      { code: 'reader_antenna', detail: 'antenna 2 (outside): not connected; check the cable' },
    ])
    b.reader.see(EPC, { antenna: 1 })
    await b.world.advance(10)
    // The time in the status has whole seconds.
    const [read] = b.reads()
    expect(b.world.clock.elapsed() - (read?.seenAtMs ?? 0)).toBeLessThan(1_100)
    b.reader.setAntenna(2, true)
    await b.world.advance(3_100)
    expect(b.status()?.state).toBe('ready')
  })

  test('is read also from a reader that needs 1.2 s for each answer', async () => {
    const b = bench({ ...SIDES, setMode: true }, [], { mode: VENDOR_MODE, answerDelayMs: 1_200 })
    await b.ready()
    await b.world.advance(60_000)
    expect(b.states.map(({ state }) => state)).toEqual(['opening', 'identifying', 'ready'])
  })

  test('that the agent cannot read degrades a reader with antennas', async () => {
    const b = bench({ topics: { data: `${BASE}/data` }, siren: undefined, release: undefined, ...SIDES })
    await b.until(() => b.status()?.identity !== undefined)
    expect(b.status()?.findings).toMatchObject([
      { code: 'reader_mode', detail: expect.stringMatching(/add controlCommand and controlResponse to "topics"/) },
    ])
  })
})

describe('messages of Zebra readers, as published', () => {
  test.each([
    // Data of an FX9600 that a programmer published in 2024. The reader also read other memory banks.
    [
      {
        data: {
          MAC: '84:24:8D:F1:0A:E0',
          PC: '3f17',
          accessResults: ['e2c24500200000668534009c'],
          antenna: 1,
          channel: 918.7,
          eventNum: 63,
          format: 'uii',
          hostName: 'FX9600F10AE0',
          idHex: 'e2c24500200000668534009c',
          peakRssi: -39,
        },
        timestamp: '2024-11-21T13:20:53.319-0600',
        type: 'SIMPLE',
      },
      [
        {
          epc: 'E2C24500200000668534009C',
          antenna: 1,
          rssiDbm: -39,
          utcUs: Date.UTC(2024, 10, 21, 19, 20, 53, 319) * 1_000,
        },
      ],
    ],
    // A batch by HTTP POST, 2023.
    [
      [
        {
          data: {
            antenna: 1,
            eventNum: 1759,
            format: 'epc',
            idHex: '112233445566778899001134',
            peakRssi: -53,
            reads: 387321,
          },
          timestamp: '2023-04-03T21:50:16.699+0200',
          type: 'SIMPLE',
        },
      ],
      [
        {
          epc: '112233445566778899001134',
          antenna: 1,
          rssiDbm: -53,
          utcUs: Date.UTC(2023, 3, 3, 19, 50, 16, 699) * 1_000,
        },
      ],
    ],
    // RFD40/90 MQTT API 1.22.0, dataEVT.
    [
      {
        type: 'BALANCED_PERFORMANCE',
        timestamp: '2019-08-24T14:15:22Z',
        data: {
          tagData: [
            {
              EPCid: 'BEDD11112222333344445555',
              TID: 'E2003412',
              channel: 911.75,
              eventNum: 1,
              peakRssi: -39,
              phase: 0,
              seenCount: 1,
            },
          ],
        },
      },
      [{ epc: 'BEDD11112222333344445555', rssiDbm: -39, utcUs: Date.UTC(2019, 7, 24, 14, 15, 22) * 1_000 }],
    ],
    [{ type: 'heartbeat', timestamp: '2019-08-24T14:15:22Z', data: { radio_control: {} } }, []],
  ])('%#', (message, sightings) => expect(zebraTags(message)).toEqual({ sightings, strange: 0 }))

  const TAG = { data: { format: 'epc', idHex: EPC, antenna: 1 }, type: 'SIMPLE' }
  const TID = { data: { format: 'tid', idHex: 'E2003412', antenna: 1 }, type: 'SIMPLE' }
  test.each<[string, unknown, number, number]>([
    ['without an id', { data: { format: 'epc', antenna: 1 }, timestamp: '2026-11-28T10:00:00Z', type: 'SIMPLE' }, 0, 1],
    ['with another bank in place of the EPC', TID, 0, 1],
    ['with another bank beside the EPC', [TAG, TID], 1, 0],
    ['beyond the limit', Array.from({ length: 5_003 }, () => TAG), 5_000, 3],
  ])('counts tags %s', (_, message, sightings, strange) => {
    const found = zebraTags(message)
    expect([found.sightings.length, found.strange]).toEqual([sightings, strange])
  })

  test('responses (Raw MQTT payloads 1.0.0)', () => {
    expect(zebraResponse({ command: 'set_gpo', command_id: 'abcd1324', response: 'success', payload: {} })).toEqual({
      command: 'set_gpo',
      id: 'abcd1324',
      isSuccess: true,
      payload: {},
    })
    expect(zebraResponse({ command: 'set_gpo', command_id: 'abcd1324', payload: {} })).toBeNull()
  })

  test('accepts any message without a throw', () =>
    fc.assert(
      fc.property(
        fc.anything(),
        (value) =>
          void [
            zebraTags(value),
            zebraTags({ data: value }),
            zebraTags({ data: { tagData: value } }),
            zebraResponse(value),
          ],
      ),
    ))
})
