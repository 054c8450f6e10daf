import { exceptionText } from '../../protocols/modbus/functions.ts'
import { FLASH_COILS } from '../../protocols/modbus/pdu.ts'
import type { ModbusMessage } from '../../protocols/modbus/pdu.ts'
import type { SwitchAnswer } from '../release.ts'
import type { BusAnswer, BusRequest, FailedAnswer, ModbusBus } from './bus.ts'

/** One unit on a bus, with its coils and inputs. */
export interface Board {
  writeCoil(address: number, on: boolean, options?: { signal?: AbortSignal; onSend?: () => void }): Promise<BusAnswer>
  /** Switches a coil on; the board itself switches it off after `ms`, rounded up to 100 ms. */
  flashCoil(address: number, ms: number, options?: { signal?: AbortSignal; onSend?: () => void }): Promise<BusAnswer>
  readCoils(address: number, quantity: number): Promise<BusAnswer>
  readInputs(address: number, quantity: number, lane?: BusRequest['lane']): Promise<BusAnswer>
}

/** Number of consecutive lost answers after which the board is lost. */
export const MAX_MISSED = 3

/** Makes a board. Calls `onUnresponsive` when three answers in a row were lost. */
export function board(
  bus: ModbusBus,
  unit: number,
  timeoutMs: number,
  onUnresponsive: (detail: string) => void,
): Board {
  let missed = 0

  async function request(message: ModbusMessage, options: Partial<BusRequest>): Promise<BusAnswer> {
    const answer = await bus.request({ unit, message, timeoutMs, lane: 'command', ...options })
    if (answer.kind !== 'lost') missed = 0
    else if (answer.possiblySent && ++missed === MAX_MISSED)
      onUnresponsive(`${MAX_MISSED} requests in a row: ${answer.detail}`)
    return answer
  }

  return {
    writeCoil: (address, on, options) =>
      request({ name: 'writeSingleCoil', address, quantity: 1, values: [on ? 1 : 0] }, options ?? {}),
    flashCoil: (address, ms, options) =>
      request(
        {
          name: 'writeSingleCoil',
          address: FLASH_COILS + address,
          quantity: 1,
          values: [1],
          flash: Math.ceil(ms / 100),
        },
        options ?? {},
      ),
    readCoils: (address, quantity) => request({ name: 'readCoils', address, quantity, values: [] }, { lane: 'poll' }),
    readInputs: (address, quantity, lane = 'poll') =>
      request({ name: 'readDiscreteInputs', address, quantity, values: [] }, { lane }),
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
