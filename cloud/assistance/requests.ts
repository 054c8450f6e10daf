import { sql } from 'kysely'
import { newId } from '../../policy/ids.ts'
import type { Platform } from '../../policy/platform.ts'
import { precondition } from '../foundation/failure.ts'
import { iso, definedFields } from '../operations/fields.ts'
import type { Db } from '../persistence/database.ts'
import type { AssistanceMessageRow, AssistanceRequestRow, ZoneRow } from '../persistence/tables/assistance.ts'
import { countOpen, deleteRequests, findRequestOfTicket, hashOfTicket } from './queries.ts'
import { MESSAGES_LIMIT, type AssistanceRequest } from './schema.ts'

/**
 * Requests of one store for one reason that wait at once: nobody could answer more. What shoppers ask anybody may ask who has seen a
 * zone's code: it must not take the room of goods that wait for staff.
 */
const OPEN_LIMIT = 500
/** Requests are removed this long after the last word, ms: what shoppers say is nobody's archive. */
const RETENTION_MS = 30 * 86_400_000
const REMOVED_AT_ONCE = 200

export interface Scope {
  db: Db
  platform: Platform
  nowMs: number
}

/** The secret in the address of a shopper's page: 128 random bits. */
export function newTicket({ random }: Pick<Platform, 'random'>): string {
  return Buffer.from(random.bytes(16)).toString('base64url')
}

/** Opens a request in a zone. The same ticket again, as when a form is sent twice, is the same request. */
export async function openRequest(
  { db, platform, nowMs }: Scope,
  zone: ZoneRow,
  ticket: string,
  content: { message?: string | undefined; userId?: string | undefined },
): Promise<AssistanceRequestRow> {
  const known = await findRequestOfTicket(db, ticket)
  if (known) return known
  await checkOpenLimit(db, zone.store_id)
  const row: AssistanceRequestRow = {
    request_id: newId('hlp', platform),
    tenant: zone.tenant,
    store_id: zone.store_id,
    zone_id: zone.zone_id,
    user_id: content.userId ?? null,
    reason: 'shopper',
    device_id: null,
    purchase_id: null,
    subject: null,
    ticket_hash: hashOfTicket(ticket),
    status: 'open',
    message_count: 0,
    created_ms: nowMs,
    updated_ms: nowMs,
  }
  await db.insertInto('assistance_request').values(row).execute()
  return content.message === undefined ? row : addMessage({ db, nowMs }, row, 'shopper', content.message)
}

async function checkOpenLimit(db: Db, storeId: string): Promise<void> {
  if ((await countOpen(db, storeId, 'shopper')) >= OPEN_LIMIT)
    throw precondition(
      'too_many_requests_open',
      `${OPEN_LIMIT} shoppers’ requests of this store wait already: close some`,
    )
}

/** Adds what somebody says. The shopper's word opens the request again, the staff's answers it. */
export async function addMessage(
  { db, nowMs }: Omit<Scope, 'platform'>,
  request: AssistanceRequestRow,
  author: AssistanceMessageRow['author'],
  text: string,
): Promise<AssistanceRequestRow> {
  checkNotClosed(request)
  if (request.message_count >= MESSAGES_LIMIT)
    throw precondition('too_many_messages', `a request holds ${MESSAGES_LIMIT} messages at most: open another`)
  const number = request.message_count + 1
  await db
    .insertInto('assistance_message')
    .values({ request_id: request.request_id, number, author, text, at_ms: nowMs })
    .execute()
  return update(db, request, {
    status: author === 'staff' ? 'answered' : 'open',
    message_count: number,
    updated_ms: nowMs,
  })
}

/** Moves a request on. */
export async function setStatus(
  { db, nowMs }: Omit<Scope, 'platform'>,
  request: AssistanceRequestRow,
  status: AssistanceRequestRow['status'],
): Promise<AssistanceRequestRow> {
  if (request.status === status) return request
  checkNotClosed(request)
  return update(db, request, { status, updated_ms: nowMs })
}

function checkNotClosed(request: AssistanceRequestRow): void {
  if (request.status === 'closed')
    throw precondition('request_closed', 'the request is closed: open another', { allowedNext: [] })
}

function update(
  db: Db,
  { request_id }: AssistanceRequestRow,
  change: Partial<AssistanceRequestRow>,
): Promise<AssistanceRequestRow> {
  return db
    .updateTable('assistance_request')
    .set(change)
    .where('request_id', '=', request_id)
    .returningAll()
    .executeTakeFirstOrThrow()
}

export interface Denial {
  tenant: string
  storeId: string
  deviceId: string | null
  purchaseId: string | null
  /** What was to be opened, where it is no whole purchase. */
  item: string | null
}

/** A tag needs staff: asks for them, unless that is so already for this device and purchase or item. */
export async function openRequestForDenial({ db, platform, nowMs }: Scope, denial: Denial): Promise<void> {
  const subject = `${denial.deviceId ?? '-'} ${denial.purchaseId ?? denial.item ?? '-'}`
  const open = await db
    .selectFrom('assistance_request')
    .select('request_id')
    .where('store_id', '=', denial.storeId)
    .where('subject', '=', subject)
    .where('status', '<>', sql.lit('closed'))
    .executeTakeFirst()
  // A gate must not fill the list; what it denies stands among the events all the same.
  if (open || (await countOpen(db, denial.storeId, 'manual_assistance_required')) >= OPEN_LIMIT) return
  await db
    .insertInto('assistance_request')
    .values({
      request_id: newId('hlp', platform),
      tenant: denial.tenant,
      store_id: denial.storeId,
      zone_id: null,
      user_id: null,
      reason: 'manual_assistance_required',
      device_id: denial.deviceId,
      purchase_id: denial.purchaseId,
      subject,
      ticket_hash: null,
      status: 'open',
      message_count: 0,
      created_ms: nowMs,
      updated_ms: nowMs,
    })
    .execute()
}

/** Removes what nobody has said anything in for a month; safe to run twice. */
export async function pruneRequests(db: Db, nowMs: number): Promise<void> {
  const old = await db
    .selectFrom('assistance_request')
    .select('request_id')
    .where('updated_ms', '<', nowMs - RETENTION_MS)
    .orderBy('updated_ms')
    .limit(REMOVED_AT_ONCE)
    .execute()
  await deleteRequests(
    db,
    old.map((row) => row.request_id),
  )
}

/** A request as the API shows it. */
export function toRequest(
  row: AssistanceRequestRow,
  zoneName: string | undefined,
  messages: readonly AssistanceMessageRow[],
): AssistanceRequest {
  return {
    requestId: row.request_id,
    storeId: row.store_id,
    reason: row.reason,
    status: row.status,
    ...definedFields({
      zoneId: row.zone_id,
      userId: row.user_id,
      deviceId: row.device_id,
      purchaseId: row.purchase_id,
    }),
    ...(zoneName !== undefined && { zoneName }),
    createdAt: iso(row.created_ms),
    updatedAt: iso(row.updated_ms),
    messages: messages.map(({ author, text, at_ms }) => ({ author, text, at: iso(at_ms) })),
  }
}
