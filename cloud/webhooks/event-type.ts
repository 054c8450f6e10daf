import { z } from 'zod'
import type { Package } from '../foundation/packages.ts'

/** One kind of event that webhooks are told of. */
export interface EventType {
  readonly name: string
  /** Of the event's store, else of the account. */
  readonly minimumPackage: Package
  /** With test keys at any package (decisions §3). */
  readonly freeInSandbox: boolean
  /** When it is sent, in words. */
  readonly when: string
  /** What `data` holds: the ids of everything it is about, of customers nothing but `userId`. */
  readonly data: z.ZodType
  /** What a test event carries. */
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

/** An id in an event. */
export const EventId = z.string().min(1).max(128)
export const EventText = z.string().max(300)
export const Count = z.int().min(0)
/** EUR with cents. */
export const EventEuros = z.number().min(0).max(1_000_000)
export const STORE = 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B'
