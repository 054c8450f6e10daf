import {
  first,
  message,
  parameter,
  type AnyParameter,
  type Message,
  type Parameter,
  answerTo,
} from '../../../device-drivers/llrp/protocol/elements.ts'
import {
  type ReaderShape,
  addRoSpec,
  configure,
  onRoSpecs,
  startTrigger,
  SUCCESS,
  type ReaderState,
  type RoSpecState,
  type Status,
} from './reader-state.ts'
import type { MessageName } from '../../../device-drivers/llrp/protocol/messages.ts'

/** A timestamp of the reader's clock. */
export interface Stamp {
  readonly utcUs?: number
  readonly uptimeUs: number
}

/** One read of a tag. */
interface Sighting {
  readonly epc: string
  readonly antenna: number
  readonly rssiDbm: number
  readonly at: Stamp
  /** Results of operations on the tag. */
  readonly results?: readonly AnyParameter[]
}

/** READER_EVENT_NOTIFICATION of one event. */
export function notification(id: number, at: Stamp, event: AnyParameter): Message {
  const stamp =
    at.utcUs === undefined
      ? parameter('Uptime', { Microseconds: BigInt(at.uptimeUs) })
      : parameter('UTCTimestamp', { Microseconds: BigInt(at.utcUs) })
  return message('READER_EVENT_NOTIFICATION', id, {}, parameter('ReaderEventNotificationData', {}, stamp, event))
}

/** RO_ACCESS_REPORT of one tag, with the fields that the ROSpec selects. */
export function tagReport(id: number, spec: Parameter<'ROSpec'>, seen: Sighting): Message {
  const wants = first(first(spec, 'ROReportSpec'), 'TagReportContentSelector')?.fields
  const parts: AnyParameter[] = [
    seen.epc.length === 24
      ? parameter('EPC_96', { EPC: seen.epc })
      : parameter('EPCData', { EPC: { count: seen.epc.length * 4, hex: seen.epc } }),
  ]
  if (wants?.EnableROSpecID) parts.push(parameter('ROSpecID', { ROSpecID: spec.fields.ROSpecID }))
  if (wants?.EnableAntennaID) parts.push(parameter('AntennaID', { AntennaID: seen.antenna }))
  if (wants?.EnablePeakRSSI)
    parts.push(parameter('PeakRSSI', { PeakRSSI: Math.max(-128, Math.min(127, Math.round(seen.rssiDbm))) }))
  if (wants?.EnableFirstSeenTimestamp) {
    const { utcUs, uptimeUs } = seen.at
    if (utcUs === undefined) parts.push(parameter('FirstSeenTimestampUptime', { Microseconds: BigInt(uptimeUs) }))
    else parts.push(parameter('FirstSeenTimestampUTC', { Microseconds: BigInt(utcUs) }))
  }
  if (wants?.EnableTagSeenCount) parts.push(parameter('TagSeenCount', { TagCount: 1 }))
  parts.push(...(seen.results ?? []))
  return message('RO_ACCESS_REPORT', id, {}, parameter('TagReportData', {}, ...parts))
}

export interface Abilities extends ReaderShape {
  readonly hasClock: boolean
  readonly canHold: boolean
  readonly accessSpecs: number
}

/** Default capabilities: four antennas, inputs and outputs, 10 to 30 dBm. */
export function abilitiesOf(options: Partial<Abilities>): Abilities {
  return {
    antennas: options.antennas ?? 4,
    gpis: options.gpis ?? 4,
    gpos: options.gpos ?? 4,
    powersDbm: options.powersDbm ?? Array.from({ length: 21 }, (_, i) => 10 + i),
    hasClock: options.hasClock ?? true,
    canHold: options.canHold ?? true,
    accessSpecs: options.accessSpecs ?? 16,
    channel: options.channel ?? [0, 3],
  }
}

