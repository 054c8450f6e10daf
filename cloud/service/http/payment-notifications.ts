import type { Context, Hono } from 'hono'
import { isIdShaped } from '../../../policy/ids.ts'
import { Failure } from '../../platform/foundation/failure.ts'
import type { Services } from '../../platform/operations/operation.ts'
import { deliverNotice, ourId } from '../../sales/payments/apply-notice.ts'
import { connectionOf } from '../../sales/payments/connection.ts'
import { ProviderFault, type Notice } from '../../sales/payments/provider.ts'
import { providerNamed } from '../../sales/payments/providers.ts'
import {
  configsOf,
  findPaymentOfMovement,
  findPaymentOfNotice,
  findRefundOfNotice,
} from '../../sales/payments/queries.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import type { Database } from '../../platform/persistence/database.ts'
import { announcedSize, assertAnnounced, readBytes } from './body.ts'
import { JSON_HEADERS } from './public-access.ts'

/** Maximum size of a notification, bytes. Real notifications are far smaller. */
const BODY_LIMIT = 256 * 1024

/** Maximum notifications of an account that wait for each other. */
const WAITING_LIMIT = 50

/** Makes a queue for each account: one piece of work at a time. 'full' above `WAITING_LIMIT`. */
function queues(): <T>(tenant: string, work: () => Promise<T>) => Promise<T | 'full'> {
  const known = new Map<string, { waiting: number; last: Promise<unknown> }>()
  return async (tenant, work) => {
    const queue = known.get(tenant) ?? { waiting: 0, last: Promise.resolve() }
    if (queue.waiting >= WAITING_LIMIT) return 'full'
    known.set(tenant, queue)
    queue.waiting++
    const own = queue.last.then(work)
    queue.last = own.catch(() => undefined)
    return own.finally(() => {
      if (--queue.waiting === 0) known.delete(tenant)
    })
  }
}

/** Applies the notices of a notification. True if one of them must be sent again. */
async function deliverAll(
  database: Database,
  services: Services,
  config: Row<'psp_config'>,
  notices: readonly Notice[],
): Promise<boolean> {
  let isLater = false
  for (const notice of notices) {
    // A notification may have thousands of notices: other requests come in between.
    await new Promise((resolve) => setImmediate(resolve))
    if ((await deliverNotice(database, services, config, notice)) === 'later') isLater = true
  }
  return isLater
}

/** Rate limit and error responses of public routes. */
interface PublicRouteChecks {
  isTooFast(c: Context): boolean
  refuse(c: Context, failure: Failure): Response
  /** `TakeRoom` of the sender's address. */
  takeRoom(c: Context, bytes: number): () => void
}

/**
 * Route for notifications of payment providers: `{base_url}/notify/{provider}/{storeId}` (ADR sales). An unsigned
 * notification gets 400 and changes nothing. A signed notification gets 200, even if it changes nothing. If the cloud
 * cannot store the result, it responds with 5xx, so that the provider sends the notification again.
 */
export function notificationRoutes(
  app: Hono,
  base: string,
  database: Database,
  services: Services,
  { isTooFast, refuse, takeRoom }: PublicRouteChecks,
): void {
  const inTurn = queues()
  app.post(`${base}/notify/:provider/:storeId`, async (c) => {
    if (isTooFast(c)) return refuse(c, new Failure('resource-exhausted', 'too many notifications', { retryAfter: 1 }))
    const body = await readBody(c)
    if (body instanceof Failure) return refuse(c, body)
    const genuine = await verify(c, body.configs, body.text).catch(unknownIfSilent)
    if (genuine === 'unknown')
      return refuse(c, new Failure('unavailable', 'the provider does not answer; send it again', { retryAfter: 60 }))
    if (!genuine) return refuse(c, notGenuine())
    const isLater = await inTurn(genuine.config.tenant, () =>
      deliverAll(database, services, genuine.config, genuine.notices),
    )
    if (isLater === 'full')
      return refuse(c, new Failure('unavailable', 'too many notifications of this account wait', { retryAfter: 60 }))
    if (isLater)
      return refuse(c, new Failure('unavailable', 'a refund is being sent; send it again', { retryAfter: 60 }))
    const acknowledgement = providerNamed(genuine.config.provider)?.acknowledgement
    return acknowledgement === undefined ? c.json({ received: true }, 200, JSON_HEADERS) : c.text(acknowledgement)
  })

  /** Reads the body after the settings that may have signed it, because outsiders may name any store. */
  async function readBody(c: Context): Promise<{ configs: readonly Row<'psp_config'>[]; text: string } | Failure> {
    const { storeId = '', provider = '' } = c.req.param() as Record<string, string>
    try {
      assertAnnounced(c, BODY_LIMIT)
      const isNamed = isIdShaped(storeId) && providerNamed(provider)
      const configs = isNamed ? await configsOf(database.reads, storeId, provider) : []
      if (configs.length === 0) return notGenuine()
      const release = takeRoom(c, announcedSize(c, BODY_LIMIT))
      const bytes = await readBytes(c, BODY_LIMIT).finally(release)
      return { configs, text: Buffer.from(bytes).toString('utf8') }
    } catch (error) {
      if (error instanceof Failure) return error
      throw error
    }
  }

  /**
   * Finds the current or replaced settings whose secret signed the notification. If several settings match, prefers
   * those with the payment or refund of the notification.
   */
  async function verify(
    c: Context,
    configs: readonly Row<'psp_config'>[],
    body: string,
  ): Promise<{ config: Row<'psp_config'>; notices: readonly Notice[] } | undefined> {
    const notification = { header: (name: string) => c.req.header(name), body, nowMs: services.platform.clock.wall() }
    let withoutPayment: { config: Row<'psp_config'>; notices: readonly Notice[] } | undefined
    for (const config of configs) {
      const isOurs = async (sessionId: string, paymentId: string | null = null) =>
        (await findPaymentOfNotice(database.reads, config.config_id, { sessionId, paymentId: ourId(paymentId) })) !==
        undefined
      const isOurRefund = async (refundRef: string, refundId: string | null) =>
        (await findRefundOfNotice(database.reads, config.config_id, { refundRef, refundId: ourId(refundId) })) !==
        undefined
      const isOurCharge = async (chargeId: string) =>
        (await findPaymentOfMovement(database.reads, config.config_id, {
          chargeId,
          sessionId: null,
          paymentId: null,
        })) !== undefined
      const asked = { ...notification, isOurs, isOurRefund, isOurCharge }
      const notices = await connectionOf(config, services).readNotification(asked)
      if (notices && notices.length > 0) return { config, notices }
      if (notices) withoutPayment ??= { config, notices }
    }
    return withoutPayment
  }
}

const notGenuine = () =>
  new Failure(
    'invalid-argument',
    'the signature of the notification does not match the settings of this store’s provider',
  )

/** Returns `unknown` if the provider did not respond when the cloud checked its notification. Rethrows other errors. */
function unknownIfSilent(error: unknown): 'unknown' {
  if (error instanceof ProviderFault) return 'unknown'
  throw error
}
