import { first, message, parameter } from '../../../device-drivers/llrp/protocol/elements.ts'
import type { AnyParameter, Message, Parameter } from '../../../device-drivers/llrp/protocol/elements.ts'
import type { ReaderShape } from './reader-state.ts'

/** A timestamp of the reader's clock. */
export interface Stamp {
  readonly utcUs?: number
  readonly uptimeUs: number
}

/** One read of a tag. */
export interface Sighting {
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
export function capabilities(id: number, status: Parameter<'LLRPStatus'>, can: Abilities): Message {
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
