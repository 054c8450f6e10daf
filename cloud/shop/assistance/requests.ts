import { hash } from 'node:crypto'
import { sql } from 'kysely'
import { newId } from '../../../policy/ids.ts'
import type { Platform } from '../../../policy/platform.ts'
import { precondition } from '../../platform/foundation/failure.ts'
import { iso, definedFields } from '../../platform/operations/fields.ts'
import type { Db } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import {
  countOpen,
  deleteRequests,
  findRequestOfTicket,
  hashOfTicket,
  openByNetwork,
  MESSAGES_LIMIT,
  type AssistanceRequest,
  messagesOf,
} from './queries.ts'
import { type GoodsOfRequest, goodsOfRequests } from './goods.ts'
import { foldText } from '../../../policy/fold-text.ts'
import type { ProtectionEvent } from '../../../policy/protection-events.ts'
import { GATE_BEHAVIOUR } from '../../../policy/item-status.ts'
import type { ItemStatus } from '../../../policy/vocabulary.ts'
import { shownNames } from '../../platform/stores/make-store.ts'

/**
 * Maximum number of open requests per store and reason. Everyone who has scanned the code of a zone can send requests.
 * Each reason has its own limit, so that these requests do not displace requests for tags. If the list of shoppers is
 * full, the network with the most makes room, so that one visitor cannot refuse the others.
 */
const OPEN_LIMIT = 500
const REMOVED_AT_ONCE = 200

interface Scope {
  db: Db
  platform: Platform
  nowMs: number
}

/** Creates the secret in the address of a shopper's page: 128 random bits. */
export function newTicket({ random }: Pick<Platform, 'random'>): string {
  return Buffer.from(random.bytes(16)).toString('base64url')
}

/** What a shopper sends. `address`: client address, if a shopper's device sent it. */
interface ShopperRequest {
  readonly message?: string | undefined
  readonly userId?: string | undefined
  readonly address?: string | undefined
}

/**
 * Opens a request in a zone. If the ticket was used before, for example because a form is sent twice, returns the
 * request of that ticket. Throws 409 `too_many_requests_open`.
 */
export async function openRequest(
  { db, platform, nowMs }: Scope,
  zone: Row<'zone'>,
  ticket: string,
  { message, userId, address }: ShopperRequest,
): Promise<Row<'assistance_request'>> {
  const known = await findRequestOfTicket(db, ticket)
  if (known) return known
  const network = address === undefined ? null : hash('sha256', address, 'base64url')
  await makeRoom({ db, nowMs }, zone.store_id, network)
  const row: Row<'assistance_request'> = {
    request_id: newId('hlp', platform),
    tenant: zone.tenant,
    store_id: zone.store_id,
    zone_id: zone.zone_id,
    user_id: userId ?? null,
    reason: 'shopper',
    device_id: null,
    purchase_id: null,
    subject: null,
    requested_by: null,
    ticket_hash: hashOfTicket(ticket),
    status: 'open',
    message_count: 0,
    created_ms: nowMs,
    updated_ms: nowMs,
    network,
  }
  await db.insertInto('assistance_request').values(row).execute()
  return message === undefined ? row : addMessage({ db, nowMs }, row, 'shopper', message)
}

/**
 * If the store has the most open requests of shoppers, closes the oldest one of the network with the most. Throws 409 if
 * that is the network of the new request.
 */
async function makeRoom(scope: Omit<Scope, 'platform'>, storeId: string, network: string | null): Promise<void> {
  if ((await countOpen(scope.db, storeId, 'shopper')) < OPEN_LIMIT) return
  const shares = await openByNetwork(scope.db, storeId)
  const most = shares.reduce((largest, each) => (each.count > largest.count ? each : largest))
  if (most.count <= (shares.find((each) => each.network === network)?.count ?? 0)) throw tooManyOpen()
  await update(scope.db, { request_id: most.oldest }, { ...CLOSED, updated_ms: scope.nowMs })
}

/** A closed request does not keep the network. */
const CLOSED = { status: 'closed', network: null } as const

