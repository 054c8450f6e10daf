import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decodeMessage, encodeMessage } from '../../device-drivers/llrp/protocol/binary.ts'
import { all, first, message, parameter, MESSAGE_ROWS } from '../../device-drivers/llrp/protocol/elements.ts'
import { llrpCodec, MAX_MESSAGE_BYTES } from '../../device-drivers/llrp/protocol/frames.ts'
import type { LlrpFrame } from '../../device-drivers/llrp/protocol/frames.ts'
import { readTagReports } from '../../device-drivers/llrp/protocol/tag-reports.ts'
import { seededRandom } from '../verification/simulation/virtual/virtual-platform.ts'
import { NO_LLRP_VECTORS, outsideBytes, outsideVectors } from '../support/outside-vectors.ts'
import { anyMessage, messageOf } from './llrp-messages.ts'
import { CAPABILITIES, CONFIG, CONNECTION_CLOSED, REPORTS, STATUS_OK } from './llrp-vectors.ts'
import { chopped, concat } from './pieces.ts'
import { suiteWith } from '../support/extended.ts'

const hex = (text: string) => Uint8Array.from(Buffer.from(text.replaceAll(/\s/g, ''), 'hex'))
const frame = (type: number, body: string, id = 7): LlrpFrame => ({ type, id, body: hex(body) })
/** The frame that the codec decodes from a message with this body. */
function through(bytes: Uint8Array): LlrpFrame {
  const codec = llrpCodec()
  const got = codec.push(bytes)
  expect([got.length, codec.held, codec.takeNoise()]).toEqual([1, 0, null])
  return got[0]!
}

