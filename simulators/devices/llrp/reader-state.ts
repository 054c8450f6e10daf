import { all, first } from '../../../device-drivers/llrp/protocol/elements.ts'
import type { Message, Parameter } from '../../../device-drivers/llrp/protocol/elements.ts'

/** Configuration and activity of a reader. A reboot makes a new `ReaderState`. */
export interface ReaderState {
  /** ROSpecs by id; the simulated reader accepts one. */
  readonly roSpecs: Map<number, RoSpecState>
  readonly accessSpecs: Map<number, { spec: Parameter<'AccessSpec'>; isEnabled: boolean }>
  /** Output 1 is at index 1; index 0 is unused. */
  readonly gpos: boolean[]
  readonly gpis: boolean[]
  /** Antennas without a cable. */
  readonly unplugged: Set<number>
  /** Inputs whose changes the reader reports. */
  readonly watched: Set<number>
  /** Types of events that the reader reports, numbered as in the standard. */
  readonly reportedEvents: Set<number>
  keepaliveMs: number | null
  holdUponReconnect: boolean
}

export interface RoSpecState {
  readonly spec: Parameter<'ROSpec'>
  isEnabled: boolean
  isActive: boolean
}

export interface ReaderShape {
  readonly antennas: number
  readonly gpis: number
  readonly gpos: number
  /** Transmit powers, dBm, lowest first. */
  readonly powersDbm: readonly number[]
  /** Hop table and channel index of all antennas. The reader refuses others. */
  readonly channel: readonly [hopTable: number, channel: number]
}

// Status codes (LLRP 1.0.1, 14.2).
export const SUCCESS = 0
const FIELD_ERROR = 101
const OUT_OF_RANGE = 301
export type Status = readonly [code: number, text: string]
const OK: Status = [SUCCESS, '']

/** State after a start. The reader reports only events of exceptions and antennas. */
export function newState(shape: ReaderShape): ReaderState {
  return {
    roSpecs: new Map(),
    accessSpecs: new Map(),
    gpos: Array.from({ length: shape.gpos + 1 }, () => false),
    gpis: Array.from({ length: shape.gpis + 1 }, () => false),
    unplugged: new Set(),
    watched: new Set(),
    reportedEvents: new Set([4, 8]),
    keepaliveMs: null,
    holdUponReconnect: false,
  }
}

const within = (value: number, most: number): boolean => value >= 1 && value <= most

/** Executes SET_READER_CONFIG. If any part is invalid, changes nothing. Calls `setOutput` for each written output. */
export function configure(
  state: ReaderState,
  shape: ReaderShape,
  request: Message<'SET_READER_CONFIG'>,
  setOutput: (gpo: number, on: boolean) => void,
): Status {
  const outputs = all(request, 'GPOWriteData').map(({ fields }) => fields)
  const inputs = all(request, 'GPIPortCurrentState').map(({ fields }) => fields)
  const output = outputs.find(({ GPOPortNumber }) => !within(GPOPortNumber, shape.gpos))
  if (output) return [OUT_OF_RANGE, `no GPO ${output.GPOPortNumber}`]
  const input = inputs.find(({ GPIPortNum }) => !within(GPIPortNum, shape.gpis))
  if (input) return [OUT_OF_RANGE, `no GPI ${input.GPIPortNum}`]

  for (const { fields } of all(first(request, 'ReaderEventNotificationSpec'), 'EventNotificationState')) {
    if (fields.NotificationState) state.reportedEvents.add(fields.EventType)
    else state.reportedEvents.delete(fields.EventType)
  }
  const keepalive = first(request, 'KeepaliveSpec')?.fields
  if (keepalive) state.keepaliveMs = keepalive.KeepaliveTriggerType === 1 ? keepalive.PeriodicTriggerValue : null
  for (const { GPIPortNum, Config } of inputs) {
    if (Config) state.watched.add(GPIPortNum)
    else state.watched.delete(GPIPortNum)
  }
  const hold = first(request, 'EventsAndReports')
  if (hold) state.holdUponReconnect = hold.fields.HoldEventsAndReportsUponReconnect
  for (const { GPOPortNumber, GPOData } of outputs) setOutput(GPOPortNumber, GPOData)
  return OK
}

