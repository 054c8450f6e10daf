import { z } from 'zod'
import { newId } from '../../../policy/ids.ts'
import { originOf } from '../../platform/foundation/config.ts'
import { knownCaller, rolesFrom } from '../../platform/foundation/caller.ts'
import { invalid, notFound, precondition } from '../../platform/foundation/failure.ts'
import { Id, iso, Limit, Success, text } from '../../platform/operations/fields.ts'
import { operation, type Call } from '../../platform/operations/operation.ts'
import { cursorField, toPage } from '../../platform/operations/paging.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { qrPng } from '../../platform/foundation/qr-code.ts'
import { ownStore, ownStoreOf } from '../../platform/stores/own-store.ts'
import { present, addMessage, newTicket, openRequest, setStatus } from './requests.ts'
import {
  findRequest,
  findZone,
  listRequests,
  listZones,
  AssistanceRequest,
  Message,
  MESSAGES_LIMIT,
  REQUEST_STATUSES,
  Zone,
} from './queries.ts'

const ZONES_LIMIT = 500
const DEFAULT_PAGE = 50
/** Maximum page size. The maximum is low, because each assistance request in a page may contain fifty messages. */
const PAGE_LIMIT = 100

/** Address in the QR code of a zone. */
function zoneAddress({ services }: Pick<Call, 'services'>, zoneId: string): string {
  return `${originOf(services.config)}/z/${zoneId}`
}

export const createZone = operation({
  name: 'createZone',
  area: 'assistance',
  minimumPackage: 'ASSIST',
  roles: rolesFrom('manager'),
  summary: 'Creates a zone of a store with a QR code to display there.',
  description:
    'The QR code opens a page on which shoppers ask for help and exchange messages with staff, in German or ' +
    'English.',
  refusals: ['too_many_zones'],
  changes: true,
  request: z.strictObject({ storeId: Id, name: text(80).describe('Such as “Herren, 1. Stock”. Shown to shoppers.') }),
  response: z.strictObject({
    ...Success,
    zoneId: z.string(),
    url: z.string(),
    imageBase64: z.string().describe('PNG.'),
  }),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B', name: 'Herren, 1. Stock' },
  async run(call, { storeId, name }) {
    const store = await ownStore(call, storeId)
    if ((await listZones(call.db, store.store_id, ZONES_LIMIT)).length >= ZONES_LIMIT)
      throw precondition('too_many_zones', `a store can have at most ${ZONES_LIMIT} zones`)
    const zone: Row<'zone'> = {
      zone_id: newId('zon', call.services.platform),
      tenant: store.tenant,
      store_id: store.store_id,
      name,
      created_ms: call.nowMs,
    }
    await call.db.insertInto('zone').values(zone).execute()
    call.changed(zone.zone_id)
    const url = zoneAddress(call, zone.zone_id)
    return { success: true as const, zoneId: zone.zone_id, url, imageBase64: qrPng(url).toString('base64') }
  },
})

export const fetchZones = operation({
  name: 'fetchZones',
  area: 'assistance',
  minimumPackage: 'ASSIST',
  roles: rolesFrom('viewer'),
  summary: 'Lists the zones of a store.',
  changes: false,
  request: z.strictObject({ storeId: Id }),
  response: z.strictObject({ ...Success, zones: z.array(Zone) }),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B' },
  async run(call, { storeId }) {
    const store = await ownStore(call, storeId)
    const rows = await listZones(call.db, store.store_id, ZONES_LIMIT)
    return {
      success: true as const,
      zones: rows.map((row) => ({
        zoneId: row.zone_id,
        name: row.name,
        url: zoneAddress(call, row.zone_id),
        createdAt: iso(row.created_ms),
      })),
    }
  },
})

/**
 * Finds a zone of the caller. Throws 404 if the zone is unknown or the caller may not see its store. Throws 403 if the
 * package of the store is too low.
 */
export async function zoneOfCaller(call: Call, zoneId: string): Promise<Row<'zone'>> {
  const zone = await findZone(call.db, zoneId)
  if (zone?.tenant !== knownCaller(call.caller).tenant) throw notFound('zone')
  await ownStoreOf(call, zone.store_id, 'zone')
  return zone
}