/** GET_READER_CAPABILITIES_RESPONSE of a European reader with four channels. */
function capabilities(id: number, status: Parameter<'LLRPStatus'>, can: Abilities): Message {
  const gen2 = Array.from({ length: can.antennas }, (_, i) =>
    parameter('PerAntennaAirProtocol', { AntennaID: i + 1, ProtocolID: Uint8Array.of(1) }),
  )
  const general = parameter(
    'GeneralDeviceCapabilities',
    {
      MaxNumberOfAntennaSupported: can.antennas,
      CanSetAntennaProperties: false,
      HasUTCClockCapability: can.hasClock,
      // No real maker has this number, so clients apply no maker's special rules.
      DeviceManufacturerName: 0,
      ModelName: 1,
      ReaderFirmwareVersion: 'simulated 1.0',
    },
    parameter('ReceiveSensitivityTableEntry', { Index: 1, ReceiveSensitivityValue: 0 }),
    parameter('GPIOCapabilities', { NumGPIs: can.gpis, NumGPOs: can.gpos }),
    ...gen2,
  )
  const protocol = parameter('LLRPCapabilities', {
    CanDoRFSurvey: false,
    CanReportBufferFillWarning: true,
    SupportsClientRequestOpSpec: false,
    CanDoTagInventoryStateAwareSingulation: false,
    SupportsEventAndReportHolding: can.canHold,
    MaxNumPriorityLevelsSupported: 1,
    ClientRequestOpSpecTimeout: 0,
    MaxNumROSpecs: 1,
    MaxNumSpecsPerROSpec: 32,
    MaxNumInventoryParameterSpecsPerAISpec: 1,
    MaxNumAccessSpecs: can.accessSpecs,
    MaxNumOpSpecsPerAccessSpec: can.accessSpecs > 0 ? 8 : 0,
  })
  const powers = can.powersDbm.map((dbm, i) =>
    parameter('TransmitPowerLevelTableEntry', { Index: i + 1, TransmitPowerValue: Math.round(dbm * 100) }),
  )
  const mode = parameter('C1G2UHFRFModeTableEntry', {
    ModeIdentifier: 0,
    DRValue: true,
    EPCHAGTCConformance: false,
    MValue: 2,
    ForwardLinkModulation: 2,
    SpectralMaskIndicator: 2,
    BDRValue: 250_000,
    PIEValue: 2_000,
    MinTariValue: 20_000,
    MaxTariValue: 20_000,
    StepTariValue: 0,
  })
  const band = parameter(
    'UHFBandCapabilities',
    {},
    ...powers,
    parameter(
      'FrequencyInformation',
      { Hopping: false },
      parameter('FixedFrequencyTable', { Frequency: [865_700, 866_300, 866_900, 867_500] }),
    ),
    parameter('C1G2UHFRFModeTable', {}, mode),
  )
  return message(
    'GET_READER_CAPABILITIES_RESPONSE',
    id,
    {},
    status,
    general,
    protocol,
    parameter('RegulatoryCapabilities', { CountryCode: 276, CommunicationsStandard: 2 }, band),
    parameter('C1G2LLRPCapabilities', {
      CanSupportBlockErase: false,
      CanSupportBlockWrite: true,
      MaxNumSelectFiltersPerQuery: 2,
    }),
  )
}

/** The parts of a simulated reader that a request reads or changes. */
export interface ReaderParts {
  readonly can: Abilities
  readonly state: ReaderState
  setOutput(gpo: number, on: boolean): void
  /** Restarts the timer of the keepalives with the present configuration. */
  keepAlive(): void
  start(spec: RoSpecState): void
}

const DONE: Status = [SUCCESS, '']
const FIELD_ERROR = 101
const MISSING = 103
const UNSUPPORTED: Status = [109, 'not in this simulator']

type Request<N extends MessageName> = (reader: ReaderParts, request: Message<N>) => Status

const stop = (spec: RoSpecState): void => void (spec.isActive = false)

