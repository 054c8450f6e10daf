import { createRequire } from 'node:module'
import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { decodeMessage, encodeMessage } from '../../device-drivers/llrp/protocol/binary.ts'
import type { Count } from '../../device-drivers/llrp/protocol/layout.ts'
import { llrpCodec } from '../../device-drivers/llrp/protocol/frames.ts'
import { MESSAGES } from '../../device-drivers/llrp/protocol/messages.ts'
import type { MessageName } from '../../device-drivers/llrp/protocol/messages.ts'
import { MESSAGE_ROWS, PARAMETER_ROWS } from '../../device-drivers/llrp/protocol/elements.ts'
import { llrpReader } from '../../simulators/devices/llrp.ts'
import { serveTcp } from '../../simulators/devices/serve.ts'
import { freePort } from '../support/ports.ts'
import { EPC, GATE } from './gate-bench.ts'
import { generator } from './llrp-messages.ts'
import type { ValuesOf } from './llrp-messages.ts'
import { realPlatform } from './platform.ts'
import { realBench } from './real-io.ts'
import { forEver } from './workbench.ts'

// llrpjs is generated from the definition of the LLRP toolkit (llrp-1x0-def.xml) and shares no code with untag. Its
// types are its sources, which do not compile with untag's strict settings. So the used types are declared here.

interface Definition {
  readonly typeNum: number
  readonly isMessage: boolean
  readonly fieldDescriptors: readonly {
    readonly name: string
    readonly type: string
    readonly bitCount?: number
    readonly enumTable: readonly { readonly value: number }[]
  }[]
  readonly subTypeRefs: readonly { readonly td: string; readonly repeat: string; readonly choices: readonly string[] }[]
}
interface TheirMessage {
  getName(): string
  getMessageId(): number
  decode(): TheirMessage
  encode(): { getBuffer(): Buffer }
  toLLRPData(): { id: number; type: string; data: object }
}
interface TheirEnd {
  on(event: string, listener: (message: TheirMessage) => void): void
  send(message: TheirMessage): Promise<void>
  recv(timeoutMs?: number): Promise<TheirMessage>
  transact(message: TheirMessage): Promise<TheirMessage>
}
const { LLRPCoreDef, LLRPCore, LLRPMessage, LLRPClient, LLRPServer } = createRequire(import.meta.url)('llrpjs') as {
  LLRPCoreDef: Readonly<Record<string, Definition>>
  LLRPCore: Readonly<Record<string, new (options: { id?: number; data?: object }) => TheirMessage>>
  LLRPMessage: new (bytes: Buffer) => TheirMessage
  LLRPClient: new (options: {
    host: string
    port: number
  }) => TheirEnd & { connect(): Promise<void>; disconnect(): Promise<void> }
  LLRPServer: new (options: {
    host: string
    port: number
  }) => TheirEnd & { listen(): void; close(): Promise<void>; disconnect(): Promise<void> }
}

const theirMessage = (name: string, id: number, data: object = {}): TheirMessage => new LLRPCore[name]!({ id, data })
const theirBytes = (outgoing: TheirMessage): Uint8Array => Uint8Array.from(outgoing.encode().getBuffer())

const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

/** Elements of LLRP 1.0.1 that the toolkit's definition lacks. */
const BEYOND = new Set(['ClientRequestOpSpecResult', 'C1G2XPCW1', 'C1G2XPCW2'])
const known = (name: string) => !BEYOND.has(name)

