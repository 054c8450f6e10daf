import type { Context, Hono } from 'hono'
import { isIdShaped, newId } from '../../../policy/ids.ts'
import { systemCaller, type Tenant } from '../../platform/foundation/caller.ts'
import { Failure } from '../../platform/foundation/failure.ts'
import type { Call, Services } from '../../platform/operations/operation.ts'
import { performTask } from '../../platform/operations/perform.ts'
import type { Database } from '../../platform/persistence/database.ts'
import { wholePurchase, findPurchaseOfCheckout } from '../../shop/purchases/queries.ts'
import {
  endTestCheckout,
  completeTestCheckout,
  TEST_RESULTS,
  type TestResult,
} from '../../sales/checkout/operations.ts'
import { isTest, toTransactionData } from '../../shop/purchases/present.ts'
import { checkOnReturn } from '../../sales/payments/due-payments.ts'
import { hasSoldItem } from '../../sales/checkout/book-refund.ts'
import { openPaymentOf } from '../../sales/payments/queries.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { readBytes } from './body.ts'
import {
  ConnectionLost,
  ConnectionScript,
  LIVE_PAGE_HEADERS,
  type PageRenderer,
  Page,
  type PageContext,
} from './page.tsx'
import type { TransactionData } from '../../shop/purchases/schema.ts'
import type { Texts } from '../../platform/texts/texts.ts'
import { TagHint } from './receipts.tsx'
import { areGatesUpToDate } from '../../protection/receipt-home/home-move.ts'
import { pause } from '../../../policy/platform.ts'

/** Advice to a shopper who has paid; undefined: no advice. */
type ExitAdvice = 'leave' | 'show_receipt' | undefined

/** Maximum wait for the gates, and interval between checks, ms (ADR gates). */
const WAIT_MS = 2_000
const STEP_MS = 200
/** Maximum age of a payment for which the page waits, ms. If a gate lacks an older payment, the gate may be offline. */
const FRESH_MS = 60_000

/** Checks whether the store's gates have received the paid status. Waits up to 2 s after a recent payment. */
async function exitAdvice(database: Database, { platform }: Services, purchase: Row<'purchase'>): Promise<ExitAdvice> {
  if (purchase.status !== 'SUCCESS' || purchase.completed_ms === null) return undefined
  const isFresh = platform.clock.wall() - purchase.completed_ms < FRESH_MS
  for (let waited = 0; ; waited += STEP_MS) {
    const known = await areGatesUpToDate(database.reads, purchase)
    if (known === undefined) return undefined
    if (known) return 'leave'
    if (!isFresh || waited >= WAIT_MS) return 'show_receipt'
    await pause(platform.timers, STEP_MS)
  }
}

/** End of a checkout page: advice for the exit, and the receipt. */
function CheckoutEnd({ purchase, way, texts }: { purchase: TransactionData; way: ExitAdvice; texts: Texts }) {
  const t = texts.checkout
  const isPaid = purchase.status === 'SUCCESS' || purchase.status === 'UNLOADED'
  return (
    <>
      {way ? (
        <p>
          <strong>{t.wayOut[way]}</strong>
        </p>
      ) : null}
      {isPaid && purchase.receiptUrl ? (
        <>
          {purchase.receiptQrCode ? <img class="code" src={purchase.receiptQrCode} alt={texts.receipt.qr} /> : null}
          <TagHint texts={texts} purchase={purchase} />
          <p>
            <a href={new URL(purchase.receiptUrl).pathname}>{t.receipt}</a>
          </p>
        </>
      ) : null}
    </>
  )
}

/** The test checkout of the sandbox, without a payment provider. */
function CheckoutPage({
  purchase,
  action,
  isSold,
  way,
  reader,
}: {
  purchase: TransactionData
  action: string
  isSold: boolean
  way: ExitAdvice
  reader: PageContext
}) {
  const { texts, formats } = reader
  const t = texts.checkout
  const isOpen = purchase.status === 'PENDING_PAYMENT' || purchase.status === 'CREATED'
  const isAwaited = isOpen && purchase.status === 'CREATED'
  const isPaid = purchase.status === 'SUCCESS' || purchase.status === 'UNLOADED'
  return (
    <Page title={t.testTitle} reader={reader} sandbox head={<ConnectionScript />}>
      <ConnectionLost texts={texts} notSent={t.notSent} />
      <h1>{isOpen ? `${t.pay}: ${formats.money(purchase.totalCent)}` : isPaid ? t.paid : t.cancelled}</h1>
      <p class="soft">
        {purchase.storeData.name} · {t.pieces(piecesOf(purchase))} · {t.noMoney}
      </p>
      {isSold ? <p>{t.soldMeanwhile}</p> : isAwaited ? <p>{t.staffCheck}</p> : null}
      {isOpen ? (
        <form class="row" method="post" action={action} data-guarded>
          {isAwaited || isSold ? null : (
            <button class="main" name="result" value="paid">
              {t.pay}
            </button>
          )}
          <button name="result" value="declined">
            {t.decline}
          </button>
          <button name="result" value="cancelled">
            {t.cancel}
          </button>
        </form>
      ) : null}
      <CheckoutEnd purchase={purchase} way={way} texts={texts} />
    </Page>
  )
}

