import { first, message, parameter } from '../../../device-drivers/llrp/protocol/elements.ts'
import type { Message } from '../../../device-drivers/llrp/protocol/elements.ts'
import type { MessageName } from '../../../device-drivers/llrp/protocol/messages.ts'
import { answerTo } from '../../../device-drivers/llrp/protocol/tables.ts'
import { capabilities } from './reader-messages.ts'
import type { Abilities } from './reader-messages.ts'
import { addRoSpec, configure, onRoSpecs, startTrigger, SUCCESS } from './reader-state.ts'
import type { ReaderState, RoSpecState, Status } from './reader-state.ts'

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