const tooManyOpen = () =>
  precondition('too_many_requests_open', `this store has ${OPEN_LIMIT} open requests of this kind: close some`)

async function checkOpenLimit(db: Db, storeId: string, reason: Row<'assistance_request'>['reason']): Promise<void> {
  if ((await countOpen(db, storeId, reason)) >= OPEN_LIMIT) throw tooManyOpen()
}

/** Adds a message. A shopper's message opens the request again; a message of staff answers it. */
export async function addMessage(
  { db, nowMs }: Omit<Scope, 'platform'>,
  request: Row<'assistance_request'>,
  author: Row<'assistance_message'>['author'],
  text: string,
): Promise<Row<'assistance_request'>> {
  checkNotClosed(request)
  if (request.message_count >= MESSAGES_LIMIT)
    throw precondition('too_many_messages', `a request can have at most ${MESSAGES_LIMIT} messages: open another one`)
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

/** Changes the status of a request. `closed` is final. */
export async function setStatus(
  { db, nowMs }: Omit<Scope, 'platform'>,
  request: Row<'assistance_request'>,
  status: Row<'assistance_request'>['status'],
): Promise<Row<'assistance_request'>> {
  if (request.status === status) return request
  checkNotClosed(request)
  return update(db, request, { ...(status === 'closed' ? CLOSED : { status }), updated_ms: nowMs })
}

function checkNotClosed(request: Row<'assistance_request'>): void {
  if (request.status === 'closed')
    throw precondition('request_closed', 'the request is closed: open another one', { allowedNext: [] })
}

function update(
  db: Db,
  { request_id }: Pick<Row<'assistance_request'>, 'request_id'>,
  change: Partial<Row<'assistance_request'>>,
): Promise<Row<'assistance_request'>> {
  return db
    .updateTable('assistance_request')
    .set(change)
    .where('request_id', '=', request_id)
    .returningAll()
    .executeTakeFirstOrThrow()
}

interface Denial {
  tenant: string
  storeId: string
  /** `exception_hold`: an item on hold is at a gate. */
  reason: 'manual_assistance_required' | 'exception_hold'
  deviceId: string | null
  purchaseId: string | null
  /** Tag or line that was denied; null if a whole purchase was denied. */
  item: string | null
}

/**
 * Opens a request for a tag that needs staff. If a request for this device and purchase is open, it names this tag of the
 * purchase instead of an earlier one. Does nothing if a request for this device and item is open.
 */
async function openRequestForDenial(scope: Scope, denial: Denial): Promise<void> {
  const { tenant, storeId, reason, deviceId, purchaseId, item } = denial
  const subject = [
    deviceId ?? '-',
    ...(purchaseId === null ? [item ?? '-'] : [purchaseId, ...(item === null ? [] : [item])]),
  ].join(' ')
  const open =
    purchaseId === null
      ? await findOpenRequest(scope.db, storeId, subject)
      : await findOpenOfPurchase(scope.db, storeId, deviceId, purchaseId)
  if (open && item !== null && open.subject !== subject) await update(scope.db, open, { subject })
  // Limits the requests that a gate can open. Further denials appear only in the event list.
  if (open || (await countOpen(scope.db, storeId, reason)) >= OPEN_LIMIT) return
  await openForSubject(scope, { tenant, storeId, deviceId, purchaseId, reason, subject, requestedBy: null })
}

/** A call of staff for colleagues at a gate that alarmed. */
interface AlarmCall {
  tenant: string
  storeId: string
  deviceId: string | null
  /** Event of the alarm. */
  eventId: string
  /** User or key that calls. */
  requestedBy: string
}

/**
 * Opens a request for help at an alarm. If one is open, returns it with `isNew: false`. Throws 409
 * `too_many_requests_open`.
 */
export async function openRequestForAlarm(
  scope: Scope,
  { eventId, ...call }: AlarmCall,
): Promise<{ row: Row<'assistance_request'>; isNew: boolean }> {
  const open = await findOpenRequest(scope.db, call.storeId, eventId)
  if (open) return { row: open, isNew: false }
  await checkOpenLimit(scope.db, call.storeId, 'alarm')
  const row = await openForSubject(scope, { ...call, purchaseId: null, reason: 'alarm', subject: eventId })
  return { row, isNew: true }
}

/** Closes the call to an alarm whose cause is recorded, so that no colleague runs for nothing. */
export async function closeRequestForAlarm(
  db: Db,
  { storeId, eventId, atMs }: { storeId: string; eventId: string; atMs: number },
): Promise<void> {
  await db
    .updateTable('assistance_request')
    .set({ status: 'closed', updated_ms: atMs })
    .where('store_id', '=', storeId)
    .where('subject', '=', eventId)
    .where('reason', '=', 'alarm')
    .where('status', '<>', sql.lit('closed'))
    .execute()
}

function findOpenRequest(db: Db, storeId: string, subject: string): Promise<Row<'assistance_request'> | undefined> {
  return db
    .selectFrom('assistance_request')
    .selectAll()
    .where('store_id', '=', storeId)
    .where('subject', '=', subject)
    .where('status', '<>', sql.lit('closed'))
    .executeTakeFirst()
}

function findOpenOfPurchase(
  db: Db,
  storeId: string,
  deviceId: string | null,
  purchaseId: string,
): Promise<Row<'assistance_request'> | undefined> {
  return db
    .selectFrom('assistance_request')
    .selectAll()
    .where('store_id', '=', storeId)
    .where('device_id', deviceId === null ? 'is' : '=', deviceId)
    .where('purchase_id', '=', purchaseId)
    .where('status', '<>', sql.lit('closed'))
    .executeTakeFirst()
}

async function openForSubject(
  { db, platform, nowMs }: Scope,
  about: Omit<AlarmCall, 'eventId' | 'requestedBy'> & {
    reason: Row<'assistance_request'>['reason']
    subject: string
    purchaseId: string | null
    requestedBy: string | null
  },
): Promise<Row<'assistance_request'>> {
  const row: Row<'assistance_request'> = {
    request_id: newId('hlp', platform),
    tenant: about.tenant,
    store_id: about.storeId,
    zone_id: null,
    user_id: null,
    reason: about.reason,
    device_id: about.deviceId,
    purchase_id: about.purchaseId,
    subject: about.subject,
    requested_by: about.requestedBy,
    ticket_hash: null,
    status: 'open',
    message_count: 0,
    created_ms: nowMs,
    updated_ms: nowMs,
    network: null,
  }
  await db.insertInto('assistance_request').values(row).execute()
  return row
}

/** Deletes up to 200 requests whose last message and status change are from before this time, ms. */
export async function pruneRequests(db: Db, beforeMs: number): Promise<void> {
  const old = await db
    .selectFrom('assistance_request')
    .select('request_id')
    .where('updated_ms', '<', beforeMs)
    .orderBy('updated_ms')
    .limit(REMOVED_AT_ONCE)
    .execute()
  await deleteRequests(
    db,
    old.map((row) => row.request_id),
  )
}

/** Names that a request shows instead of ids. */
interface RequestNames {
  readonly zone?: string | undefined
  readonly device?: string | undefined
  readonly requestedBy?: string | undefined
  readonly goods?: GoodsOfRequest | undefined
}

/** Converts a request to its API form. */
export function toRequest(
  row: Row<'assistance_request'>,
  names: RequestNames,
  messages: readonly Row<'assistance_message'>[],
): AssistanceRequest {
  return {
    requestId: row.request_id,
    storeId: row.store_id,
    reason: row.reason,
    status: row.status,
    ...definedFields({
      zoneId: row.zone_id,
      zoneName: names.zone ?? null,
      userId: row.user_id,
      deviceId: row.device_id,
      deviceName: names.device ?? null,
      purchaseId: row.purchase_id,
      eventId: row.reason === 'alarm' ? row.subject : null,
      requestedByName: names.requestedBy ?? null,
      tag: names.goods?.tag ?? null,
    }),
    ...(names.goods && names.goods.products.length > 0 && { products: [...names.goods.products] }),
    createdAt: iso(row.created_ms),
    updatedAt: iso(row.updated_ms),
    messages: messages.map(({ author, text, at_ms }) => ({ author, text, at: iso(at_ms) })),
  }
}

/** Maximum age of an event that opens a request, ms. After that time the shopper has left or got help. */
const RECENT_MS = 5 * 60_000

type TagEvent = Pick<ProtectionEvent, 'type' | 'storeId'> & {
  [
    K in
      | 'reason'
      | 'protectionAction'
      | 'itemStatus'
      | 'deviceId'
      | 'purchaseId'
      | 'itemLineId'
      | 'epc'
      | 'tagUid'
      | 'tagId'
  ]?: string | null | undefined
}

/** Opens an assistance request if a recent event means that a tag needs staff. */
export async function raiseForEvent(
  scope: Scope & { tenant: string },
  event: TagEvent,
  occurredMs: number,
): Promise<void> {
  const reason = isHeldAtGate(event)
    ? 'exception_hold'
    : isDeniedForStaff(event)
      ? 'manual_assistance_required'
      : undefined
  if (!reason) return
  if (Math.abs(scope.nowMs - occurredMs) > RECENT_MS) return
  await openRequestForDenial(scope, {
    tenant: scope.tenant,
    storeId: event.storeId,
    reason,
    deviceId: event.deviceId ?? null,
    purchaseId: event.purchaseId ?? null,
    item: event.epc ?? event.tagUid ?? (event.tagId ? foldText(event.tagId) : null) ?? event.itemLineId ?? null,
  })
}

/** False for a tag that leaves: it opens no barrier, so no shopper waits. The light of the gate calls staff. */
function isDeniedForStaff({ type, reason, protectionAction, epc, tagUid, tagId }: TagEvent): boolean {
  if (protectionAction === 'authorize_exit' && (epc ?? tagUid ?? tagId)) return false
  return type === 'protection.authorization.denied' && reason === 'manual_assistance_required'
}

/**
 * True if a gate alarmed for an item on hold, or the cloud denied its exit. The specification requires "alarm plus
 * staff notification" (itemStatus table).
 */
function isHeldAtGate({ type, reason, protectionAction, itemStatus }: TagEvent): boolean {
  if (!itemStatus || GATE_BEHAVIOUR[itemStatus as ItemStatus] !== 'alarm_and_staff') return false
  return type === 'protection.exception.raised'
    ? reason === 'gate_alarm'
    : type === 'protection.authorization.denied' && protectionAction === 'authorize_exit'
}

/**
 * Requests of one tenant in API form, with the names of zones, devices, users and goods, and with their messages, or the
 * `lastMessages` of each.
 */
export async function present(
  db: Db,
  rows: readonly Row<'assistance_request'>[],
  lastMessages?: number,
): Promise<AssistanceRequest[]> {
  const tenant = rows[0]?.tenant
  if (tenant === undefined) return []
  const messages = await messagesOf(
    db,
    rows.map((row) => row.request_id),
    lastMessages,
  )
  const zoneIds = [...new Set(rows.flatMap((row) => row.zone_id ?? []))]
  const zones =
    zoneIds.length === 0
      ? []
      : await db.selectFrom('zone').select(['zone_id', 'name']).where('zone_id', 'in', zoneIds).execute()
  const zoneNames = new Map(zones.map((zone) => [zone.zone_id, zone.name]))
  const { devices, staff } = await shownNames(db, tenant, {
    devices: rows.map((row) => row.device_id),
    staff: rows.map((row) => row.requested_by),
  })
  const goods = await goodsOfRequests(db, tenant, rows)
  return rows.map((row) => {
    const names = {
      zone: zoneNames.get(row.zone_id ?? ''),
      device: devices.get(row.device_id ?? ''),
      requestedBy: staff.get(row.requested_by ?? ''),
    }
    return toRequest(row, { ...names, goods: goods.get(row.request_id) }, messages.get(row.request_id) ?? [])
  })
}
