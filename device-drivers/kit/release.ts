import { deadline } from '../../policy/platform.ts'
import type { Clock, Timers } from '../../policy/platform.ts'
import { result } from './device.ts'
import type { CommandResult } from './device.ts'
import { eitherSignal, type InputWatch, type Reading } from './input-watch.ts'
import type { LostAnswer } from './exchange.ts'

/** The device's answer when the agent switches an output. */
export type SwitchAnswer =
  | { readonly kind: 'done' }
  /** `outputMayHaveMoved`: the device refused, but the output may have moved. */
  | { readonly kind: 'refused'; readonly detail: string; readonly outputMayHaveMoved: boolean }
  | LostAnswer

/** Switches the releasing output. */
export type SwitchOutput = (
  on: boolean,
  options?: { signal?: AbortSignal; onSend?: () => void },
) => Promise<SwitchAnswer>

/**
 * One release. The agent waits until the confirm input is 0, writes ON once, waits for the end of the pulse, and writes
 * OFF. The agent watches the input from ON until 1 s after OFF.
 *
 * If the input changed, the outcome is `confirmed`. If the input did not change, the outcome is `unknown` after a lost
 * answer, and otherwise `failed`. Without a confirm input, the device's answer to ON decides the outcome.
 */
interface ReleaseOptions {
  /** Switches the output. If the device has its own timer, it may end ON after `pulseMs`. */
  readonly switchOutput: SwitchOutput
  readonly inputs: InputWatch
  readonly clock: Clock
  readonly timers: Timers
  /** Number of the output, for a person. */
  readonly output: number
  readonly confirmInput: number | undefined
  readonly pulseMs: number
  /** True if the device itself ends the pulse. The agent may then miss a whole movement between two reads. */
  readonly deviceEnds: boolean
  /** The pulse ends when this input turns on: the door is open, or the deactivation is done. */
  readonly endInput?: number | undefined
  /** Input wired to the output itself. This input must be off within 1 s after OFF. */
  readonly feedbackInput?: number | undefined
  /** After `signal` aborts, no pulse begins, and a running pulse ends at once. */
  readonly signal: AbortSignal
  /** Aborts when the connection ends. */
  readonly over: AbortSignal
  /** True while an emergency holds the output open. Then the output stays on after the pulse. */
  isHeldOpen(): boolean
  /** Called before ON. It returns a function that is called after OFF. */
  onPulse(): () => void
  /** Called if the output may still be on. */
  onFault(detail: string): void
}

interface Release {
  /** Resolves as soon as the outcome is known, perhaps before the pulse ends. Never rejects. */
  readonly outcome: Promise<CommandResult>
  /** Resolves when the output is off, or when the agent has given up switching it off. */
  readonly finished: Promise<void>
}

/** Time limit for each change of an input that the release waits for, ms. */
const CONFIRM_WITHIN_MS = 1_000

/** Poll interval during a release, ms. It is short, because the input may change only briefly. */
const WATCH_EVERY_MS = 5

const MAX_OFF_TRIES = 3

/** Longest delay of OFF by the last reading of the input, ms. */
const LAST_LOOK_MS = 100

type InputObservation = 'changed' | 'unchanged' | 'lost'
/** Kind of the latest reading of a watched input. */
interface LatestReading {
  kind: 'changed' | Reading['kind']
}

async function inputIsFree(o: ReleaseOptions, input: number): Promise<CommandResult | null> {
  const limit = deadline(o.timers, CONFIRM_WITHIN_MS, o.signal)
  try {
    for (let first = true; ; first = false) {
      const reading = await o.inputs.next(first ? 0 : undefined)
      if (o.signal.aborted) return result('failed', false, 'cancelled')
      if (reading.kind === 'over') return result('failed', false, 'not_ready', 'the connection was lost')
      if (reading.kind === 'read' && !reading.isOn(input)) return null
      if (!limit.signal.aborted) continue
      if (reading.kind === 'missed') return result('failed', false, 'not_ready', `input ${input} cannot be read`)
      return result('failed', false, 'input_stuck', `input ${input} is 1 before anything was commanded`)
    }
  } finally {
    limit.done()
  }
}

async function watchInput(
  o: ReleaseOptions,
  input: number,
  until: AbortSignal,
  latest: LatestReading = { kind: 'read' },
): Promise<InputObservation> {
  let missed = false
  let lastReadAt = o.clock.elapsed()
  while (!until.aborted) {
    const reading = await o.inputs.next(WATCH_EVERY_MS)
    latest.kind = reading.kind
    if (reading.kind === 'over') return 'lost'
    if (reading.kind === 'missed') missed = true
    else if (reading.isOn(input)) {
      latest.kind = 'changed'
      return 'changed'
    }
    const now = o.clock.elapsed()
    // The agent or the board was slow, so the whole movement may have happened between two reads.
    if (o.deviceEnds && now - lastReadAt >= o.pulseMs) missed = true
    lastReadAt = now
  }
  return missed ? 'lost' : 'unchanged'
}

/**
 * Reads the confirm input once more before OFF, because the mechanics may move back with OFF. A device that does not
 * answer must not delay OFF.
 */
async function lastLook(o: ReleaseOptions, latest: LatestReading): Promise<void> {
  if (o.confirmInput === undefined || o.deviceEnds || latest.kind !== 'read' || o.over.aborted) return
  const limit = deadline(o.timers, LAST_LOOK_MS, o.over)
  const late = new Promise<void>((resolve) => limit.signal.addEventListener('abort', () => resolve(), { once: true }))
  await Promise.race([o.inputs.next(0), late])
  limit.done()
}