const REQUESTS: { readonly [N in MessageName]?: Request<N> } = {
  GET_READER_CAPABILITIES: () => DONE,
  GET_READER_CONFIG: () => DONE,
  GET_ROSPECS: () => DONE,
  CLOSE_CONNECTION: () => DONE,
  SET_READER_CONFIG(reader, request) {
    const status = configure(reader.state, reader.can, request, reader.setOutput)
    reader.keepAlive()
    return status
  },
  ADD_ROSPEC({ state, can }, request) {
    const spec = first(request, 'ROSpec')
    return spec ? addRoSpec(state, can, spec) : [MISSING, 'no ROSpec']
  },
  DELETE_ROSPEC: ({ state }, { fields }) =>
    onRoSpecs(state, fields.ROSpecID, (spec, id) => {
      stop(spec)
      state.roSpecs.delete(id)
    }),
  ENABLE_ROSPEC: ({ state, start }, { fields }) =>
    onRoSpecs(state, fields.ROSpecID, (spec) => {
      spec.isEnabled = true
      if (startTrigger(spec.spec) === 'immediate') start(spec)
    }),
  DISABLE_ROSPEC: ({ state }, { fields }) =>
    onRoSpecs(state, fields.ROSpecID, (spec) => {
      spec.isEnabled = false
      stop(spec)
    }),
  START_ROSPEC: ({ state, start }, { fields }) => onRoSpecs(state, fields.ROSpecID, start),
  STOP_ROSPEC: ({ state }, { fields }) => onRoSpecs(state, fields.ROSpecID, stop),
  ADD_ACCESSSPEC({ state, can }, request) {
    const spec = first(request, 'AccessSpec')
    if (!spec || state.accessSpecs.size >= can.accessSpecs) return [FIELD_ERROR, 'no room for it']
    if (state.accessSpecs.has(spec.fields.AccessSpecID))
      return [FIELD_ERROR, `AccessSpec ${spec.fields.AccessSpecID} is there already`]
    state.accessSpecs.set(spec.fields.AccessSpecID, { spec, isEnabled: false })
    return DONE
  },
  ENABLE_ACCESSSPEC({ state }, { fields }) {
    const entry = state.accessSpecs.get(fields.AccessSpecID)
    if (!entry) return [FIELD_ERROR, `no AccessSpec ${fields.AccessSpecID}`]
    entry.isEnabled = true
    return DONE
  },
  DELETE_ACCESSSPEC({ state }, { fields }) {
    if (fields.AccessSpecID === 0) state.accessSpecs.clear()
    else state.accessSpecs.delete(fields.AccessSpecID)
    return DONE
  },
}

/** Executes a request and returns the status of its answer. */
export function executeRequest(reader: ReaderParts, request: Message): Status {
  const execute = REQUESTS[request.name] as Request<MessageName> | undefined
  return execute ? execute(reader, request) : UNSUPPORTED
}

/** The answer to a request with this status. */
export function answerOf({ state, can }: ReaderParts, request: Message, [code, text]: Status): Message {
  const status = parameter('LLRPStatus', { StatusCode: code, ErrorDescription: text })
  if (request.name === 'GET_READER_CAPABILITIES' && code === SUCCESS) return capabilities(request.id, status, can)
  if (request.name === 'GET_READER_CONFIG' && code === SUCCESS) {
    const identification = parameter('Identification', {
      IDType: 0,
      ReaderID: Uint8Array.of(0, 0x16, 0x25, 0xff, 0xfe, 0, 0, 1),
    })
    const outputs = state.gpos
      .slice(1)
      .map((GPOData, i) => parameter('GPOWriteData', { GPOPortNumber: i + 1, GPOData }))
    const { RequestedData: requested, GPIPortNum: input } = request.fields
    const [HopTableID, ChannelIndex] = can.channel
    const antennas = Array.from({ length: can.antennas }, (_, i) =>
      parameter(
        'AntennaConfiguration',
        { AntennaID: i + 1 },
        parameter('RFTransmitter', { HopTableID, ChannelIndex, TransmitPower: can.powersDbm.length }),
      ),
    )
    const properties = Array.from({ length: can.antennas }, (_, i) =>
      parameter('AntennaProperties', {
        AntennaConnected: !state.unplugged.has(i + 1),
        AntennaID: i + 1,
        AntennaGain: 0,
      }),
    )
    const inputs = state.gpis
      .map((on, i) => parameter('GPIPortCurrentState', { GPIPortNum: i, Config: true, State: on ? 1 : 0 }))
      .slice(1)
      .filter((_, i) => input === 0 || input === i + 1)
    return message(
      'GET_READER_CONFIG_RESPONSE',
      request.id,
      {},
      status,
      identification,
      ...(requested === 0 || requested === 2 ? properties : []),
      ...(requested === 0 || requested === 3 ? antennas : []),
      ...(requested === 0 || requested === 9 ? inputs : []),
      ...(requested === 0 ? outputs : []),
    )
  }
  if (request.name === 'GET_ROSPECS')
    return message(
      'GET_ROSPECS_RESPONSE',
      request.id,
      {},
      status,
      ...[...state.roSpecs.values()].map(({ spec, isEnabled, isActive }) => ({
        ...spec,
        fields: { ...spec.fields, CurrentState: isActive ? 2 : isEnabled ? 1 : 0 },
      })),
    )
  const name = answerTo(request.name)
  // All other known answers have only a status.
  if (name !== undefined) return message(name as 'ADD_ROSPEC_RESPONSE', request.id, {}, status)
  return message('ERROR_MESSAGE', request.id, {}, status)
}
