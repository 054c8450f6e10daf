import { hash } from 'node:crypto'
import { ProtectionEvent } from '../../../policy/protection-events.ts'

/** An event within the limits of the API. */
export interface FittedEvent {
  readonly event: ProtectionEvent
  /** Event for staff that lists the removed fields. */
  readonly notice?: ProtectionEvent
}

/** Maximum characters of texts for people. The agent shortens such texts without a notice. */
const TEXT_LIMITS = { reason: 60, detail: 300 } as const
const LONGEST_ID = 128
/** The latest time with a four-digit year. */
const END_OF_TIME_MS = 253_402_300_799_999

/**
 * Reduces an event to the limits of the API, because the cloud leaves a row with an invalid event unapplied and does
 * not record the event. Removes an invalid identifier as a whole, because a shortened id could be the id of another
 * thing.
 */
export function fitEvent(original: ProtectionEvent, atMs: number): FittedEvent {
  const first = ProtectionEvent.safeParse(original)
  if (first.success) return { event: original }
  const event: Record<string, unknown> = { ...original }
  for (const [field, limit] of Object.entries(TEXT_LIMITS)) {
    const text = event[field]
    if (typeof text === 'string') event[field] = storable(text).slice(0, limit).toWellFormed()
  }
  const removedFields = faultsOf(event)
  if (removedFields.length === 0) return { event: event as ProtectionEvent }
  for (const field of removedFields) delete event[field]
  const id = hash('sha256', `${textOf(original.eventId)}\0${JSON.stringify(removedFields)}`, 'hex').slice(0, 26)
  const fitting = {
    type: 'protection.exception.raised',
    eventId: `evt_${id}`,
    occurredAt: new Date(Math.min(atMs, END_OF_TIME_MS)).toISOString(),
    storeId: storable(textOf(original.storeId)).slice(0, LONGEST_ID).toWellFormed() || 'unknown',
    ...event,
  } as ProtectionEvent
  return { event: fitting, notice: noticeFor(fitting, original, removedFields, `evt_w${id}`) }
}

/** A value as text. `String` throws for an object whose `toString` is no function. */
function textOf(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
}

function faultsOf(event: object): string[] {
  const { error } = ProtectionEvent.safeParse(event)
  const fields = (error?.issues ?? []).flatMap((issue) =>
    issue.code === 'unrecognized_keys' ? issue.keys : [String(issue.path[0])],
  )
  return [...new Set(fields)]
}

function noticeFor(
  event: ProtectionEvent,
  original: object,
  removedFields: readonly string[],
  noticeId: string,
): ProtectionEvent {
  const { type, occurredAt, storeId, deviceId, reason, eventId } = event
  const what = removedFields
    .map((field) => `${field.slice(0, 40)} (${describeValue((original as Record<string, unknown>)[field])})`)
    .join(', ')
  return {
    type: 'protection.exception.raised',
    eventId: noticeId,
    occurredAt,
    storeId,
    ...(deviceId !== undefined && { deviceId }),
    reason: 'event_incomplete',
    detail: storable(`${reason ?? type} ${eventId} was reported without ${what}`)
      .slice(0, TEXT_LIMITS.detail)
      .toWellFormed(),
  }
}

function describeValue(value: unknown): string {
  return typeof value === 'string' ? `${value.length} characters: ${value.slice(0, 40)}` : typeof value
}

function storable(text: string): string {
  return text.toWellFormed().replaceAll('\0', '')
}