describe('the tables', () => {
  const kinds: Readonly<Record<string, string>> = { flag: 'u1', rest: 'bytesToEnd', bits: 'u1v', u16v: 'u16v' }

  test.each(
    [...MESSAGE_ROWS.values(), ...PARAMETER_ROWS.values()]
      .filter(({ name }) => known(name))
      .map((row) => [row.name, row] as const),
  )('%s', (name, row) => {
    const theirs = LLRPCoreDef[name]!
    expect(row.type).toBe(theirs.typeNum)
    expect(MESSAGE_ROWS.has(name as MessageName)).toBe(theirs.isMessage)
    const fields = theirs.fieldDescriptors
      .filter(({ type }) => type !== 'reserved')
      .map(({ name: field, type }) => [field, type])
    expect(row.fields.filter(([, kind]) => kind !== 'r8').map(([field, kind]) => [field, kinds[kind] ?? kind])).toEqual(
      fields,
    )
    const places = theirs.subTypeRefs.flatMap(({ td, choices }) => (choices.length > 0 ? [...choices] : [td]))
    const order = [...row.params.keys()].filter(known).map((param) => places.indexOf(param))
    expect(order, `${[...row.params.keys()].join()} in ${places.join()}`).toEqual(order.toSorted((a, b) => a - b))
    expect(order).not.toContain(-1)
  })
})

/** Values that llrpjs accepts. Its enumerations are closed, its times are dates, and it rejects EPCs of odd lengths. */
const theirValues: ValuesOf = (element, field, kind) => {
  const values =
    LLRPCoreDef[element]?.fieldDescriptors.find(({ name }) => name === field)?.enumTable.map(({ value }) => value) ?? []
  if (values.length > 0 && kind === 'flag') return fc.constantFrom(...values.map((value) => value === 1))
  if (values.length > 0 && kind === 'u8v')
    return fc.subarray(values.filter((value) => value > 0)).map((list) => Uint8Array.from(list))
  if (values.length > 0) return fc.constantFrom(...values)
  const hex = (bytes: number) =>
    fc
      .uint8Array({ minLength: bytes, maxLength: bytes })
      .map((whole) => Buffer.from(whole).toString('hex').toUpperCase())
  switch (kind) {
    case 'flag':
      return fc.boolean()
    case 'u2':
      return fc.integer({ min: 0, max: 3 })
    case 'u8':
    case 'u16':
    case 'u32':
      return fc.integer({ min: 0, max: 2 ** Number(kind.slice(1)) - 1 })
    case 's8':
    case 's16':
      return fc.integer({ min: -128, max: 127 })
    case 'u64':
      return fc.bigInt({ min: 1_000_000_000_000_000n, max: 2_000_000_000_000_000n })
    case 'u8v':
    case 'rest':
      return fc.uint8Array({ minLength: 1, maxLength: 9 })
    case 'u16v':
    case 'u32v':
      return fc.array(fc.integer({ min: 0, max: 65_535 }), { minLength: 1, maxLength: 5 })
    case 'utf8v':
      return fc.string({ maxLength: 12 })
    case 'u96':
      return hex(12)
    case 'bits':
      return hex(16).map((text) => ({ count: 128, hex: text }))
  }
}

/** llrpjs loses parameters without content. */
const LOST = { ConnectionCloseEvent: null, ReportBufferOverflowErrorEvent: null }

/**
 * Here the standard requires exactly one of several parameters. Our tables allow all of them, because real readers send
 * them.
 */
const CHOICES: readonly Readonly<Record<string, Count | null>>[] = [
  { EPC_96: '1', EPCData: null, UTCTimestamp: '1', Uptime: null, C1G2Kill: '+', ...LOST },
  { EPC_96: null, EPCData: '1', UTCTimestamp: null, Uptime: '1', C1G2Kill: '+', ...LOST },
]

const messageOf = <N extends MessageName>(name: N) =>
  fc.constantFrom(...CHOICES).chain((choice) =>
    generator(theirValues, (element, param, count) => {
      const chosen = element === 'PeriodicTriggerValue' ? undefined : choice[param]
      return known(param) && param !== 'Custom' ? (chosen === undefined ? count : chosen) : null
    })(name),
  )

const COMPARED = [...MESSAGE_ROWS.keys()].filter((name) => name !== 'CUSTOM_MESSAGE')

