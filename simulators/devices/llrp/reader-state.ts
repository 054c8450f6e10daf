import {
  all,
  first,
  type Message,
  type Parameter,
  parameter,
  type AnyParameter,
} from '../../../device-drivers/llrp/protocol/elements.ts'
import { EAS_WORD, TID_WORDS } from '../../../device-drivers/llrp/protocol/messages.ts'
import type { Clock } from '../../../policy/platform.ts'

/** How a reader queries tags. */
export interface Query {
  /** Gen2 session, 0 to 3. */
  readonly session: number
  /** `A`: the reader queries only tags whose flag is A. `both`: it then also queries those whose flag is B. */
  readonly target: 'A' | 'both'
}

/** The inventoried flags of the tags in a field. */
export interface TagFlags {
  /** True if the tag answers the query. Call it for each tag that the reader's field powers. */
  answers(epc: string, query: Query): boolean
}

/**
 * Time after which an inventoried flag returns from B to A, ms, by session: session 0 without power, session 1 at most
 * (500 to 5,000), sessions 2 and 3 without power, typical (over 2,000). Source: EPC Gen2, persistence of flags.
 */
const PERSISTENCE_MS: readonly number[] = [0, 5_000, 30_000, 30_000]

/**
 * Models inventoried flags. The carrier pauses between two rounds, so a flag of session 0 is A in each round. A flag of
 * session 1 returns to A after its time, also in the field. Flags of sessions 2 and 3 stay B while the tag has power.
 */
export function tagFlags(clock: Clock, persistenceMs: readonly number[] = PERSISTENCE_MS): TagFlags {
  const flippedAt = new Map<string, number>()

  return {
    answers(epc, { session, target }) {
      const now = clock.elapsed()
      if (target === 'both') return true
      const key = `${session} ${epc}`
      const flipped = flippedAt.get(key)
      const isB = flipped !== undefined && now - flipped < (persistenceMs[session] ?? 0)
      if (!isB || session >= 2) flippedAt.set(key, now)
      return !isB
    },
  }
}

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

/** Memory of a simulated tag besides its EPC. */
export interface SimulatedTag {
  /** 8 hex digits; a tag without a kill password cannot be killed. */
  readonly killPassword?: string
  /** 8 hex digits; without an access password every client may write. */
  readonly accessPassword?: string
  /** The first two words of the TID, 8 hex digits. */
  readonly tid?: string
  /** Configuration word whose lowest bit is the EAS bit, if the chip has one. */
  config?: number
  /** True if the tag executes writes, but all its answers are lost. */
  readonly mutters?: boolean
}

const words = (hex: string): number[] => (hex.match(/.{4}/g) ?? []).map((word) => Number.parseInt(word, 16))
const OVERRUN = 1
const LOCKED = 2
const NO_SUCH_MEMORY = 1
const UNHEARD = 5

function read(tag: SimulatedTag, bank: number, word: number): number[] | undefined {
  if (bank === TID_WORDS.bank && word === TID_WORDS.word) return tag.tid === undefined ? undefined : words(tag.tid)
  return bank === EAS_WORD.bank && word === EAS_WORD.word && tag.config !== undefined ? [tag.config] : undefined
}

function write(tag: SimulatedTag, bank: number, word: number, data: readonly number[], password: number): number {
  if (bank !== EAS_WORD.bank || word !== EAS_WORD.word || tag.config === undefined) return OVERRUN
  if (tag.accessPassword !== undefined && Number.parseInt(tag.accessPassword, 16) !== password) return LOCKED
  // Each 1 bit in the data toggles the bit at the same position of the configuration word.
  tag.config ^= data[0] ?? 0
  return tag.mutters ? UNHEARD : 0
}

function kill({ killPassword }: SimulatedTag, password: number): number {
  if (killPassword === undefined) return 1
  return Number.parseInt(killPassword, 16) === password ? 0 : 3
}

/** Executes the AccessSpec for this EPC once. Returns null if there is no such AccessSpec. */
export function operateOn(
  state: ReaderState,
  epc: string,
  tag: SimulatedTag,
): { readonly results: readonly AnyParameter[]; readonly isDead: boolean } | null {
  for (const [id, { spec, isEnabled }] of state.accessSpecs) {
    const command = first(spec, 'AccessCommand')
    const target = first(first(command, 'C1G2TagSpec'), 'C1G2TargetTag')
    if (!isEnabled || target?.fields.TagData.hex !== epc) continue
    state.accessSpecs.delete(id)
    const results: AnyParameter[] = []
    let isDead = false
    for (const { name, fields } of (command?.params ?? []).filter((param) => param.name !== 'unknown')) {
      if (name === 'C1G2Read') {
        const data = read(tag, fields.MB, fields.WordPointer)?.slice(0, fields.WordCount)
        results.push(
          parameter('C1G2ReadOpSpecResult', {
            Result: data ? 0 : NO_SUCH_MEMORY,
            OpSpecID: fields.OpSpecID,
            ReadData: data ?? [],
          }),
        )
      } else if (name === 'C1G2Write') {
        const Result = write(tag, fields.MB, fields.WordPointer, fields.WriteData, fields.AccessPassword)
        results.push(
          parameter('C1G2WriteOpSpecResult', {
            Result,
            OpSpecID: fields.OpSpecID,
            NumWordsWritten: Result === 0 ? fields.WriteData.length : 0,
          }),
        )
      } else if (name === 'C1G2Kill') {
        const Result = kill(tag, fields.KillPassword)
        isDead ||= Result === 0
        results.push(parameter('C1G2KillOpSpecResult', { Result, OpSpecID: fields.OpSpecID }))
      }
    }
    return { results, isDead }
  }
  return null
}

/** An enabled AccessSpec that another program has left: reads two words of the TID of each tag. */
export function foreignAccessSpec(): { spec: Parameter<'AccessSpec'>; isEnabled: boolean } {
  const nothing = { count: 0, hex: '' }
  const target = { MB: 1, Match: true, Pointer: 32, TagMask: nothing, TagData: nothing }
  const spec = parameter(
    'AccessSpec',
    { AccessSpecID: 77, AntennaID: 0, ProtocolID: 1, CurrentState: true, ROSpecID: 0 },
    parameter('AccessSpecStopTrigger', { AccessSpecStopTrigger: 0, OperationCountValue: 0 }),
    parameter(
      'AccessCommand',
      {},
      parameter('C1G2TagSpec', {}, parameter('C1G2TargetTag', target)),
      parameter('C1G2Read', { OpSpecID: 1, AccessPassword: 0, MB: 2, WordPointer: 0, WordCount: 2 }),
    ),
  )
  return { spec, isEnabled: true }
}
