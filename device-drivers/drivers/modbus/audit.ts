import { pause } from '../../../policy/platform.ts'
import type { Timers } from '../../../policy/platform.ts'
import type { Board } from './board.ts'
import { readSpans } from './inputs.ts'
import type { WantedOutputs } from '../wanted-outputs.ts'

/** How often the outputs are read back, which also shows that a board without inputs is still there. */
const AUDIT_EVERY_MS = 1_000

export interface AuditOptions {
  readonly board: Board
  readonly outputs: WantedOutputs
  /** The releasing output: switched off when it is on, but never on. */
  readonly release: number
  readonly timers: Timers
  /** Ends the audit. */
  readonly signal: AbortSignal
  /** Without inputs to read, the audit alone shows that the board is there. */
  readonly alone: boolean
  onFault(detail: string): void
}

/** First audits without an answer after which a board counts as one that cannot tell its outputs. */
const MOST_UNANSWERED = 2

/** False when the board did not tell its outputs. */
async function auditOnce({ board, outputs, release, onFault }: AuditOptions): Promise<boolean> {
  const { version } = outputs
  const wanted = outputs.wanted()
  for (const { first, quantity } of readSpans([...wanted.keys()])) {
    const answer = await board.readCoils(first, quantity)
    if (answer.kind !== 'answered') return false
    for (const [output, on] of wanted) {
      const inSpan = output >= first && output < first + quantity
      const asWanted = answer.values[output - first] === (on ? 1 : 0)
      if (!inSpan || asWanted || version !== outputs.version || (output === release && on)) continue
      onFault(`output ${output} was ${on ? 'off' : 'on'} and is switched ${on ? 'on' : 'off'} again`)
      await board.writeCoil(output, on)
    }
  }
  return true
}

/**
 * Looks every second whether the outputs are as they shall be and puts them right: a board that lost
 * its power for a moment has forgotten the siren, and an OFF that got lost leaves a lock open.
 */
export async function auditOutputs(options: AuditOptions): Promise<void> {
  const { signal, timers, alone } = options
  let goOn = alone
  // Boards that ignore Read Coils would hold up the bus each time, so they are not asked for ever.
  for (let asked = 0; !signal.aborted && (goOn || asked < MOST_UNANSWERED); asked++) {
    await pause(timers, AUDIT_EVERY_MS, signal).catch(() => {})
    if (!signal.aborted && (await auditOnce(options))) goOn = true
  }
}