describe('llrpjs decodes our messages and encodes them again', () => {
  test.each(COMPARED)('%s', (name) => {
    fc.assert(
      fc.property(messageOf(name), (outgoing) => {
        const bytes = encodeMessage(outgoing)
        const got = new LLRPMessage(Buffer.from(bytes)).decode()
        expect([got.getName(), got.getMessageId()]).toEqual([outgoing.name, outgoing.id])
        const again = theirBytes(theirMessage(name, outgoing.id, got.toLLRPData().data))
        expect(Buffer.from(again).toString('hex')).toBe(Buffer.from(bytes).toString('hex'))
      }),
      { numRuns: 25 },
    )
  })
})

describe('we decode the messages of llrpjs', () => {
  test('decodes a request with triggers and lists', () => {
    const data = {
      ROSpec: {
        ROSpecID: 12345,
        Priority: 2,
        CurrentState: 'Disabled',
        ROBoundarySpec: {
          ROSpecStartTrigger: {
            ROSpecStartTriggerType: 'GPI',
            GPITriggerValue: { GPIPortNum: 2, GPIEvent: true, Timeout: 77 },
          },
          ROSpecStopTrigger: { ROSpecStopTriggerType: 'Duration', DurationTriggerValue: 4_000 },
        },
        AISpec: [
          {
            AntennaIDs: [1, 2, 3, 4],
            AISpecStopTrigger: { AISpecStopTriggerType: 'Null', DurationTrigger: 0 },
            InventoryParameterSpec: { InventoryParameterSpecID: 1, ProtocolID: 'EPCGlobalClass1Gen2' },
          },
        ],
      },
    }
    const [frame] = llrpCodec().push(theirBytes(theirMessage('ADD_ROSPEC', 9, data)))
    const outgoing = decodeMessage(frame!)
    expect(outgoing).toMatchObject({
      name: 'ADD_ROSPEC',
      id: 9,
      params: [
        {
          name: 'ROSpec',
          fields: { ROSpecID: 12345, Priority: 2, CurrentState: 0 },
          params: [
            {
              name: 'ROBoundarySpec',
              params: [
                {
                  fields: { ROSpecStartTriggerType: 3 },
                  params: [{ name: 'GPITriggerValue', fields: { GPIPortNum: 2, GPIEvent: true, Timeout: 77 } }],
                },
                { fields: { ROSpecStopTriggerType: 1, DurationTriggerValue: 4_000 } },
              ],
            },
            { name: 'AISpec', fields: { AntennaIDs: [1, 2, 3, 4] } },
          ],
        },
      ],
    })
  })
})