describe('messages of a real reader', () => {
  test.each(REPORTS)('tag report %#', (body, epc, rssiDbm, utcUs) => {
    expect(readTagReports(hex(body))).toEqual([{ epc, antenna: 1, rssiDbm, utcUs, uptimeUs: undefined, count: 1 }])
    const decoded = decodeMessage(frame(61, body))
    expect(decoded).toEqual(
      message(
        'RO_ACCESS_REPORT',
        7,
        {},
        parameter(
          'TagReportData',
          {},
          parameter('EPC_96', { EPC: epc }),
          parameter('AntennaID', { AntennaID: 1 }),
          parameter('PeakRSSI', { PeakRSSI: rssiDbm }),
          parameter('FirstSeenTimestampUTC', { Microseconds: BigInt(utcUs) }),
        ),
      ),
    )
    expect(encodeMessage(decoded as Exclude<typeof decoded, { name: 'malformed' }>).subarray(10)).toEqual(hex(body))
  })

  test('decodes a close event', () => {
    const decoded = decodeMessage(frame(63, CONNECTION_CLOSED))
    const data = first(decoded as Extract<typeof decoded, { params: unknown }>, 'ReaderEventNotificationData')
    expect(first(data, 'UTCTimestamp')?.fields.Microseconds).toBe(1596721689842138n)
    expect(first(data, 'ConnectionCloseEvent')).toBeDefined()
  })

  test.each([
    [4, 'CLOSE_CONNECTION_RESPONSE'],
    [36, 'GET_ROSPECS_RESPONSE'],
    [54, 'GET_ACCESSSPECS_RESPONSE'],
  ] as const)('decodes the status in message %i', (type, name) => {
    expect(decodeMessage(frame(type, STATUS_OK))).toEqual(
      message(name, 7, {}, parameter('LLRPStatus', { StatusCode: 0, ErrorDescription: '' })),
    )
  })

  test('decodes a configuration', () => {
    const decoded = decodeMessage(frame(12, CONFIG)) as ReturnType<typeof message<'GET_READER_CONFIG_RESPONSE'>>
    expect(decoded.name).toBe('GET_READER_CONFIG_RESPONSE')
    expect(Buffer.from(first(decoded, 'Identification')!.fields.ReaderID).toString('hex')).toBe('001625ffff1125d6')
    expect(all(decoded, 'AntennaProperties').map(({ fields }) => fields.AntennaConnected)).toEqual([
      true,
      false,
      false,
      false,
    ])
    const antenna = first(decoded, 'AntennaConfiguration')
    expect(first(antenna, 'RFTransmitter')?.fields).toEqual({ HopTableID: 1, ChannelIndex: 0, TransmitPower: 81 })
    const inventory = first(antenna, 'C1G2InventoryCommand')
    expect(first(inventory, 'C1G2RFControl')?.fields).toEqual({ ModeIndex: 1000, Tari: 0 })
    expect(first(inventory, 'C1G2SingulationControl')?.fields).toEqual({
      Session: 1,
      TagPopulation: 32,
      TagTransitTime: 0,
    })
    const events = all(first(decoded, 'ReaderEventNotificationSpec'), 'EventNotificationState')
    expect(events.filter(({ fields }) => fields.NotificationState).map(({ fields }) => fields.EventType)).toEqual([
      4, 8,
    ])
    expect(first(first(decoded, 'ROReportSpec'), 'TagReportContentSelector')?.fields).toMatchObject({
      EnableAntennaID: true,
      EnableChannelIndex: false,
      EnablePeakRSSI: true,
      EnableFirstSeenTimestamp: true,
      EnableTagSeenCount: false,
    })
    expect(first(decoded, 'LLRPConfigurationStateValue')?.fields.LLRPConfigurationStateValue).toBe(2057940966)
    expect(encodeMessage(decoded).subarray(10)).toEqual(hex(CONFIG))
  })

  test('decodes capabilities', () => {
    const decoded = decodeMessage(frame(11, CAPABILITIES)) as ReturnType<
      typeof message<'GET_READER_CAPABILITIES_RESPONSE'>
    >
    const general = first(decoded, 'GeneralDeviceCapabilities')
    expect(general?.fields).toEqual({
      MaxNumberOfAntennaSupported: 4,
      CanSetAntennaProperties: false,
      HasUTCClockCapability: true,
      DeviceManufacturerName: 25882,
      ModelName: 2001002,
      ReaderFirmwareVersion: '5.14.0.240',
    })
    expect(all(general, 'ReceiveSensitivityTableEntry')).toHaveLength(42)
    expect(first(general, 'GPIOCapabilities')?.fields).toEqual({ NumGPIs: 4, NumGPOs: 4 })
    expect(first(decoded, 'LLRPCapabilities')?.fields).toEqual({
      CanDoRFSurvey: false,
      CanReportBufferFillWarning: true,
      SupportsClientRequestOpSpec: false,
      CanDoTagInventoryStateAwareSingulation: false,
      SupportsEventAndReportHolding: true,
      MaxNumPriorityLevelsSupported: 1,
      ClientRequestOpSpecTimeout: 0,
      MaxNumROSpecs: 1,
      MaxNumSpecsPerROSpec: 32,
      MaxNumInventoryParameterSpecsPerAISpec: 1,
      MaxNumAccessSpecs: 1508,
      MaxNumOpSpecsPerAccessSpec: 8,
    })
    const band = first(first(decoded, 'RegulatoryCapabilities'), 'UHFBandCapabilities')
    const powers = all(band, 'TransmitPowerLevelTableEntry').map(({ fields }) => fields)
    expect([powers.length, powers[0], powers.at(-1)]).toEqual([
      81,
      { Index: 1, TransmitPowerValue: 1000 },
      { Index: 81, TransmitPowerValue: 3000 },
    ])
    const hops = all(first(band, 'FrequencyInformation'), 'FrequencyHopTable')[0]
    expect([hops?.fields.HopTableID, hops?.fields.Frequency.length, hops?.fields.Frequency[0]]).toEqual([1, 50, 909250])
    expect(
      all(first(band, 'C1G2UHFRFModeTable'), 'C1G2UHFRFModeTableEntry').map(({ fields }) => fields.ModeIdentifier),
    ).toEqual([0, 1, 2, 3, 4, 1000, 1002, 1003, 1004, 1005])
    expect(first(decoded, 'C1G2LLRPCapabilities')?.fields.MaxNumSelectFiltersPerQuery).toBe(2)
    expect(encodeMessage(decoded).subarray(10)).toEqual(hex(CAPABILITIES))
  })
})

suiteWith(NO_LLRP_VECTORS, 'files of EdgeX', () => {
  interface EdgexReport {
    readonly TagReportData: readonly {
      readonly EPC96: { readonly EPC: string }
      readonly AntennaID: number
      readonly PeakRSSI: number
      readonly FirstSeenUTC: number
    }[]
  }

  test.each(['r001', 'r005', 'r009'])('%s', (name) => {
    const tags = outsideVectors<EdgexReport>(`llrp/${name}.json`).TagReportData.map((tag) => ({
      epc: Buffer.from(tag.EPC96.EPC, 'base64').toString('hex').toUpperCase(),
      antenna: tag.AntennaID,
      rssiDbm: tag.PeakRSSI,
      utcUs: tag.FirstSeenUTC,
      uptimeUs: undefined,
      count: 1,
    }))
    expect(readTagReports(outsideBytes(`llrp/${name}.bytes`))).toEqual(tags)
  })

  test('ren', () => {
    expect(outsideBytes('llrp/ren.bytes')).toEqual(hex(CONNECTION_CLOSED))
  })
})