/** Page on which a shopper waits before the payment, and to which the provider sends the shopper back. */
export function PaymentPage({
  purchase,
  isAwaited,
  isSold,
  way,
  reader,
}: {
  purchase: TransactionData
  isAwaited: boolean
  isSold: boolean
  way: ExitAdvice
  reader: PageContext
}) {
  const { texts, formats } = reader
  const t = texts.checkout
  const isPaid = purchase.status === 'SUCCESS' || purchase.status === 'UNLOADED'
  const isOver = purchase.status === 'CANCELLED'
  return (
    <Page title={t.title} reader={reader}>
      <h1>{isPaid ? t.paid : isOver ? t.cancelled : `${t.pay}: ${formats.money(purchase.totalCent)}`}</h1>
      <p class="soft">
        {purchase.storeData.name} · {t.pieces(piecesOf(purchase))}
      </p>
      {isSold ? <p>{t.soldMeanwhile}</p> : isAwaited ? <p>{t.staffCheck}</p> : null}
      {isPaid || isOver || isAwaited || isSold ? null : <p>{t.confirming}</p>}
      <CheckoutEnd purchase={purchase} way={way} texts={texts} />
    </Page>
  )
}

/** Maximum size of the form, bytes. The form contains only the pressed button. */
const FORM_LIMIT = 1_000

/**
 * Routes of the checkout page. In the sandbox, everyone with the address may pay or cancel, as on a real provider's
 * page.
 */
export function checkoutRoutes(
  app: Hono,
  database: Database,
  services: Services,
  readers: PageRenderer,
  isTooFast: (c: Context) => boolean,
): void {
  app.get('/checkout/:id', async (c) => {
    if (isTooFast(c))
      return readers.problem(c, new Failure('resource-exhausted', 'too many requests', { retryAfter: 1 }))
    const call = { db: database.reads, services, nowMs: services.platform.clock.wall() } as Call
    return show(c, call, c.req.param('id'))
  })

  app.post('/checkout/:id', async (c) => {
    if (isTooFast(c))
      return readers.problem(c, new Failure('resource-exhausted', 'too many requests', { retryAfter: 1 }))
    const id = c.req.param('id')
    const purchase = isIdShaped(id) ? await findPurchaseOfCheckout(database.reads, id) : undefined
    // The request is not authenticated, so its body is read only if the checkout exists.
    if (!purchase || !isTest(purchase.tenant)) return c.notFound()
    const result = new URLSearchParams(new TextDecoder().decode(await readBytes(c, FORM_LIMIT))).get('result')
    if (!isResult(result)) return c.notFound()
    const caller = systemCaller(purchase.tenant as Tenant, 'checkout-page')
    try {
      await performTask(
        { operation: completeTestCheckout, caller, requestId: newId('req', services.platform) },
        database,
        services,
        async (call) => {
          const current = await findPurchaseOfCheckout(call.db, id)
          if (current) await endTestCheckout(call, await wholePurchase(call, current), result)
        },
      )
    } catch (error) {
      if (!(error instanceof Failure)) throw error
    }
    return c.redirect(`/checkout/${id}`, 303)
  })

  async function show(c: Context, call: Call, id: string): Promise<Response> {
    const purchase = isIdShaped(id) ? await findPurchaseOfCheckout(call.db, id) : undefined
    if (!purchase) return c.notFound()
    if (!isTest(purchase.tenant)) return showLive(c, call, purchase)
    const data = toTransactionData(await wholePurchase(call, purchase), call, 'public')
    const way = await exitAdvice(database, services, purchase)
    const isSold = await isSoldMeanwhile(call, purchase)
    const page = (reader: PageContext) =>
      CheckoutPage({ purchase: data, action: `/checkout/${id}`, isSold, way, reader })
    return readers.show(c, page, 200, LIVE_PAGE_HEADERS)
  }

  /** Redirects to the provider's page while a payment is open. Afterwards, shows the state of the payment. */
  async function showLive(c: Context, call: Call, purchase: Row<'purchase'>): Promise<Response> {
    const payment = await openPaymentOf(call.db, purchase.purchase_id)
    const isBack = c.req.query('returned') !== undefined
    const isSold = await isSoldMeanwhile(call, purchase)
    if (payment?.url && !isSold && purchase.status === 'PENDING_PAYMENT' && !isBack) return c.redirect(payment.url, 303)
    if (payment && isBack) await checkOnReturn(payment, database, services)
    const data = toTransactionData(await wholePurchase(call, purchase), call, 'public')
    const isAwaited = purchase.status === 'CREATED' && purchase.approval === 'awaiting'
    const way = await exitAdvice(database, services, purchase)
    return readers.show(c, (reader) => PaymentPage({ purchase: data, isAwaited, isSold, way, reader }))
  }
}

/** Number of pieces of a purchase. A line may have several. */
function piecesOf({ items }: TransactionData): number {
  return items.reduce((sum, { quantity }) => sum + quantity, 0)
}

/** True if an unpaid purchase has an item that was sold meanwhile. */
async function isSoldMeanwhile({ db }: Call, purchase: Row<'purchase'>): Promise<boolean> {
  const isOpen = purchase.status === 'CREATED' || purchase.status === 'PENDING_PAYMENT'
  return isOpen && hasSoldItem(db, purchase)
}

function isResult(text: string | null): text is TestResult {
  return text !== null && (TEST_RESULTS as readonly string[]).includes(text)
}
