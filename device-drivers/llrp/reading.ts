import { pause } from '../../policy/platform.ts'
import type { Timers } from '../../policy/platform.ts'
import { all, message } from './protocol/elements.ts'
import type { LlrpConversation } from './conversation.ts'
import { ROSPEC_ID } from './reader-settings.ts'
import type { LlrpSettings } from './settings.ts'

/** Interval at which the driver checks that the reader reads, ms. */
const CHECK_EVERY_MS = 5_000
/** Time in which a reader starts to read, in steps, ms. */
const START_STEP_MS = 500
const START_STEPS = 10

// CurrentState of a ROSpec (LLRP 1.0.1, 11.2.1).
const INACTIVE = 1
const ACTIVE = 2

/**
 * Whether the reader runs the driver's read program (ROSpec). A reader keeps its connection and its keepalives when
 * another program stops or deletes the ROSpec. Null if the reader does not report its ROSpecs.
 */
async function isReading(
  conversation: LlrpConversation,
  settings: LlrpSettings,
  signal?: AbortSignal,
): Promise<boolean | null> {
  const answer = await conversation.request('GET_ROSPECS_RESPONSE', (id) => message('GET_ROSPECS', id, {}), {
    timeoutMs: settings.requestTimeoutMs,
    ...(signal && { signal }),
  })
  if (answer.kind !== 'answered') return null
  const state = all(answer.message, 'ROSpec').find(({ fields }) => fields.ROSpecID === ROSPEC_ID)?.fields.CurrentState
  // With `readOnBeam` the program waits for its input.
  return state === ACTIVE || (settings.readOnBeam !== undefined && state === INACTIVE)
}

/** Waits until the reader reads. Rejects if it does not start. */
export async function untilReading(
  conversation: LlrpConversation,
  settings: LlrpSettings,
  timers: Timers,
  signal: AbortSignal,
): Promise<void> {
  for (let step = 0; step < START_STEPS; step++) {
    if ((await isReading(conversation, settings, signal)) !== false) return
    await pause(timers, START_STEP_MS, signal)
  }
  throw new Error(
    'the reader accepts the read program but does not start it; check region, antennas and other programs on its web page',
  )
}

/** Ends the connection when the reader no longer reads. The next connection starts it again. */
export async function watchReading(
  conversation: LlrpConversation,
  settings: LlrpSettings,
  timers: Timers,
  onFault: (detail: string) => void,
): Promise<void> {
  const over = new AbortController()
  void conversation.ended.then(() => over.abort())
  for (;;) {
    await pause(timers, CHECK_EVERY_MS, over.signal).catch(() => {})
    if (over.signal.aborted) return
    if ((await isReading(conversation, settings)) !== false || conversation.isOver) continue
    onFault('the reader had stopped reading; the agent starts it again')
    return conversation.end('the reader no longer reads')
  }
}