describe('encoding and decoding', () => {
  test('decodes every message and parameter of the tables, in any chunks', () => {
    fc.assert(
      fc.property(
        fc.array(anyMessage, { minLength: 1, maxLength: 4 }),
        fc.integer({ min: 1, max: 400 }),
        (messages, size) => {
          const codec = llrpCodec()
          const bytes = messages.map(encodeMessage)
          const got = chopped(concat(bytes), size).flatMap((chunk) => codec.push(chunk))
          expect(got.map(decodeMessage)).toEqual(messages)
          expect(got.map((each) => codec.encode(each))).toEqual(bytes)
          expect([codec.held, codec.takeNoise()]).toEqual([0, null])
        },
      ),
      { numRuns: 400 },
    )
    expect(MESSAGE_ROWS.size).toBeGreaterThan(30)
  })

  test('finds the same tags in the fast decoder as in the full one', () => {
    fc.assert(
      fc.property(messageOf('RO_ACCESS_REPORT'), (report) => {
        const { body } = through(encodeMessage(report))
        const long = all(report, 'TagReportData').flatMap((tag) => {
          const bits = first(tag, 'EPCData')?.fields.EPC
          const epc =
            first(tag, 'EPC_96')?.fields.EPC ?? (bits && bits.count > 0 && bits.count <= 496 ? bits.hex : undefined)
          const micros = (name: 'FirstSeenTimestampUTC' | 'FirstSeenTimestampUptime') => {
            const stamp = first(tag, name)?.fields.Microseconds
            return stamp === undefined ? undefined : Number(stamp)
          }
          return epc === undefined
            ? []
            : [
                {
                  epc,
                  antenna: first(tag, 'AntennaID')?.fields.AntennaID,
                  rssiDbm: first(tag, 'PeakRSSI')?.fields.PeakRSSI,
                  utcUs: micros('FirstSeenTimestampUTC'),
                  uptimeUs: micros('FirstSeenTimestampUptime'),
                  count: first(tag, 'TagSeenCount')?.fields.TagCount ?? 1,
                },
              ]
        })
        expect(readTagReports(body)).toEqual(long)
      }),
      { numRuns: 300 },
    )
  })

  test('refuses to encode what the table does not allow', () => {
    const status = parameter('LLRPStatus', { StatusCode: 0, ErrorDescription: '' })
    const power = (TransmitPower: number) =>
      message(
        'SET_READER_CONFIG',
        1,
        { ResetToFactoryDefault: false },
        parameter(
          'AntennaConfiguration',
          { AntennaID: 0 },
          parameter('RFTransmitter', { HopTableID: 1, ChannelIndex: 0, TransmitPower }),
        ),
      )
    expect(() => encodeMessage(message('ADD_ROSPEC_RESPONSE', 1, {}))).toThrow('LLRPStatus is missing')
    expect(() => encodeMessage(message('ADD_ROSPEC_RESPONSE', 1, {}, status, status))).toThrow('2 times')
    expect(() => encodeMessage(message('KEEPALIVE', 1, {}, status))).toThrow('holds no LLRPStatus')
    expect(() =>
      encodeMessage(
        message(
          'READER_EVENT_NOTIFICATION',
          1,
          {},
          parameter(
            'ReaderEventNotificationData',
            {},
            parameter('ConnectionCloseEvent', {}),
            parameter('UTCTimestamp', { Microseconds: 1n }),
          ),
        ),
      ),
    ).toThrow('UTCTimestamp stands too late')
    expect(() => encodeMessage(power(70_000))).toThrow('RFTransmitter.TransmitPower: 70000')
    expect(() => encodeMessage(power(Number.NaN))).toThrow('RFTransmitter.TransmitPower')
    expect(() => encodeMessage(message('DELETE_ROSPEC', 1, {}))).toThrow('ROSpecID is missing')
    expect(encodeMessage(message('KEEPALIVE_ACK', 5, {}))).toEqual(hex('0448 0000000A 00000005'))
  })

  test('rejects invalid bodies', () => {
    for (const body of [
      '00',
      '00f0',
      '00f00003',
      '00f0001f8d',
      '00f00005 8d',
      '00f00005 81',
      '00f00005 95',
      '00f00008 00f10003',
    ]) {
      expect(decodeMessage(frame(61, body)), body).toMatchObject({
        name: 'malformed',
        type: 61,
        id: 7,
        fault: expect.any(String),
      })
      expect(readTagReports(hex(body)), body).toBeNull()
    }
    const nested = Array.from({ length: 40 }).reduce<string>(
      (inner) => `0121${(inner.length / 2 + 8).toString(16).padStart(4, '0')}00000000${inner}`,
      '',
    )
    expect(decodeMessage(frame(100, nested))).toMatchObject({
      name: 'malformed',
      fault: expect.stringContaining('without end'),
    })
    expect(decodeMessage(frame(46, 'ABCD'))).toEqual({ name: 'unknown', type: 46, id: 7, bytes: hex('ABCD') })
  })

  test('rejects an EPC of more than 496 bits', () => {
    const report = (bytes: number) => {
      const length = (n: number) => n.toString(16).padStart(4, '0')
      return hex(`00f0${length(10 + bytes)} 00f1${length(6 + bytes)} ${length(8 * bytes)} ${'ab'.repeat(bytes)}`)
    }
    expect(readTagReports(report(62))?.[0]?.epc).toBe('AB'.repeat(62))
    for (const bytes of [63, 75, 8_000]) expect(readTagReports(report(bytes))).toEqual([])
  })

  test('skips a tag without an EPC, and gives one of 128 bits 32 digits', () => {
    expect(readTagReports(hex('00f0000a 00f10006 0000'))).toEqual([])
    expect(readTagReports(hex('00f0001a 00f10016 0080 303132333435363738393A3B3C3D3E3F'))?.[0]?.epc).toBe(
      '303132333435363738393A3B3C3D3E3F',
    )
  })
})

