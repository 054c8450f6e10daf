import type { Membership } from '../transports/shared-links.ts'
import type { DesiredOutputs } from '../kit/desired-outputs.ts'
import type { ModbusBus } from './bus.ts'
import { readInputs, misfit, type ModbusSession } from './session.ts'
import { signalOutputs, type ModbusSettings } from './settings.ts'
import type { Platform } from '../../policy/platform.ts'
import { exceptionText, answers, decodeAnswer, encodePdu, type ModbusMessage } from './protocol/pdu.ts'
import { tcpCodec } from './protocol/frames.ts'
import { probeLink, type LinkFactory } from '../transports/byte-link.ts'

interface IdentifyOptions {
  readonly member: Membership<ModbusBus>
  readonly session: ModbusSession
  readonly settings: ModbusSettings
  readonly outputs: DesiredOutputs
  /** The inputs to read. */
  readonly watched: readonly number[]
  readonly signal: AbortSignal
}

/**
 * Finds out whether the line repeats requests, writes the outputs, and reads the inputs. Rejects if the board does not
 * fit its settings. If nothing can distinguish the board from an echo, the session has a finding.
 */
export async function identifyBoard(options: IdentifyOptions): Promise<ReadonlyMap<number, boolean>> {
  const { member, session, settings, watched, signal } = options
  const { board, bus } = session
  const [probe = 0] = probeOutputs(settings)
  if (bus.echo === 'unknown') {
    // The answer to a read differs from its request. So this request shows an echo, even if no board answers.
    const [input] = watched
    if (input === undefined) await board.readCoils(probe, 1)
    else await board.readInputs(input, 1)
  }
  await writeDesired(options)
  if (isUnproven(session) && watched.length === 0) {
    const forbidden = await board.writeForbidden(probe)
    // The board has answered, and so the line has no echo: what looked like one were the answers.
    if (forbidden.kind !== 'lost') await writeDesired(options)
  }
  const before = await readInputs(board, watched)
  if (!(before instanceof Map)) throw misfit(member, settings, before, `input ${watched.join(' or ')}`)
  if (signal.aborted) throw signal.reason as Error
  if (session.over.aborted) throw new Error('the link was lost')
  return before
}

/** True while every answer of the board may be an echo. */
export function isUnproven({ board, bus }: ModbusSession): boolean {
  return bus.echo === 'suspected' && !board.hasAnswered
}

/** The outputs of this device. Lamps and siren first, because a board could obey the forbidden value. */
function probeOutputs(settings: ModbusSettings): number[] {
  const signals = [...signalOutputs(settings).values()].toReversed()
  return settings.output === undefined ? signals : [...signals, settings.output]
}

async function writeDesired({ member, session, settings, outputs, watched, signal }: IdentifyOptions): Promise<void> {
  for (const output of outputs.atConnect().keys()) {
    if (signal.aborted) throw signal.reason as Error
    // Reads the desired state just before the write. A signal that starts meanwhile is written later.
    const on = outputs.atConnect().get(output) === true
    const answer = await session.board.writeCoil(output, on, { lane: 'poll' })
    session.uncertain.delete(output)
    if (answer.kind === 'answered') continue
    if (answer.kind !== 'lost' || !isUnproven(session) || watched.length > 0)
      throw misfit(member, settings, answer, `output ${output}`)
    session.uncertain.add(output)
  }
}

const PROBE_BYTES = 4_096
/** Address that boards have when they are new. */
const UNIT = 1
/** A read: it switches nothing. */
const REQUEST: ModbusMessage = { name: 'readCoils', address: 0, quantity: 1, values: [] }
/** Exceptions of a gateway whose board does not answer. */
const BEHIND_GATEWAY: ReadonlySet<number> = new Set([10, 11])

/**
 * Reads one output of a Modbus TCP board and disconnects; nothing moves. Returns what a technician must set, or null.
 * Rejects if no board answers within 3 s.
 */
export async function probeBoard(open: LinkFactory, platform: Platform): Promise<string | null> {
  const codec = tcpCodec('answer')
  const found = await probeLink(open, platform, {
    maxBytes: PROBE_BYTES,
    request: codec.encode({ transaction: 1, unit: UNIT, pdu: encodePdu('request', REQUEST) }),
    read(chunk) {
      for (const frame of codec.push(chunk)) {
        const answer = decodeAnswer(frame.pdu)
        if (frame.transaction !== 1 || answer === null || !answers(answer, REQUEST)) continue
        return 'exception' in answer && BEHIND_GATEWAY.has(answer.exception)
          ? `a gateway answers, but no board with unit ${UNIT} behind it (${exceptionText(answer.exception)}): set "unit" to the address of the board`
          : null
      }
      return undefined
    },
  })
  if (found === undefined) throw new Error('the peer does not speak Modbus TCP; check address and port (502)')
  return found
}
