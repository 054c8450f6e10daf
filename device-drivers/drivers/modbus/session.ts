import type { Membership } from '../../transports/shared-links.ts'
import { answerText, board as boardOn } from './board.ts'
import type { Board } from './board.ts'
import type { FailedAnswer, ModbusBus } from './bus.ts'
import type { InputWatch } from '../input-watch.ts'
import { openSession } from '../session.ts'
import type { Session } from '../session.ts'
import type { ModbusSettings } from './settings.ts'

/** A session lasts from `identify` until the board is lost. */
export interface ModbusSession extends Session {
  readonly board: Board
  /** Null until the board is identified. */
  inputs: InputWatch | null
  /** Outputs whose last write was lost or refused. */
  readonly uncertain: Set<number>
}

/** Begins a session with the board of `settings`. The session ends when the board stops answering. */
export function beginSession(member: Membership<ModbusBus>, settings: ModbusSettings): ModbusSession {
  const session = openSession()
  const board = boardOn(member.client, settings.unit, settings.requestTimeoutMs, (detail) => {
    session.end(detail)
    member.markUnresponsive(detail)
  })
  return { ...session, board, inputs: null, uncertain: new Set() }
}

/** Makes the error of a failed identification. Also tells the board's link whether the board answered. */
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
