import type { Context, Hono } from 'hono'
import { isIdShaped, newId } from '../../policy/ids.ts'
import { ownZone, requestAssistance } from '../assistance/operations.ts'
import { findRequestOfTicket, findZone, messagesOf } from '../assistance/queries.ts'
import { addMessage, newTicket, openRequest, toRequest } from '../assistance/requests.ts'
import { Message } from '../assistance/schema.ts'
import type { KeyCaller, Mode, Tenant } from '../foundation/caller.ts'
import { Failure } from '../foundation/failure.ts'
import type { Call, Services } from '../operations/operation.ts'
import { performTask } from '../operations/perform.ts'
import type { Database } from '../persistence/database.ts'
import type { AssistanceRequestRow, ZoneRow } from '../persistence/tables/assistance.ts'
import { isTest } from '../purchases/present.ts'
import { findStore } from '../stores/queries.ts'
import { ConversationPage, NoZonePage, ZonePage, type ZoneView } from './assistance-page.tsx'
import { readBytes } from './body.ts'
import { clientAddress } from './client-address.ts'
import { rateLimiter } from './rate-limit.ts'
import type { Readers } from './readers.ts'

const FORM_LIMIT = 8 * 1024
/** A whole shop may be behind one address: reading is cheap, a request calls somebody. */
const READING = { perSecond: 10, burst: 30 }
const ASKING = { perSecond: 0.5, burst: 20 }

const STATUS = { unknown: 404, tooFast: 429, tooLong: 400, busy: 503, full: 409, closed: 409 } as const
const WHY: Record<string, keyof typeof STATUS> = {
  too_many_requests_open: 'busy',
  too_many_messages: 'full',
  request_closed: 'closed',
}

/** What the pages of a zone share, whoever reads them. */
type View = Omit<ZoneView, 'path' | 'reader'>

/** The pages behind the QR codes of zones: whoever stands there may ask; whoever has a conversation's address may go on with it. */
export function assistanceRoutes(app: Hono, database: Database, services: Services, readers: Readers): void {
  const { config, platform } = services
  const limiter = rateLimiter(platform.clock)

  app.get('/z/:zoneId', (c) =>
    answer(c, READING, async () => {
      const { zone, view } = await viewOf(c)
      return readers.show(c, (reader) =>
        ZonePage({ view: { ...view, reader, path: `/z/${zone.zone_id}` }, ticket: newTicket(platform) }),
      )
    }),
  )

  app.post('/z/:zoneId', (c) =>
    answer(c, ASKING, async () => {
      const { zone } = await viewOf(c)
      const form = await readForm(c)
      const ticket = /^[A-Za-z0-9_-]{22}$/.exec(form.get('ticket') ?? '')?.[0] ?? newTicket(platform)
      const message = said(form)
      await task(zone, (call) => openRequest({ db: call.db, nowMs: call.nowMs, platform }, zone, ticket, { message }))
      return c.redirect(`/z/${zone.zone_id}/${ticket}`, 303)
    }),
  )

  app.get('/z/:zoneId/:ticket', (c) =>
    answer(c, READING, async () => {
      const { zone, view, request } = await conversationOf(c)
      const shown = toRequest(
        request,
        zone.name,
        (await messagesOf(database.reads, [request.request_id])).get(request.request_id) ?? [],
      )
      return readers.show(c, (reader) =>
        ConversationPage({
          view: { ...view, reader, path: `/z/${zone.zone_id}/${c.req.param('ticket')}` },
          request: shown,
          zonePath: `/z/${zone.zone_id}`,
        }),
      )
    }),
  )

  app.post('/z/:zoneId/:ticket', (c) =>
    answer(c, ASKING, async () => {
      const { zone, request } = await conversationOf(c)
      const message = said(await readForm(c))
      if (message !== undefined) {
        await task(zone, async (call) => {
          const current = await findRequestOfTicket(call.db, c.req.param('ticket'))
          if (current?.request_id === request.request_id) await addMessage(call, current, 'shopper', message)
        })
      }
      return c.redirect(`/z/${zone.zone_id}/${c.req.param('ticket')}`, 303)
    }),
  )

  /** Limits by address, and puts refusals into words. */
  async function answer(c: Context, allowance: typeof READING, make: () => Promise<Response>): Promise<Response> {
    const bucket = `${allowance === ASKING ? 'ask' : 'read'} ${clientAddress(c, config.trustedProxies)}`
    if (config.rateLimit !== 0 && !limiter.take(bucket, allowance).allowed) return refuse(c, 'tooFast')
    try {
      return await make()
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      if (error.code === 'invalid-argument' || error.code === 'payload-too-large') return refuse(c, 'tooLong')
      return refuse(c, WHY[error.extras.reason ?? ''] ?? 'unknown')
    }
  }

  function refuse(c: Context, text: keyof typeof STATUS): Response | Promise<Response> {
    const back = text === 'unknown' ? undefined : c.req.path
    return readers.show(c, (reader) => NoZonePage({ reader, text, back }), STATUS[text])
  }

  async function viewOf(c: Context): Promise<{ zone: ZoneRow; view: View }> {
    const zoneId = c.req.param('zoneId') ?? ''
    const known = isIdShaped(zoneId) ? await findZone(database.reads, zoneId) : undefined
    const store = known && (await findStore(database.reads, known.store_id))
    if (!known || !store) throw new Failure('not-found', 'no such zone')
    // A store whose package has no zones any more has none here either.
    const call = {
      db: database.reads,
      services,
      caller: pageCaller(known.tenant as Tenant),
      operation: requestAssistance,
    } as unknown as Call
    const zone = await ownZone(call, zoneId)
    return {
      zone,
      view: { sandbox: isTest(zone.tenant), storeName: store.trading_name, zoneName: zone.name },
    }
  }

  async function conversationOf(c: Context): Promise<{ zone: ZoneRow; view: View; request: AssistanceRequestRow }> {
    const { zone, view } = await viewOf(c)
    const request = await findRequestOfTicket(database.reads, (c.req.param('ticket') ?? '').slice(0, 64))
    if (request?.zone_id !== zone.zone_id) throw new Failure('not-found', 'no such request')
    return { zone, view, request }
  }

  async function task(zone: ZoneRow, work: (call: Call) => Promise<unknown>): Promise<void> {
    const who = {
      operation: requestAssistance,
      caller: pageCaller(zone.tenant as Tenant),
      requestId: newId('req', platform),
    }
    await performTask(who, database, services, async (call) => void (await work(call)))
  }
}

async function readForm(c: Context): Promise<URLSearchParams> {
  return new URLSearchParams(new TextDecoder().decode(await readBytes(c, FORM_LIMIT)))
}

/** What stands in the form; nothing, when it is blank. Throws 400 when it is too long. */
function said(form: URLSearchParams): string | undefined {
  const text = (form.get('message') ?? '').replaceAll('\r\n', '\n').trim()
  if (text === '') return undefined
  const parsed = Message.safeParse(text)
  if (!parsed.success) throw new Failure('invalid-argument', 'the message is too long')
  return parsed.data
}

/** Who acts when a shopper asks: nobody with a key, within the zone's own tenant. */
function pageCaller(tenant: Tenant): KeyCaller {
  const [accountId = '', mode] = tenant.split('.')
  return {
    kind: 'publishable',
    keyId: 'zone-page',
    accountId,
    mode: mode as Mode,
    tenant,
    storeIds: null,
    package: 'PRIME',
    expiresMs: null,
  }
}