test('the client of llrpjs works with our simulated reader', async () => {
  const reader = llrpReader({ platform: realPlatform })
  const service = await serveTcp({ port: 0, serve: (link) => reader.serve(link) })
  cleanups.push(() => service.close())
  const client = new LLRPClient({ host: '127.0.0.1', port: service.port })
  client.on('error', () => {})
  const greeting = new Promise<TheirMessage>((resolve) => client.on('READER_EVENT_NOTIFICATION', resolve))
  await client.connect()
  cleanups.push(() => client.disconnect())
  expect((await greeting).toLLRPData().data).toMatchObject({
    ReaderEventNotificationData: { ConnectionAttemptEvent: { Status: 'Success' } },
  })
  const requestStatus = async (name: string, data: object = {}) =>
    (await client.transact(theirMessage(name, 1 + Math.round(reader.received.length), data))).toLLRPData().data
  const isDone = { LLRPStatus: { StatusCode: 'M_Success' } }

  expect(await requestStatus('GET_READER_CAPABILITIES', { RequestedData: 'All' })).toMatchObject({
    ...isDone,
    GeneralDeviceCapabilities: { MaxNumberOfAntennaSupported: 4, GPIOCapabilities: { NumGPIs: 4, NumGPOs: 4 } },
    RegulatoryCapabilities: {
      UHFBandCapabilities: {
        FrequencyInformation: { FixedFrequencyTable: { Frequency: [865700, 866300, 866900, 867500] } },
      },
    },
  })
  expect(
    await requestStatus('SET_READER_CONFIG', {
      ResetToFactoryDefault: false,
      GPOWriteData: { GPOPortNumber: 2, GPOData: true },
    }),
  ).toMatchObject(isDone)
  expect(reader.gpos[2]).toBe(true)
  expect(
    await requestStatus('SET_READER_CONFIG', {
      ResetToFactoryDefault: false,
      GPOWriteData: { GPOPortNumber: 7, GPOData: true },
    }),
  ).toMatchObject({ LLRPStatus: { StatusCode: 'A_OutOfRange' } })
  const selector = {
    EnableROSpecID: true,
    EnableSpecIndex: false,
    EnableInventoryParameterSpecID: false,
    EnableAntennaID: true,
    EnableChannelIndex: false,
    EnablePeakRSSI: true,
    EnableFirstSeenTimestamp: true,
    EnableLastSeenTimestamp: false,
    EnableTagSeenCount: true,
    EnableAccessSpecID: false,
  }
  const spec = {
    ROSpecID: 5,
    Priority: 0,
    CurrentState: 'Disabled',
    ROBoundarySpec: {
      ROSpecStartTrigger: { ROSpecStartTriggerType: 'Null' },
      ROSpecStopTrigger: { ROSpecStopTriggerType: 'Null', DurationTriggerValue: 0 },
    },
    AISpec: {
      AntennaIDs: [0],
      AISpecStopTrigger: { AISpecStopTriggerType: 'Null', DurationTrigger: 0 },
      InventoryParameterSpec: { InventoryParameterSpecID: 1, ProtocolID: 'EPCGlobalClass1Gen2' },
    },
    ROReportSpec: { ROReportTrigger: 'Upon_N_Tags_Or_End_Of_ROSpec', N: 1, TagReportContentSelector: selector },
  }
  expect(await requestStatus('ADD_ROSPEC', { ROSpec: spec })).toMatchObject(isDone)
  expect(await requestStatus('ENABLE_ROSPEC', { ROSpecID: 5 })).toMatchObject(isDone)
  expect(reader.isReading).toBe(false)
  expect(await requestStatus('START_ROSPEC', { ROSpecID: 5 })).toMatchObject(isDone)
  const report = new Promise<TheirMessage>((resolve) => client.on('RO_ACCESS_REPORT', resolve))
  reader.see(EPC, { antenna: 3, rssiDbm: -51 })
  expect((await report).toLLRPData().data).toMatchObject({
    TagReportData: {
      EPC_96: { EPC },
      ROSpecID: { ROSpecID: 5 },
      AntennaID: { AntennaID: 3 },
      PeakRSSI: { PeakRSSI: -51 },
      TagSeenCount: { TagCount: 1 },
    },
  })
  expect(await requestStatus('DELETE_ROSPEC', { ROSpecID: 0 })).toMatchObject(isDone)
})