export const requestAssistance = operation({
  name: 'requestAssistance',
  area: 'assistance',
  minimumPackage: 'ASSIST',
  roles: rolesFrom('associate'),
  summary: 'Requests help in a zone.',
  description: '`url` is the page of this conversation: everyone who has the address can read and write there.',
  callers: ['secret', 'publishable'],
  refusals: ['too_many_requests_open'],
  changes: true,
  audited: false,
  secretResponse: true,
  request: z.strictObject({ zoneId: Id, message: Message.optional(), userId: text(128).optional() }),
  response: z.strictObject({ ...Success, requestId: z.string(), url: z.string() }),
  example: { zoneId: 'zon_01KANX6Y7C3V9Q2M8R5T4W6Z1B', message: 'Gibt es das Hemd in L?' },
  async run(call, { zoneId, message, userId }) {
    const zone = await zoneOfCaller(call, zoneId)
    const { platform } = call.services
    const ticket = newTicket(platform)
    const address = call.caller.kind === 'publishable' ? call.caller.address : undefined
    const sent = { message, userId, address }
    const request = await openRequest({ db: call.db, nowMs: call.nowMs, platform }, zone, ticket, sent)
    return {
      success: true as const,
      requestId: request.request_id,
      url: `${zoneAddress(call, zone.zone_id)}/${ticket}`,
    }
  },
})

export const fetchAssistanceRequests = operation({
  name: 'fetchAssistanceRequests',
  area: 'assistance',
  minimumPackage: 'ASSIST',
  roles: rolesFrom('viewer'),
  summary: 'Lists requests for help in a store with their messages, the newest first.',
  description:
    'Includes requests that a security tag caused, and calls of staff to an alarm; see `reason`. Requests are ' +
    'deleted 30 days after the last message.',
  changes: false,
  request: z.strictObject({
    storeId: Id,
    requestId: Id.optional().describe('Only this request.'),
    status: z.enum(REQUEST_STATUSES).optional(),
    lastMessages: z.int().min(1).max(MESSAGES_LIMIT).optional().describe('Only the last messages of each request.'),
    limit: Limit.optional().describe(`A page contains at most ${PAGE_LIMIT}; use the cursor for more.`),
    cursor: cursorField('hlp').optional(),
  }),
  response: z.strictObject({ ...Success, requests: z.array(AssistanceRequest), nextCursor: z.string().optional() }),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B', status: 'open' },
  async run(call, { storeId, requestId, status, lastMessages, cursor, ...paging }) {
    const limit = Math.min(paging.limit ?? DEFAULT_PAGE, PAGE_LIMIT)
    const store = await ownStore(call, storeId)
    const rows = await listRequests(call.db, {
      storeId: store.store_id,
      requestId,
      status,
      below: cursor,
      limit: limit + 1,
    })
    const { items, nextCursor } = toPage(rows, (row) => row.request_id, { limit })
    return {
      success: true as const,
      requests: await present(call.db, items, lastMessages),
      ...(nextCursor !== undefined && { nextCursor }),
    }
  },
})

export const answerAssistanceRequest = operation({
  name: 'answerAssistanceRequest',
  area: 'assistance',
  minimumPackage: 'ASSIST',
  roles: rolesFrom('associate'),
  summary: 'Answers a request for help or changes its status.',
  description:
    'With a message the request becomes `answered`, unless you send a `status`. The shopper’s next message opens ' +
    'it again. `closed` is final.',
  refusals: ['request_closed', 'too_many_messages'],
  changes: true,
  request: z.strictObject({ requestId: Id, message: Message.optional(), status: z.enum(REQUEST_STATUSES).optional() }),
  response: AssistanceRequest.extend(Success),
  example: { requestId: 'hlp_01KANX6Y7C3V9Q2M8R5T4W6Z1B', message: 'Ich bin gleich bei Ihnen.' },
  async run(call, { requestId, message, status }) {
    if (message === undefined && status === undefined)
      throw invalid('message', 'is required: send message or status', 'missing')
    let request = await findRequest(call.db, knownCaller(call.caller).tenant, requestId)
    if (!request) throw notFound('request')
    await ownStoreOf(call, request.store_id, 'request')
    if (message !== undefined) request = await addMessage(call, request, 'staff', message)
    if (status !== undefined) request = await setStatus(call, request, status)
    call.changed(requestId)
    const [shown] = await present(call.db, [request])
    return { success: true as const, ...(shown as AssistanceRequest) }
  },
})