/** Executes ADD_ROSPEC, with the checks that real readers do. */
export function addRoSpec(state: ReaderState, shape: ReaderShape, spec: Parameter<'ROSpec'>): Status {
  if (state.roSpecs.size > 0) return [FIELD_ERROR, 'only one ROSpec at a time']
  if (spec.fields.ROSpecID === 0) return [FIELD_ERROR, 'ROSpecID 0']
  for (const look of all(spec, 'AISpec')) {
    const antenna = look.fields.AntennaIDs.find((each) => each > shape.antennas)
    if (antenna !== undefined) return [OUT_OF_RANGE, `no antenna ${antenna}`]
    for (const inventory of all(look, 'InventoryParameterSpec')) {
      for (const configuration of all(inventory, 'AntennaConfiguration')) {
        const transmitter = first(configuration, 'RFTransmitter')?.fields
        const power = transmitter?.TransmitPower
        if (power !== undefined && !within(power, shape.powersDbm.length))
          return [OUT_OF_RANGE, `no transmit power ${power}`]
        const [hopTable, channel] = shape.channel
        if (transmitter && (transmitter.HopTableID !== hopTable || transmitter.ChannelIndex !== channel))
          return [OUT_OF_RANGE, 'ChannelIndex out of range']
      }
    }
  }
  state.roSpecs.set(spec.fields.ROSpecID, { spec, isEnabled: false, isActive: false })
  return OK
}

/** Applies `change` to the ROSpec with this id; 0 means all ROSpecs. */
export function onRoSpecs(state: ReaderState, id: number, change: (spec: RoSpecState, id: number) => void): Status {
  if (id !== 0 && !state.roSpecs.has(id)) return [FIELD_ERROR, `no ROSpec ${id}`]
  for (const [each, spec] of state.roSpecs) if (id === 0 || each === id) change(spec, each)
  return OK
}

/** The active ROSpec that reads with this antenna. */
export function looking(state: ReaderState, antenna: number): RoSpecState | undefined {
  if (state.unplugged.has(antenna)) return undefined
  return [...state.roSpecs.values()].find(
    ({ spec, isActive }) =>
      isActive &&
      all(spec, 'AISpec').some(({ fields }) => fields.AntennaIDs.some((each) => each === 0 || each === antenna)),
  )
}

/** Gen2 session of a ROSpec; session 1 if it names none, as in most readers. */
export function sessionOf(spec: Parameter<'ROSpec'>): number {
  const inventory = first(first(spec, 'AISpec'), 'InventoryParameterSpec')
  const command = first(first(inventory, 'AntennaConfiguration'), 'C1G2InventoryCommand')
  return first(command, 'C1G2SingulationControl')?.fields.Session ?? 1
}

/** Start trigger of a ROSpec: at once, at a value of an input, or none. */
export function startTrigger(spec: Parameter<'ROSpec'>): 'immediate' | 'none' | { gpi: number; on: boolean } {
  const trigger = first(first(spec, 'ROBoundarySpec'), 'ROSpecStartTrigger')
  if (trigger?.fields.ROSpecStartTriggerType === 1) return 'immediate'
  const input = first(trigger, 'GPITriggerValue')?.fields
  return trigger?.fields.ROSpecStartTriggerType === 3 && input ? { gpi: input.GPIPortNum, on: input.GPIEvent } : 'none'
}

/** Time after which a started ROSpec stops, ms; null for never. */
export function stopAfterMs(spec: Parameter<'ROSpec'>): number | null {
  const trigger = first(first(spec, 'ROBoundarySpec'), 'ROSpecStopTrigger')?.fields
  return trigger?.ROSpecStopTriggerType === 1 ? trigger.DurationTriggerValue : null
}
