import type { Clock } from '../../policy/platform.ts'
import type { Membership } from '../transports/shared-links.ts'
import { linkKey } from '../transports/link-settings.ts'
import type { Finding } from '../kit/device.ts'
import { answerText, board as boardOn } from './board.ts'
import type { Board } from './board.ts'
import type { FailedAnswer, ModbusBus } from './bus.ts'
import type { InputWatch } from '../kit/input-watch.ts'
import { openSession } from '../kit/session.ts'
import type { Session } from '../kit/session.ts'
import type { ModbusSettings } from './settings.ts'

/** A session lasts from `identify` until the board is lost. */
export interface ModbusSession extends Session {
  readonly board: Board
  readonly bus: ModbusBus
  /** Null until the board is identified. */
  inputs: InputWatch | null
  /** Outputs whose last write was lost or refused. */
  readonly uncertain: Set<number>
  /** What a person must change at the board, the line or the settings. */
  findings(): readonly Finding[]
}

/**
 * Begins a session with the board of `settings`. The session ends when the board stops answering. Calls `onFinding`
 * for what it finds in the course of the session.
 */
export function beginSession(
  member: Membership<ModbusBus>,
  settings: ModbusSettings,
  clock: Clock,
  onFinding: (finding: Finding) => void,
): ModbusSession {
  const session = openSession()
  const bus = member.client
  let otherUnit: number | undefined
  const board = boardOn({
    bus,
    unit: settings.unit,
    timeoutMs: settings.requestTimeoutMs,
    isUrgent: settings.emergency !== undefined,
    clock,
    onUnresponsive(detail) {
      session.end(detail)
      member.markUnresponsive(detail)
    },
    onOtherUnit(unit) {
      if (unit === otherUnit) return
      otherUnit = unit
      onFinding(wrongUnit(settings, unit))
    },
  })
  const findings = () => [
    ...(otherUnit === undefined ? [] : [wrongUnit(settings, otherUnit)]),
    ...echoFindings(board, bus, settings),
  ]
  return { ...session, board, bus, inputs: null, uncertain: new Set(), findings }
}

function wrongUnit({ unit }: ModbusSettings, other: number): Finding {
  return {
    code: 'wrong_address',
    isWarning: false,
    detail: `unit ${other} answers the requests to unit ${unit}: set "unit": ${other}, or set the address of the board to ${unit}`,
  }
}

function echoFindings(board: Board, bus: ModbusBus, { unit, link }: ModbusSettings): Finding[] {
  if (bus.echo === 'present')
    return [
      {
        code: 'echo',
        isWarning: true,
        detail: `the adapter at ${linkKey(link)} repeats what the agent sends, and the repeats are removed; switch off its local echo`,
      },
    ]
  if (bus.echo !== 'suspected' || board.hasAnswered) return []
  return [
    {
      code: 'echo',
      isWarning: false,
      detail:
        `${linkKey(link)} repeats what the agent sends, and unit ${unit} sends nothing else: check power, cable and address of the board, ` +
        'and switch off the local echo of the adapter. If the adapter has no echo and the board moves, set "echo": "none"',
    },
  ]
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
