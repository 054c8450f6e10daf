import { pause, type Timers, type Cancel } from '../../policy/platform.ts'
import { all, message, first, type Message, type Parameter } from './protocol/elements.ts'
import type { LlrpConversation } from './conversation.ts'
import { ROSPEC_ID } from './reader-settings.ts'
import type { LlrpSettings } from './settings.ts'
import { type DeviceEvent, result, type CommandResult, type WriteAnswer } from '../kit/device.ts'
import { inputEvents } from '../kit/input-watch.ts'
import type { ReaderStamp } from './reader-clock.ts'
import type { RunningCommand } from '../kit/device-commands.ts'

interface PulseOptions {
  readonly gpo: number
  readonly pulseMs: number
  readonly timers: Timers
  /** Ends the pulse early when it aborts. */
  readonly signal: AbortSignal
  write(on: boolean): Promise<WriteAnswer>
  /** True while an emergency holds the output open. Then the output stays on after the pulse. */
  isHeldOpen(): boolean
  /** Sets the desired state of the output to on, until the returned function is called. */
  onPulse(): Cancel
  onFault(detail: string): void
}

/** Maximum number of OFF writes. Unlike ON, OFF may be repeated. */
const MAX_OFF_TRIES = 3

/** Switches an output on once, and off after `pulseMs`. The outcome is known when the reader has answered the ON. */
export function startPulse(options: PulseOptions): RunningCommand {
  const { gpo, timers, signal } = options
  let report = (_known: CommandResult) => {}
  const outcome = new Promise<CommandResult>((resolve) => {
    report = resolve
  })

  async function switchOff(): Promise<void> {
    for (let tries = 0; tries < MAX_OFF_TRIES && !options.isHeldOpen(); tries++) {
      const off = await options.write(false)
      if (off.kind === 'answered') return
      if (off.kind === 'lost' || tries === MAX_OFF_TRIES - 1) {
        options.onFault(
          `output ${gpo} may still be on (${off.detail}); it is switched off again as soon as the reader is back`,
        )
        return
      }
    }
  }

  async function run(): Promise<void> {
    const done = options.onPulse()
    const on = await options.write(true)
    if (on.kind === 'answered') {
      report(result('confirmed', true, 'acknowledged'))
      await pause(timers, options.pulseMs, signal).catch(() => {})
    } else if (on.kind === 'refused') report(result('failed', true, 'refused', on.detail))
    else if (on.possiblySent) report(result('unknown', true, 'answer_lost', on.detail))
    else report(result('failed', false, 'not_ready', on.detail))
    done()
    if (on.kind !== 'lost' || on.possiblySent) await switchOff()
  }

  const finished = run().catch((error: unknown) =>
    report(result('unknown', true, 'answer_lost', `fault in the driver: ${String(error)}`)),
  )
  return { outcome, finished }
}

type Data = Parameter<'ReaderEventNotificationData'>

/** Time of a notification by the reader's clock. */
export function stampOf(notification: Message<'READER_EVENT_NOTIFICATION'>): ReaderStamp {
  const data = first(notification, 'ReaderEventNotificationData')
  const utc = first(data, 'UTCTimestamp')?.fields.Microseconds
  const uptime = first(data, 'Uptime')?.fields.Microseconds
  return {
    utcUs: utc === undefined ? undefined : Number(utc),
    uptimeUs: uptime === undefined ? undefined : Number(uptime),
  }
}

const OTHER_CLIENT =
  'another program is connected to this reader and it serves one at a time; stop that program, or disconnect it on the reader’s web page'

// ConnectionAttemptEvent (LLRP 1.0.1, 13.2.6.11).
const REFUSALS: Readonly<Record<number, string>> = {
  1: 'the reader has itself connected to another program and serves one at a time; switch its client mode off',
  2: OTHER_CLIENT,
  3: 'the reader refuses the connection and does not say why; look at its web page',
  4: OTHER_CLIENT,
}

/**
 * Why the reader refuses this connection; null if the reader accepts the connection. Undefined if the notification has
 * no ConnectionAttemptEvent.
 */
export function connectionRefusal(notification: Message<'READER_EVENT_NOTIFICATION'>): string | null | undefined {
  const status = first(first(notification, 'ReaderEventNotificationData'), 'ConnectionAttemptEvent')?.fields.Status
  if (status === undefined) return undefined
  return status === 0 ? null : (REFUSALS[status] ?? `the reader refuses the connection (${status})`)
}

/** True if the reader announces that it closes the connection. */
export function isConnectionClose(notification: Message<'READER_EVENT_NOTIFICATION'>): boolean {
  return first(first(notification, 'ReaderEventNotificationData'), 'ConnectionCloseEvent') !== undefined
}

/** The antenna that was connected or disconnected; null if the notification is about something else. */
export function antennaChangeOf(
  notification: Message<'READER_EVENT_NOTIFICATION'>,
): { antenna: number; isConnected: boolean } | null {
  const change = first(first(notification, 'ReaderEventNotificationData'), 'AntennaEvent')?.fields
  return change ? { antenna: change.AntennaID, isConnected: change.EventType === 1 } : null
}

const fault = (detail: string): DeviceEvent => ({ type: 'fault', detail })

function exceptionText(event: Parameter<'ReaderExceptionEvent'>): string {
  const antenna = first(event, 'AntennaID')?.fields.AntennaID
  return `the reader reports an exception${antenna === undefined ? '' : ` at antenna ${antenna}`}: ${event.fields.Message || 'no text'}`
}

function faultsIn(data: Data | undefined): DeviceEvent[] {
  const events: DeviceEvent[] = []
  const exception = first(data, 'ReaderExceptionEvent')
  if (exception) events.push(fault(exceptionText(exception)))
  const antenna = first(data, 'AntennaEvent')?.fields
  if (antenna)
    events.push(
      fault(
        antenna.EventType === 1
          ? `antenna ${antenna.AntennaID} is connected again`
          : `antenna ${antenna.AntennaID} is not connected; check its cable`,
      ),
    )
  const level = first(data, 'ReportBufferLevelWarningEvent')?.fields.ReportBufferPercentageFull
  if (level !== undefined) events.push(fault(`the reader’s report buffer is ${level} % full`))
  if (first(data, 'ReportBufferOverflowErrorEvent'))
    events.push(fault('the reader’s report buffer ran over: tag reads were lost'))
  return events
}

/** The device events of a notification; `ageMs` is the age of the notification. */
export function eventsIn(
  notification: Message<'READER_EVENT_NOTIFICATION'>,
  ageMs: number,
  passageInput: number | undefined,
): DeviceEvent[] {
  const data = first(notification, 'ReaderEventNotificationData')
  const input = first(data, 'GPIEvent')?.fields
  const changes = input ? inputEvents({ input: input.GPIPortNumber, on: input.GPIEvent, ageMs }, passageInput) : []
  return [...faultsIn(data), ...changes]
}

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
