import { sql } from 'kysely'
import { hash } from 'node:crypto'
import type { Db } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { z } from 'zod'
import { lines } from '../../platform/operations/fields.ts'

export const MESSAGE_LENGTH = 500
export const MESSAGES_LIMIT = 50

/** Message of a shopper or of staff; must not be blank. */
export const Message = lines(MESSAGE_LENGTH).refine((message) => message.trim() !== '', 'must not be blank')

/** `open` waits for staff. `answered` waits for the shopper. `closed` is final. */
export const REQUEST_STATUSES = ['open', 'answered', 'closed'] as const

export const Zone = z.strictObject({
  zoneId: z.string(),
  name: z.string(),
  url: z.string().describe('Address in the zone’s QR code.'),
  createdAt: z.string(),
})

export const AssistanceRequest = z.strictObject({
  requestId: z.string(),
  storeId: z.string(),
  reason: z
    .enum(['shopper', 'manual_assistance_required', 'exception_hold', 'alarm'])
    .describe(
      'A shopper asked for help, a tag needs staff, goods on hold are at a gate, or staff called colleagues to an alarm.',
    ),
  status: z.enum(REQUEST_STATUSES),
  zoneId: z.string().optional(),
  zoneName: z.string().optional(),
  userId: z.string().optional(),
  deviceId: z.string().optional(),
  deviceName: z.string().optional().describe('Name of the device, else of its gate.'),
  eventId: z.string().optional().describe('Event of the alarm.'),
  requestedByName: z.string().optional().describe('User who called colleagues to the alarm.'),
  purchaseId: z.string().optional(),
  tag: z.string().optional().describe('The tag that it is about: EPC, UID or number. Absent for requests of shoppers.'),
  products: z
    .array(z.string())
    .optional()
    .describe('Names of the products that it is about, at most three. Absent if they are unknown.'),
  createdAt: z.string(),
  updatedAt: z.string(),
  messages: z.array(z.strictObject({ author: z.enum(['shopper', 'staff']), text: z.string(), at: z.string() })),
})
export type AssistanceRequest = z.infer<typeof AssistanceRequest>

/** Hash of a ticket. One round of SHA-256 suffices for 128 random bits. */
export function hashOfTicket(ticket: string): string {
  return hash('sha256', ticket, 'base64url')
}

/** Zone of any tenant, by id. */
export function findZone(db: Db, zoneId: string): Promise<Row<'zone'> | undefined> {
  return db.selectFrom('zone').selectAll().where('zone_id', '=', zoneId).executeTakeFirst()
}

/** Zones of a store in order of creation. */
export function listZones(db: Db, storeId: string, limit: number): Promise<Row<'zone'>[]> {
  return db.selectFrom('zone').selectAll().where('store_id', '=', storeId).orderBy('zone_id').limit(limit).execute()
}

/** Request of the tenant, by id. */
export function findRequest(db: Db, tenant: string, requestId: string): Promise<Row<'assistance_request'> | undefined> {
  return db
    .selectFrom('assistance_request')
    .selectAll()
    .where('request_id', '=', requestId)
    .where('tenant', '=', tenant)
    .executeTakeFirst()
}

/** Finds a request of any tenant by the shopper's ticket. The ticket is a secret, so knowing it proves access. */
export function findRequestOfTicket(db: Db, ticket: string): Promise<Row<'assistance_request'> | undefined> {
  return db
    .selectFrom('assistance_request')
    .selectAll()
    .where('ticket_hash', '=', hashOfTicket(ticket))
    .executeTakeFirst()
}

/** Messages of these requests in order: all, or the `last` of each. */
export async function messagesOf(
  db: Db,
  requestIds: readonly string[],
  last?: number,
): Promise<Map<string, Row<'assistance_message'>[]>> {
  const messages = new Map<string, Row<'assistance_message'>[]>(requestIds.map((id) => [id, []]))
  if (requestIds.length === 0) return messages
  let query = db
    .selectFrom('assistance_message as m')
    .innerJoin('assistance_request as r', 'r.request_id', 'm.request_id')
    .selectAll('m')
    .where('m.request_id', 'in', [...requestIds])
  if (last !== undefined) query = query.where((eb) => eb(eb('m.number', '+', last), '>', eb.ref('r.message_count')))
  for (const row of await query.orderBy('m.number').execute()) messages.get(row.request_id)?.push(row)
  return messages
}

/** Number of a store's requests with this reason that are not closed. */
export async function countOpen(db: Db, storeId: string, reason: Row<'assistance_request'>['reason']): Promise<number> {
  const { count } = await db
    .selectFrom('assistance_request')
    .select((eb) => eb.fn.countAll().as('count'))
    .where('store_id', '=', storeId)
    .where('status', '<>', sql.lit('closed'))
    .where('reason', '=', reason)
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** The open requests of shoppers in a store, for each network. */
export async function openByNetwork(
  db: Db,
  storeId: string,
): Promise<{ network: string | null; count: number; oldest: string }[]> {
  const rows = await db
    .selectFrom('assistance_request')
    .select(['network', (eb) => eb.fn.countAll().as('count'), (eb) => eb.fn.min('request_id').as('oldest')])
    .where('store_id', '=', storeId)
    .where('status', '<>', sql.lit('closed'))
    .where('reason', '=', 'shopper')
    .groupBy('network')
    .execute()
  return rows.map(({ network, count, oldest }) => ({ network, count: Number(count), oldest }))
}

interface RequestFilter {
  storeId: string
  requestId: string | undefined
  status: string | undefined
  /** Id of the last request of the previous page. */
  below: string | undefined
  limit: number
}

/** Calls for help at these alarms that are not closed: request ids by event id. */
export async function openCallsOf(
  db: Db,
  storeIds: readonly string[],
  eventIds: readonly string[],
): Promise<Map<string, string>> {
  if (storeIds.length === 0 || eventIds.length === 0) return new Map()
  const rows = await db
    .selectFrom('assistance_request')
    .select(['request_id', 'subject'])
    .where('store_id', 'in', [...storeIds])
    .where('subject', 'in', [...eventIds])
    .where('status', '<>', sql.lit('closed'))
    .execute()
  return new Map(rows.map(({ request_id, subject }) => [subject ?? '', request_id]))
}

/** Requests of a store, the newest first. */
export function listRequests(
  db: Db,
  { storeId, requestId, status, below, limit }: RequestFilter,
): Promise<Row<'assistance_request'>[]> {
  let query = db.selectFrom('assistance_request').selectAll().where('store_id', '=', storeId)
  if (status !== undefined) query = query.where('status', '=', status as Row<'assistance_request'>['status'])
  if (requestId !== undefined) query = query.where('request_id', '=', requestId)
  if (below !== undefined) query = query.where('request_id', '<', below)
  return query.orderBy('request_id', 'desc').limit(limit).execute()
}

/** Deletes these requests with their messages. */
export async function deleteRequests(db: Db, requestIds: readonly string[]): Promise<void> {
  if (requestIds.length === 0) return
  await db
    .deleteFrom('assistance_message')
    .where('request_id', 'in', [...requestIds])
    .execute()
  await db
    .deleteFrom('assistance_request')
    .where('request_id', 'in', [...requestIds])
    .execute()
}