test('our driver works with a reader built from the server of llrpjs', async () => {
  const port = await freePort()
  const server = new LLRPServer({ host: '127.0.0.1', port })
  const received: string[] = []
  const outputs: unknown[] = []
  const ok = { LLRPStatus: { StatusCode: 'M_Success', ErrorDescription: '' } }
  const capabilities = {
    ...ok,
    GeneralDeviceCapabilities: {
      MaxNumberOfAntennaSupported: 2,
      CanSetAntennaProperties: false,
      HasUTCClockCapability: true,
      DeviceManufacturerName: 161,
      ModelName: 9600,
      ReaderFirmwareVersion: '3.1',
      ReceiveSensitivityTableEntry: { Index: 1, ReceiveSensitivityValue: 0 },
      GPIOCapabilities: { NumGPIs: 2, NumGPOs: 2 },
      PerAntennaAirProtocol: { AntennaID: 1, ProtocolID: ['EPCGlobalClass1Gen2'] },
    },
    LLRPCapabilities: {
      CanDoRFSurvey: false,
      CanReportBufferFillWarning: true,
      SupportsClientRequestOpSpec: false,
      CanDoTagInventoryStateAwareSingulation: false,
      SupportsEventAndReportHolding: true,
      MaxNumPriorityLevelsSupported: 1,
      ClientRequestOpSpecTimeout: 0,
      MaxNumROSpecs: 1,
      MaxNumSpecsPerROSpec: 1,
      MaxNumInventoryParameterSpecsPerAISpec: 1,
      MaxNumAccessSpecs: 0,
      MaxNumOpSpecsPerAccessSpec: 0,
    },
  }
  const answers: Partial<Record<MessageName, object>> = {
    GET_READER_CAPABILITIES: capabilities,
    GET_ROSPECS: { LLRPStatus: { StatusCode: 'M_UnsupportedMessage', ErrorDescription: '' } },
  }
  const on = (name: MessageName, act: (outgoing: TheirMessage) => void) =>
    server.on(name, (outgoing) => {
      received.push(name)
      act(outgoing)
    })
  for (const [name, { answer }] of Object.entries(MESSAGES).map(
    ([name, layout]) => [name as MessageName, layout as { answer?: string }] as const,
  )) {
    if (answer === undefined) continue
    on(name, (outgoing) => {
      if (name === 'SET_READER_CONFIG')
        outputs.push((outgoing.toLLRPData().data as { GPOWriteData?: unknown }).GPOWriteData)
      void server.send(theirMessage(answer, outgoing.getMessageId(), answers[name] ?? ok))
    })
  }
  const tag = {
    EPC_96: { EPC },
    AntennaID: { AntennaID: 2 },
    PeakRSSI: { PeakRSSI: -44 },
    FirstSeenTimestampUTC: { Microseconds: new Date() },
  }
  on(
    'ENABLE_EVENTS_AND_REPORTS',
    () => void server.send(theirMessage('RO_ACCESS_REPORT', 1, { TagReportData: [tag, tag] })),
  )
  server.on(
    'connection',
    () =>
      void server.send(
        theirMessage('READER_EVENT_NOTIFICATION', 1, {
          ReaderEventNotificationData: {
            UTCTimestamp: { Microseconds: new Date() },
            ConnectionAttemptEvent: { Status: 'Success' },
          },
        }),
      ),
  )
  server.on('error', () => {})
  server.listen()
  cleanups.push(async () => {
    await server.disconnect()
    await server.close()
  })

  const bench = realBench([{ ...GATE, link: { tcp: `127.0.0.1:${port}` } }])
  cleanups.push(() => bench.supervisor.stop())
  const { detail } = await bench.untilState('gate', 'ready')
  expect(detail).toContain('Zebra UHF reader (model 9600, 2 antennas)')
  const tags = await bench.untilEvent(({ type }) => type === 'tags')
  expect(tags).toMatchObject({ reads: [{ tag: { epc: EPC }, antenna: 2, rssiDbm: -44 }, { antenna: 2 }] })
  expect(
    await bench.supervisor.execute('gate', { kind: 'signal', signal: 'siren', seconds: 60 }, forEver()),
  ).toMatchObject({ outcome: 'confirmed' })
  expect(outputs).toEqual(
    [
      { GPOPortNumber: 1, GPOData: false },
      { GPOPortNumber: 1, GPOData: true },
    ].map((each) => expect.objectContaining({ GPOPortNumber: each.GPOPortNumber })),
  )
  expect(received.slice(0, 9)).toEqual([
    'GET_READER_CAPABILITIES',
    'DELETE_ROSPEC',
    'SET_READER_CONFIG',
    'GET_READER_CONFIG',
    'GET_READER_CONFIG',
    'ADD_ROSPEC',
    'ENABLE_ROSPEC',
    'GET_ROSPECS',
    'ENABLE_EVENTS_AND_REPORTS',
  ])
})
