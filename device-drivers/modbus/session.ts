import type { Clock } from '../../policy/platform.ts'
import type { Membership } from '../transports/shared-links.ts'
import { linkKey } from '../transports/link-settings.ts'
import type { Finding } from '../kit/device.ts'
import { answerText, board as boardOn, type Board } from './board.ts'
import type { FailedAnswer, ModbusBus } from './bus.ts'
import type { InputWatch } from '../kit/input-watch.ts'
import { openSession, type Session } from '../kit/device-link.ts'
import type { ModbusSettings } from './settings.ts'

/**
 * Maximum span of bits in one request. Some boards reverse the bytes of longer answers (simonvetter/modbus#47, a board
 * with 32 relays).
 */
const WIDEST_READ = 8

interface Span {
  readonly first: number
  readonly quantity: number
}

/**
 * Returns spans that cover `inputs`, each at most 8 addresses wide. Wider spans could also include addresses that the
 * board does not have.
 */
export function readSpans(inputs: readonly number[]): Span[] {
  const spans: Span[] = []
  for (const input of [...new Set(inputs)].sort((a, b) => a - b)) {
    const last = spans.at(-1)
    if (last && input - last.first < WIDEST_READ)
      spans[spans.length - 1] = { first: last.first, quantity: input - last.first + 1 }
    else spans.push({ first: input, quantity: 1 })
  }
  return spans
}

/** Reads the inputs once. Returns their states, or the first failed answer. */
export async function readInputs(
  board: Board,
  inputs: readonly number[],
): Promise<Map<number, boolean> | FailedAnswer> {
  const found = new Map<number, boolean>()
  for (const span of readSpans(inputs)) {
    const answer = await board.readInputs(span.first, span.quantity)
    if (answer.kind !== 'answered') return answer
    for (const input of inputs) {
      const bit = answer.values[input - span.first]
      if (input >= span.first && input < span.first + span.quantity) found.set(input, bit === 1)
    }
  }
  return found
}

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