describe('a stream with garbage', () => {
  const keepalive = (id: number) => encodeMessage(message('KEEPALIVE', id, {}))
  const report = (id: number) =>
    encodeMessage({
      ...(decodeMessage(frame(61, REPORTS[id % 9]![0])) as ReturnType<typeof message<'RO_ACCESS_REPORT'>>),
      id,
    })

  test('finds each valid message after garbage, an incomplete message, or one with a wrong length', () => {
    const random = seededRandom(3)
    const wrongs = [
      () => random.bytes(1 + (random.bytes(1)[0] ?? 0)).map((byte) => byte | 0x80),
      () => report(1).subarray(0, 12 + ((random.bytes(1)[0] ?? 0) % 20)),
      () => report(2).with(5, 60),
      () => report(2).with(14, 0x95),
      () => concat([hex('043d 00000100 00000001'), random.bytes(200)]),
    ]
    for (let round = 0; round < 1_000; round++) {
      const [kind = 0, n = 0, size = 0] = random.bytes(3)
      const codec = llrpCodec()
      const wrong = wrongs[kind % wrongs.length]!()
      const good = Array.from({ length: 1 + (n % 6) }, (_, i) => (i % 2 === 0 ? report(100 + i) : keepalive(100 + i)))
      // After the valid messages follow so many bytes that every false start must fail.
      const after = Array.from({ length: 40 }, (_, i) => keepalive(1_000 + i))
      const got = chopped(concat([keepalive(1), wrong, ...good, ...after]), 1 + size).flatMap((chunk) =>
        codec.push(chunk),
      )
      const ids = new Set(got.map(({ id }) => id))
      expect(
        good.every((_, i) => ids.has(100 + i)),
        `round ${round}`,
      ).toBe(true)
      expect(codec.takeNoise()?.bytes, `round ${round}`).toBeGreaterThan(0)
    }
  })

  test('passes messages of later versions and of vendors while it is in step', () => {
    const codec = llrpCodec()
    const later = encodeMessage({ name: 'unknown', type: 47, id: 9, bytes: hex('01020304') })
    expect(codec.push(concat([later, keepalive(1)])).map(({ type }) => type)).toEqual([47, 62])
    expect(codec.takeNoise()).toBeNull()
  })

  test('reports another version and an impossible length as noise at once', () => {
    for (const bad of [
      '083E 0000000A 00000001',
      '003E 0000000A 00000001',
      '243E 0000000A 00000001',
      '043E 00000009 00000001',
      '043D 00040001 00000001',
    ]) {
      const codec = llrpCodec()
      expect(codec.push(hex(bad)), bad).toEqual([])
      expect(codec.takeNoise()?.bytes, bad).toBeGreaterThan(0)
      expect(
        codec.push(keepalive(3)).map(({ id }) => id),
        bad,
      ).toEqual([3])
    }
  })

  test('waits for the rest of an incomplete message, because TCP may pause', () => {
    const codec = llrpCodec()
    const bytes = report(5)
    expect(codec.push(bytes.subarray(0, 20))).toEqual([])
    expect(codec.silence()).toEqual([])
    expect(codec.push(bytes.subarray(20)).map(({ id }) => id)).toEqual([5])
  })

  test('frees a wrong message start at silence while it resynchronises', () => {
    const codec = llrpCodec()
    expect(codec.push(concat([hex('FF'), hex('043d 00001000 00000001'), keepalive(4)]))).toEqual([])
    expect(codec.silence().map(({ id }) => id)).toEqual([4])
    expect(codec.held).toBe(0)
  })

  test('decodes a message of maximum length byte by byte in linear time', () => {
    const tag = parameter('TagReportData', {}, parameter('EPC_96', { EPC: '30'.repeat(12) }))
    const bytes = encodeMessage(message('RO_ACCESS_REPORT', 1, {}, ...Array.from({ length: 15_000 }, () => tag)))
    expect(bytes.length).toBeLessThan(MAX_MESSAGE_BYTES)
    const codec = llrpCodec()
    const from = process.cpuUsage()
    const got = chopped(bytes, 1).flatMap((chunk) => codec.push(chunk))
    expect(process.cpuUsage(from).user).toBeLessThan(3_000_000)
    expect(readTagReports(got[0]!.body)).toHaveLength(15_000)
  })

  // UNTAG_LONG_FUZZ=1 runs the million chunks that docs/reference/hardware/llrp.md mentions.
  const CHUNKS = process.env['UNTAG_LONG_FUZZ'] ? 1_000_000 : 60_000

  test(`stays bounded, never throws and does not slow down over ${CHUNKS.toLocaleString('en')} random chunks`, () => {
    const random = seededRandom(17)
    const seeds = [
      report(1),
      report(4),
      keepalive(1),
      encodeMessage(decodeMessage(frame(11, CAPABILITIES)) as ReturnType<typeof message<'KEEPALIVE'>>),
      encodeMessage(decodeMessage(frame(12, CONFIG)) as ReturnType<typeof message<'KEEPALIVE'>>),
    ]
    const codec = llrpCodec()
    const blocks: number[] = []
    let most = 0
    let frames = 0
    let understood = 0
    for (let block = 0; block < 10; block++) {
      const chunks = Array.from({ length: CHUNKS / 10 }, (_, i) => {
        if (i % 3 === 0) return random.bytes(1 + (i % 40))
        const [which = 0, a = 0, b = 0, how = 0, cut = 0] = random.bytes(5)
        const bytes = seeds[which % (how < 8 ? 5 : 3)]!.slice()
        if (how % 4 === 0) bytes[(a * 256 + b) % bytes.length] = cut
        return how % 4 === 1 ? bytes.subarray(0, cut % bytes.length) : bytes
      })
      const from = process.cpuUsage()
      for (const chunk of chunks) {
        const got = codec.push(chunk)
        frames += got.length
        for (const each of got)
          if (decodeMessage(each).name !== 'malformed' && (each.type !== 61 || readTagReports(each.body))) understood++
        most = Math.max(most, codec.held)
      }
      blocks.push(process.cpuUsage(from).user)
    }
    expect(most).toBeLessThan(MAX_MESSAGE_BYTES)
    expect(frames).toBeGreaterThan(CHUNKS * 0.15)
    expect(understood).toBeGreaterThan(CHUNKS * 0.15)
    expect(codec.takeNoise()?.bytes).toBeGreaterThan(CHUNKS)
    const [first = 1, ...rest] = blocks
    expect(Math.min(...rest)).toBeLessThan(first * 3 + 50_000)
  }, 600_000)

  test('bounds the time for each byte of the worst input', () => {
    // Each position is a possible start: it claims 16 KiB of parameters of 4 bytes, and is invalid only at its end.
    const bytes = new Uint8Array(400_000)
    const head = hex('043D 00003FFE 00000001')
    for (let at = 0; at + 16 <= bytes.length; at += 16) bytes.set(concat([head, hex('00F0 0004'), hex('00F0')]), at)
    for (const share of [bytes.subarray(0, 100_000), bytes]) {
      const codec = llrpCodec()
      const from = process.cpuUsage()
      codec.push(hex('FF'))
      for (const chunk of chopped(share, 1_460)) codec.push(chunk)
      expect(process.cpuUsage(from).user / share.length).toBeLessThan(20)
      expect(codec.held).toBeLessThan(16_384)
    }
  })
})
