import { first } from './protocol/elements.ts'
import type { Message, Parameter } from './protocol/elements.ts'
import type { DeviceEvent } from '../kit/device.ts'
import { inputEvents } from '../kit/input-events.ts'
import type { ReaderStamp } from './reader-clock.ts'

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
