import { message, parameter } from './protocol/elements.ts'
import type { Message } from './protocol/elements.ts'
import { powerIndex } from './capabilities.ts'
import type { ReaderCapabilities } from './capabilities.ts'
import { antennasOf, inputsOf, sessionOf } from './settings.ts'
import type { LlrpSettings } from './settings.ts'

// Numbers of the standard (LLRP 1.0.1, chapters 10 to 13).
const EVENTS = { hopping: 0, gpi: 1, roSpec: 2, bufferFill: 3, exception: 4, aiSpec: 6, antenna: 8 } as const
const GEN2 = 1
const ALL = 0
const START = { immediately: 1, onInput: 3 } as const
const STOP = { never: 0, afterDuration: 1 } as const
const UPON_N_TAGS_OR_END = 1
const STATE_UNKNOWN = 2
const PERIODIC = 1

export const ROSPEC_ID = 1

/** Makes the message that sets the reader's notifications, keepalives and outputs. */
export function readerConfig(
  id: number,
  settings: LlrpSettings,
  reader: ReaderCapabilities,
  outputs: ReadonlyMap<number, boolean>,
): Message<'SET_READER_CONFIG'> {
  const inputs = inputsOf(settings)
  const notifications: readonly (readonly [number, boolean])[] = [
    [EVENTS.hopping, false],
    [EVENTS.gpi, inputs.length > 0],
    [EVENTS.roSpec, false],
    [EVENTS.bufferFill, reader.canWarnOfFullBuffer],
    [EVENTS.exception, true],
    [EVENTS.aiSpec, false],
    [EVENTS.antenna, true],
  ]
  const states = notifications.map(([EventType, NotificationState]) =>
    parameter('EventNotificationState', { EventType, NotificationState }),
  )
  return message(
    'SET_READER_CONFIG',
    id,
    { ResetToFactoryDefault: false },
    parameter('ReaderEventNotificationSpec', {}, ...states),
    parameter('KeepaliveSpec', { KeepaliveTriggerType: PERIODIC, PeriodicTriggerValue: settings.keepaliveMs }),
    ...[...outputs].map(([GPOPortNumber, GPOData]) => parameter('GPOWriteData', { GPOPortNumber, GPOData })),
    ...inputs.map((GPIPortNum) => parameter('GPIPortCurrentState', { GPIPortNum, Config: true, State: STATE_UNKNOWN })),
    ...(reader.canHold ? [parameter('EventsAndReports', { HoldEventsAndReportsUponReconnect: true })] : []),
  )
}

/** Makes the message that writes one output. */
export function outputWrite(id: number, GPOPortNumber: number, GPOData: boolean): Message<'SET_READER_CONFIG'> {
  return message(
    'SET_READER_CONFIG',
    id,
    { ResetToFactoryDefault: false },
    parameter('GPOWriteData', { GPOPortNumber, GPOData }),
  )
}

function boundary({ readOnBeam }: LlrpSettings) {
  if (!readOnBeam) {
    return parameter(
      'ROBoundarySpec',
      {},
      parameter('ROSpecStartTrigger', { ROSpecStartTriggerType: START.immediately }),
      parameter('ROSpecStopTrigger', { ROSpecStopTriggerType: STOP.never, DurationTriggerValue: 0 }),
    )
  }
  return parameter(
    'ROBoundarySpec',
    {},
    parameter(
      'ROSpecStartTrigger',
      { ROSpecStartTriggerType: START.onInput },
      parameter('GPITriggerValue', { GPIPortNum: readOnBeam.gpi, GPIEvent: true, Timeout: 0 }),
    ),
    parameter('ROSpecStopTrigger', {
      ROSpecStopTriggerType: STOP.afterDuration,
      DurationTriggerValue: readOnBeam.seconds * 1_000,
    }),
  )
}

/** The channel of an antenna in the present configuration of the reader. */
export interface Transmitter {
  readonly antenna: number
  readonly hopTableId: number
  readonly channelIndex: number
}

/** The configuration of each antenna. Without `transmitPowerDbm`, one configuration is for all antennas. */
function inventories(settings: LlrpSettings, reader: ReaderCapabilities, transmitters: readonly Transmitter[]) {
  const { transmitPowerDbm, rfMode, tagPopulation } = settings
  const command = parameter(
    'C1G2InventoryCommand',
    { TagInventoryStateAware: false },
    ...(rfMode === undefined ? [] : [parameter('C1G2RFControl', { ModeIndex: rfMode, Tari: 0 })]),
    parameter('C1G2SingulationControl', {
      Session: sessionOf(settings),
      TagPopulation: tagPopulation,
      TagTransitTime: 0,
    }),
  )
  if (transmitPowerDbm === undefined) return [parameter('AntennaConfiguration', { AntennaID: ALL }, command)]
  const used = antennasOf(settings)
  const known = transmitters.filter(({ antenna }) => antenna > 0 && (used.length === 0 || used.includes(antenna)))
  // The standard counts channels from 1.
  const assumed = [{ antenna: ALL, hopTableId: reader.hopTableId, channelIndex: 1 }]
  return (known.length > 0 ? known : assumed).map(({ antenna, hopTableId, channelIndex }) =>
    parameter(
      'AntennaConfiguration',
      { AntennaID: antenna },
      parameter('RFTransmitter', {
        HopTableID: hopTableId,
        ChannelIndex: channelIndex,
        TransmitPower: powerIndex(reader, transmitPowerDbm),
      }),
      command,
    ),
  )
}

/**
 * Makes the message that adds the ROSpec. The reader then reads all configured antennas, always or after a beam, and
 * reports each tag at once.
 */
export function addRoSpec(
  id: number,
  settings: LlrpSettings,
  reader: ReaderCapabilities,
  transmitters: readonly Transmitter[],
): Message<'ADD_ROSPEC'> {
  const antennas = antennasOf(settings)
  const selector = parameter('TagReportContentSelector', {
    EnableROSpecID: false,
    EnableSpecIndex: false,
    EnableInventoryParameterSpecID: false,
    EnableAntennaID: true,
    EnableChannelIndex: false,
    EnablePeakRSSI: true,
    EnableFirstSeenTimestamp: true,
    EnableLastSeenTimestamp: false,
    EnableTagSeenCount: true,
    EnableAccessSpecID: false,
  })
  const inventorySpec = parameter(
    'AISpec',
    { AntennaIDs: antennas.length > 0 ? antennas : [ALL] },
    parameter('AISpecStopTrigger', { AISpecStopTriggerType: STOP.never, DurationTrigger: 0 }),
    parameter(
      'InventoryParameterSpec',
      { InventoryParameterSpecID: 1, ProtocolID: GEN2 },
      ...inventories(settings, reader, transmitters),
    ),
  )
  return message(
    'ADD_ROSPEC',
    id,
    {},
    parameter(
      'ROSpec',
      { ROSpecID: ROSPEC_ID, Priority: 0, CurrentState: 0 },
      boundary(settings),
      inventorySpec,
      parameter('ROReportSpec', { ROReportTrigger: UPON_N_TAGS_OR_END, N: 1 }, selector),
    ),
  )
}