/** Waits until the pulse is over, or `endInput` turns on. */
async function pulse(o: ReleaseOptions, ended: AbortSignal): Promise<void> {
  const limit = deadline(o.timers, o.pulseMs, ended)
  const over = new Promise<void>((resolve) => {
    if (limit.signal.aborted) resolve()
    limit.signal.addEventListener('abort', () => resolve(), { once: true })
  })
  if (o.endInput === undefined) await over
  else if ((await watchInput(o, o.endInput, limit.signal)) !== 'changed') await over
  limit.done()
}

/**
 * Reports a fault if the output is still on after OFF. An output that stays on leaves a deactivator armed or a lock
 * open.
 */
async function verifyOff(o: ReleaseOptions, input: number): Promise<void> {
  const limit = deadline(o.timers, CONFIRM_WITHIN_MS, o.over)
  try {
    for (;;) {
      const reading = await o.inputs.next(WATCH_EVERY_MS)
      if (reading.kind === 'over' || (reading.kind === 'read' && !reading.isOn(input))) return
      if (limit.signal.aborted) break
    }
  } finally {
    limit.done()
  }
  o.onFault(`output ${o.output} was switched off and its contact (input ${input}) still shows on: is the relay stuck?`)
}

function mayHaveMoved(answer: SwitchAnswer): answer is Exclude<SwitchAnswer, { kind: 'done' }> {
  return answer.kind === 'lost' || (answer.kind === 'refused' && answer.outputMayHaveMoved)
}

/** Switches the output off. OFF may be repeated, unlike ON. */
async function switchOff(o: ReleaseOptions): Promise<SwitchAnswer> {
  let off: SwitchAnswer = { kind: 'done' }
  for (let tries = 0; tries < MAX_OFF_TRIES && !o.isHeldOpen(); tries++) {
    off = await o.switchOutput(false)
    if (off.kind === 'done' || o.over.aborted) break
  }
  return off
}

/** Waits for a change of the input until 1 s after the pulse. Returns the last observation. */
async function finalObservation(
  o: ReleaseOptions,
  observed: Promise<InputObservation>,
  stopWatching: AbortController,
  ended: AbortSignal,
): Promise<InputObservation> {
  const limit = deadline(o.timers, CONFIRM_WITHIN_MS, ended)
  const stop = () => stopWatching.abort()
  if (limit.signal.aborted) stop()
  limit.signal.addEventListener('abort', stop, { once: true })
  const last = await observed
  limit.done()
  return last
}

async function run(o: ReleaseOptions, ended: AbortSignal, report: (known: CommandResult) => void): Promise<void> {
  const notFree = o.confirmInput === undefined ? null : await inputIsFree(o, o.confirmInput)
  if (notFree) return report(notFree)
  if (o.signal.aborted) return report(result('failed', false, 'cancelled'))

  const stopWatching = new AbortController()
  const changed = () => report(result('confirmed', true, 'input_changed', `input ${o.confirmInput} changed to 1`))
  let observed: Promise<InputObservation> = Promise.resolve('unchanged')
  const latest: LatestReading = { kind: 'read' }
  const donePulse = o.onPulse()
  const on = await o.switchOutput(true, {
    signal: o.signal,
    onSend: () => {
      if (o.confirmInput === undefined) return
      observed = watchInput(o, o.confirmInput, stopWatching.signal, latest)
      void observed.then((what) => what === 'changed' && changed())
    },
  })
  if (on.kind === 'lost' && !on.possiblySent) {
    donePulse()
    return report(
      o.signal.aborted ? result('failed', false, 'cancelled') : result('failed', false, 'not_ready', on.detail),
    )
  }
  const refused = on.kind === 'refused' && !on.outputMayHaveMoved
  if (on.kind === 'refused' && refused) report(result('failed', true, 'refused', on.detail))
  if (on.kind === 'done') {
    if (o.confirmInput === undefined) report(result('confirmed', true, 'acknowledged'))
    await pulse(o, ended)
    // An interrupted pulse ends at once.
    if (!ended.aborted) await lastLook(o, latest)
  }

  const off = await switchOff(o)
  donePulse()
  if (off.kind !== 'done') {
    o.onFault(
      `output ${o.output} may still be on (${off.detail}); it is switched off again as soon as the board answers`,
    )
  }
  if (refused) return stopWatching.abort()

  const last = await finalObservation(o, observed, stopWatching, ended)
  if (last === 'changed') return changed()
  const lost = [on, off].find(mayHaveMoved)
  if (lost) return report(result('unknown', true, 'answer_lost', lost.detail))
  if (o.signal.aborted) return report(result('unknown', true, 'cancelled'))
  if (last === 'lost')
    return report(result('unknown', true, 'answer_lost', `input ${o.confirmInput} could not be read`))
  report(result('failed', true, 'no_confirmation', `input ${o.confirmInput} did not change`))
}

/** Begins a release. */
export function startRelease(options: ReleaseOptions): Release {
  let resolveOutcome = (_known: CommandResult) => {}
  const outcome = new Promise<CommandResult>((resolve) => {
    resolveOutcome = resolve
  })
  const ended = eitherSignal(options.signal, options.over)
  const { feedbackInput } = options
  const finished = run(options, ended.signal, resolveOutcome)
    .then(() => (feedbackInput === undefined ? undefined : verifyOff(options, feedbackInput)))
    .catch((error: unknown) =>
      resolveOutcome(result('unknown', true, 'answer_lost', `fault in the driver: ${String(error)}`)),
    )
    .finally(ended.done)
  return { outcome, finished }
}
