import type { Clock } from '../../policy/platform.ts'
import { exceptionText, FLASH_COILS, type ModbusMessage } from './protocol/pdu.ts'
import type { SwitchAnswer } from '../kit/release.ts'
import { MAX_MISSED } from './bus.ts'
import type { BusAnswer, BusRequest, FailedAnswer, ModbusBus } from './bus.ts'

/** `lane`: default `command`. A `poll` waits while the bus is held and the unit does not answer. */
type WriteOptions = Partial<Pick<BusRequest, 'lane' | 'isAudit' | 'signal' | 'onSend'>>

/** One unit on a bus, with its coils and inputs. */
export interface Board {
  /** True after the first answer of the unit. A repeated request is no answer. */
  readonly hasAnswered: boolean
  /** Calls `listener` at the first answer of a unit that has not answered yet. */
  onFirstAnswer(listener: () => void): void
  writeCoil(address: number, on: boolean, options?: WriteOptions): Promise<BusAnswer>
  /** Switches a coil on; the board itself switches it off after `ms`, rounded up to 100 ms. */
  flashCoil(address: number, ms: number, options?: WriteOptions): Promise<BusAnswer>
  /** Writes a value that Modbus forbids, so that the board's answer differs from the request. */
  writeForbidden(address: number): Promise<BusAnswer>
  readCoils(address: number, quantity: number, isAudit?: boolean): Promise<BusAnswer>
  readInputs(address: number, quantity: number): Promise<BusAnswer>
}

interface BoardOptions {
  readonly bus: ModbusBus
  readonly unit: number
  readonly timeoutMs: number
  /** True if the board has an emergency input. */
  readonly isUrgent: boolean
  readonly clock: Clock
  /** Called when three answers in a row were lost, or the board executed nothing for `NO_SERVICE_MS`. */
  onUnresponsive(detail: string): void
  /** Called when another unit answers in place of this one. */
  onOtherUnit(unit: number): void
}

/**
 * Write Single Coil allows only 0000 and FF00. A board that does not check the value takes 8000 for off, or for
 * nothing: it is neither FFxx nor a pulse or toggle command of a maker.
 */
const FORBIDDEN_VALUE = 0x8000

/**
 * Exceptions in place of an executed request: device failure, still working, busy, and the two of a gateway whose unit
 * does not answer. A board that answers only with these for a time is lost, like one that does not answer.
 */
const NO_SERVICE: ReadonlySet<number> = new Set([4, 5, 6, 10, 11])
export const NO_SERVICE_MS = 3_000

/** Makes a board. */
export function board({ bus, unit, timeoutMs, isUrgent, clock, onUnresponsive, onOtherUnit }: BoardOptions): Board {
  let missed = 0
  /** Time of the first exception without service, ms; null after a request that the board executed. */
  let noServiceSinceMs: number | null = null

  function noteService(answer: BusAnswer): void {
    if (answer.kind === 'lost') return
    const now = clock.elapsed()
    if (answer.kind === 'answered' || !NO_SERVICE.has(answer.code)) noServiceSinceMs = null
    else if (noServiceSinceMs === null) noServiceSinceMs = now
    else if (now - noServiceSinceMs >= NO_SERVICE_MS) {
      noServiceSinceMs = null
      onUnresponsive(`unit ${unit} executes nothing: ${answerText(answer)}`)
    }
  }

  let hasAnswered = false
  let firstAnswer = () => {}

  async function request(message: ModbusMessage, options: Partial<BusRequest>): Promise<BusAnswer> {
    const answer = await bus.request({ unit, message, timeoutMs, lane: 'command', ...options })
    noteService(answer)
    if (answer.kind !== 'lost') {
      missed = 0
      if (!hasAnswered) firstAnswer()
      hasAnswered = true
      if (answer.otherUnit !== undefined) onOtherUnit(answer.otherUnit)
    } else if (answer.isRepeated && !hasAnswered) {
      // The board may be there, and its answers may look like an echo.
    } else if (answer.possiblySent && ++missed === MAX_MISSED)
      onUnresponsive(`${MAX_MISSED} requests in a row: ${answer.detail}`)
    return answer
  }

  const write = (address: number, options: WriteOptions = {}, flash?: number, on = true) =>
    request(
      {
        name: 'writeSingleCoil',
        address,
        quantity: 1,
        values: [on ? 1 : 0],
        ...(flash === undefined ? {} : { flash }),
      },
      options,
    )

  return {
    get hasAnswered() {
      return hasAnswered
    },
    onFirstAnswer: (listener) => void (firstAnswer = listener),
    writeCoil: (address, on, options) => write(address, options, undefined, on),
    flashCoil: (address, ms, options) => write(FLASH_COILS + address, options, Math.ceil(ms / 100)),
    writeForbidden: (address) => write(address, { lane: 'poll' }, FORBIDDEN_VALUE),
    readCoils: (address, quantity, isAudit = false) =>
      request({ name: 'readCoils', address, quantity, values: [] }, { lane: 'poll', isAudit }),
    readInputs: (address, quantity) =>
      request({ name: 'readDiscreteInputs', address, quantity, values: [] }, { lane: 'poll', isUrgent }),
  }
}

/** Describes a failed answer for a person. */
export function answerText(answer: FailedAnswer): string {
  return answer.kind === 'exception' ? exceptionText(answer.code) : answer.detail
}

/**
 * Exceptions that show that the coil has not switched: unknown function, address or value, busy, and a gateway without
 * a path. After other exceptions the coil may have switched: 4 (device failure), 5 (still working), 11 (no answer
 * behind the gateway).
 */
const DECIDED_EXCEPTIONS: ReadonlySet<number> = new Set([1, 2, 3, 6, 10])

/** Converts the answer to a coil write into a `SwitchAnswer`. */
export function switchAnswer(answer: BusAnswer): SwitchAnswer {
  if (answer.kind === 'answered') return { kind: 'done' }
  if (answer.kind === 'lost') return answer
  return { kind: 'refused', detail: answerText(answer), outputMayHaveMoved: !DECIDED_EXCEPTIONS.has(answer.code) }
}
