import type { Membership } from '../../transports/shared-links.ts'
import { answerText, board as boardOn } from './board.ts'
import type { Board } from './board.ts'
import type { FailedAnswer, ModbusBus } from './bus.ts'
import type { InputWatch } from '../input-watch.ts'
import { openSession } from '../session.ts'
import type { Session } from '../session.ts'
import type { ModbusSettings } from './settings.ts'

/** From one `identify` to the loss of what it found. */
export interface ModbusSession extends Session {
  readonly board: Board
  /** Null until the board is identified. */
  inputs: InputWatch | null
  /** Outputs whose last write was not carried out, as far as is known. */
  readonly uncertain: Set<number>
}

/** Begins to speak with the board of `settings`; the session ends by itself when the board falls silent. */
export function beginSession(member: Membership<ModbusBus>, settings: ModbusSettings): ModbusSession {
  const session = openSession()
  const board = boardOn(member.client, settings.unit, settings.requestTimeoutMs, (detail) => {
    session.end(detail)
    member.markUnresponsive(detail)
  })
  return { ...session, board, inputs: null, uncertain: new Set() }
}

/** Why the board is not what the settings say; the link is told whether it answers at all. */
export function misfit(
  member: Membership<ModbusBus>,
  settings: ModbusSettings,
  answer: FailedAnswer,
  what: string,
): Error {
  if (answer.kind === 'exception') {
    member.markResponsive()
    return new Error(
      `unit ${settings.unit} refuses ${what}: ${answerText(answer)}; check the settings of ${settings.deviceId}`,
    )
  }
  member.markUnresponsive(answer.detail)
  return new Error(answer.detail)
}
