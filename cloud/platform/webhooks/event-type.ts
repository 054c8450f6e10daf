import { z } from 'zod'
import type { Package } from '../foundation/packages.ts'

/** One type of webhook event. */
export interface EventType {
  readonly name: string
  /** Minimum package of the event's store, or of the account if the event has no store. */
  readonly minimumPackage: Package
  /** True if test accounts receive the event with any package (ADR 0004). */
  readonly freeInSandbox: boolean
  /** Description of when the event is sent. */
  readonly when: string
  /** Schema of `data`. The only data about a customer is `userId`. */
  readonly data: z.ZodType
  /** Data of a test event. */
  readonly example: Readonly<Record<string, unknown>>
}

/** Declares an event. */
export function eventType<D extends z.ZodType>(
  name: string,
  declared: {
    minimumPackage: Package
    freeInSandbox?: boolean
    when: string
    data: D
    example: z.input<D> & Record<string, unknown>
  },
): EventType {
  return { name, freeInSandbox: false, ...declared }
}

/** Id in an event. */
export const EventId = z.string().min(1).max(128)
export const EventText = z.string().max(300)
export const Count = z.int().min(0)
/** Amount in EUR, with cents. */
export const EventEuros = z.number().min(0).max(1_000_000)
export const STORE = 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B'
