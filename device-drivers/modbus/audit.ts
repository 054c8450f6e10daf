import { pause } from '../../policy/platform.ts'
import type { Timers } from '../../policy/platform.ts'
import { ILLEGAL_FUNCTION } from './protocol/pdu.ts'
import type { Board } from './board.ts'
import { readSpans } from './session.ts'
import type { DesiredOutputs } from '../kit/desired-outputs.ts'

/**
 * Interval at which the agent reads the outputs, ms. If the board has no inputs, only these reads show that the board
 * is alive.
 */
const AUDIT_EVERY_MS = 1_000

/** Interval for a board that has not answered yet, although its line repeats requests, ms. */
const UNPROVEN_EVERY_MS = 5_000

interface UncertainOptions {
  readonly board: Board
  readonly outputs: DesiredOutputs
  /**
   * The releasing output. The audit may switch this output off, but switches it on only while an emergency holds it
   * open.
   */
  readonly release: number | undefined
  /** Outputs whose last write was lost or refused. */
  readonly uncertain: Set<number>
}

interface AuditOptions extends UncertainOptions {
  readonly timers: Timers
  /** Ends the audit. */
  readonly signal: AbortSignal
  /** True if no inputs are polled. In that case only audits and repeated writes show that the board is alive. */
  readonly alone: boolean
  onFault(detail: string): void
}

/** Maximum time between two audits of a board that cannot report its outputs, s. */
const MAX_SKIPPED = 64

type AuditResult = 'compared' | 'unable' | 'silent'

async function auditOnce({ board, outputs, release, onFault }: AuditOptions): Promise<AuditResult> {
  const { version } = outputs
  const wanted = outputs.desired()
  for (const { first, quantity } of readSpans([...wanted.keys()])) {
    const answer = await board.readCoils(first, quantity, true)
    if (answer.kind === 'exception' && answer.code === ILLEGAL_FUNCTION) return 'unable'
    if (answer.kind !== 'answered') return 'silent'
    for (const [output, on] of wanted) {
      const inSpan = output >= first && output < first + quantity
      const asWanted = answer.values[output - first] === (on ? 1 : 0)
      if (!inSpan || asWanted || version !== outputs.version || (output === release && on && !outputs.isHeldOpen))
        continue
      onFault(`output ${output} was ${on ? 'off' : 'on'} and is switched ${on ? 'on' : 'off'} again`)
      await board.writeCoil(output, on)
    }
  }
  return 'compared'
}

/** Writes the desired states of the uncertain outputs again. A second ON of a siren does no harm. */
export async function writeUncertain({ board, outputs, release, uncertain }: UncertainOptions): Promise<void> {
  // Iterates over a copy, because a refused output is added to the set again.
  const toWrite = [...uncertain]
  for (const output of toWrite) {
    const on = outputs.desired().get(output) === true
    if (output === release && on && !outputs.isHeldOpen) continue
    uncertain.delete(output)
    const answer = await board.writeCoil(output, on, { lane: 'poll' })
    if (answer.kind === 'answered') continue
    uncertain.add(output)
    // A board that does not answer must not block its bus for the time of several requests.
    if (answer.kind === 'lost') return
  }
}

/**
 * Writes the desired state of one output again, as a sign of life of a board that does not report its outputs. Repeats
 * the write if the desired state changed meanwhile.
 */
async function repeatOutput({ board, outputs, release }: AuditOptions): Promise<void> {
  for (let version = -1; version !== outputs.version;) {
    version = outputs.version
    const [output, on] = [...outputs.desired()].at(-1) ?? []
    if (output === undefined || (output === release && on && !outputs.isHeldOpen)) return
    await board.writeCoil(output, on === true, { lane: 'poll', isAudit: true })
  }
}

/**
 * Compares the outputs with their desired states every second, and corrects them. A board that lost power no longer
 * sounds the siren, and after a lost OFF a lock stays open. Each round also repeats lost and refused writes, because
 * some boards cannot report their outputs. If no inputs are polled, such a board shows that it is alive by repeated
 * writes.
 */
export async function auditOutputs(options: AuditOptions): Promise<void> {
  const { board, signal, timers, alone } = options
  let isUnable = false
  let everyNth = 0
  // Seconds until the next audit of a board that has never reported its outputs. This time doubles after each audit. A
  // board that ignores Read Coils blocks the bus until each request times out.
  let skipped = 1
  for (let left = 1; ;) {
    await pause(timers, board.hasAnswered ? AUDIT_EVERY_MS : UNPROVEN_EVERY_MS, signal).catch(() => {})
    if (signal.aborted) return
    await writeUncertain(options)
    if (signal.aborted) return
    if (isUnable || --left > 0) {
      if (alone) await repeatOutput(options)
      continue
    }
    const audited = await auditOnce(options)
    // An exception is a sign of life, too.
    if (audited === 'compared' || (audited === 'unable' && alone)) everyNth = 1
    isUnable = audited === 'unable' && !alone
    skipped = Math.min(skipped * 2, MAX_SKIPPED)
    left = everyNth || skipped
  }
}
