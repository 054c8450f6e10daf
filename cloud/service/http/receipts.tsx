import type { Context, Hono } from 'hono'
import { Failure } from '../../platform/foundation/failure.ts'
import type { Operation, Services } from '../../platform/operations/operation.ts'
import type { Database } from '../../platform/persistence/database.ts'
import { readPublicReceipt, refundSummaryOf } from '../../shop/receipts/operations.ts'
import { receiptText } from '../../shop/receipts/receipt-text.ts'
import { corsHeaders } from './cors.ts'
import { tooManyRequests, type PublicAccess } from './public-access.ts'
import {
  ConnectionLost,
  ConnectionScript,
  LIVE_PAGE_HEADERS,
  PAGE_HEADERS,
  type PageRenderer,
  Page,
  type PageContext,
} from './page.tsx'
import type { TransactionData } from '../../shop/purchases/schema.ts'
import type { Formats } from '../../platform/texts/catalogue.ts'
import type { Texts } from '../../platform/texts/texts.ts'

/**
 * Page that opens from the receipt's QR code. The page begins with the returns and refunds since the sale. Returned
 * goods are struck out.
 */
export function ReceiptPage({ receipt, reader }: { receipt: TransactionData; reader: PageContext }) {
  const { texts, formats } = reader
  const t = texts.receipt
  const { money, moment } = formats
  const back = refundSummaryOf(receipt)
  const isVoided = back.isCancelled && receipt.till !== undefined
  const rows = [
    { name: t.sum, amount: money(receipt.totalCent) },
    ...(back.refundedCent > 0
      ? [
          { name: isVoided ? t.voided : t.refunded, amount: money(-back.refundedCent) },
          { name: t.remains, amount: money(back.remainingCent) },
        ]
      : []),
    ...(back.pendingCent === 0
      ? []
      : [{ name: t.pending, amount: back.pendingCent === null ? '' : money(back.pendingCent) }]),
    ...(back.failedCent > 0 ? [{ name: t.failed, amount: money(back.failedCent) }] : []),
  ]
  return (
    <Page
      title={`${t.title} ${receipt.storeData.name}`}
      reader={reader}
      sandbox={receipt.storeData.mode === 'demo'}
      head={<ConnectionScript />}
    >
      <ConnectionLost texts={reader.texts} />
      <h1>{receipt.storeData.name}</h1>
      {back.isCancelled ? <p class="stamp">{isVoided ? t.voided : t.cancelled}</p> : null}
      <p class="soft">
        {receipt.storeData.address}
        <br />
        {receipt.completedAt === undefined ? '' : moment(receipt.completedAt)} · {t.receipt} {receipt.id}
      </p>
      {back.isCancelled ? null : (
        <p>
          <strong>{t.paid}</strong>
        </p>
      )}
      <ForTheExit receipt={receipt} reader={reader} hasGoods={back.hasGoods} />
      <table class="lines">
        <thead>
          <tr>
            <th>{t.item}</th>
            <th class="n">{t.quantity}</th>
            <th class="n">{t.each}</th>
            <th class="n">{t.amount}</th>
          </tr>
        </thead>
        <tbody>
          {receipt.items.map((item) => (
            <Line
              item={item}
              returned={back.returnedOf(item)}
              note={back.isCancelled ? undefined : t.back}
              formats={formats}
            />
          ))}
          {rows.map(({ name, amount }) => (
            <tr>
              <th colspan={3}>{name}</th>
              <th class="n">{amount}</th>
            </tr>
          ))}
        </tbody>
      </table>
      <p>
        {Object.entries(receipt.vatBreakdown).map(([rate, { net, tax }]) => (
          <span>
            {t.vat(rate, money(net), money(tax))}
            <br />
          </span>
        ))}
      </p>
      <p class="soft">{t.noFiscalEvidence}</p>
    </Page>
  )
}

/**
 * The code that devices and staff read, then what the shopper does before leaving. After the goods have left, only the
 * code. The code comes first, so that a phone shows all of it without scrolling.
 */
function ForTheExit({
  receipt,
  reader: { texts },
  hasGoods,
}: {
  receipt: TransactionData
  reader: PageContext
  hasGoods: boolean
}) {
  const t = texts.receipt
  if (!hasGoods) return null
  if (receipt.receiptUrl !== undefined && receipt.receiptQrCode === undefined) return <p>{t.expired}</p>
  const code = receipt.receiptQrCode ? <img class="code" src={receipt.receiptQrCode} alt={t.qr} /> : null
  if (receipt.status === 'UNLOADED') return code
  const isOff = receipt.securityTagStatus === 'deactivated'
  return (
    <>
      {code}
      {receipt.securityTagStatus === 'pending' ? <h2>{t.beforeLeaving}</h2> : null}
      <TagHint texts={texts} purchase={receipt} />
      {isOff ? <p>{t.tagsOff}</p> : null}
      {code && <p class="soft">{isOff ? t.codeUseAtExit : t.codeUse}</p>}
    </>
  )
}

interface LineView {
  item: TransactionData['items'][number]
  /** Number of returned pieces. */
  returned: number
  note: string | undefined
  formats: Formats
}

function Line({ item, returned, note, formats: { money, weight } }: LineView) {
  const { weightGrams, pricePerKgCent } = item
  const isReturned = returned >= item.quantity
  const struck = (text: string | number) => (isReturned ? <s>{text}</s> : text)
  return (
    <tr>
      <td>
        {struck(item.depositOf === undefined ? item.name : `+ ${item.name}`)}
        {weightGrams === undefined || pricePerKgCent === undefined ? null : (
          <span class="soft"> {weight(weightGrams, pricePerKgCent)}</span>
        )}
        {returned > 0 && note !== undefined ? (
          <span class="soft"> {isReturned ? note : `${Math.round(returned * 1_000) / 1_000} ${note}`}</span>
        ) : null}
      </td>
      <td class="n">{struck(item.quantity)}</td>
      <td class="n">{struck(money(item.priceUnit))}</td>
      <td class="n">{struck(money(item.totalCent))}</td>
    </tr>
  )
}

/**
 * Advice about security tags that are still on the goods. If the store has no text of its own, a default text is used.
 */
export function TagHint({ texts, purchase }: { texts: Texts; purchase: TransactionData }) {
  const { securityTagMode: mode, securityTagStatus: status, securityTagHint: note } = purchase
  if (status !== 'pending') return null
  if (note === undefined) return mode === undefined || mode === 'none' ? null : <p>{texts.tagHints[mode]}</p>
  return (
    <p>
      <span class="soft">{texts.storeNote}:</span> {note}
    </p>
  )
}

type Form = 'page' | 'text'

/** Routes for receipts as pages and plain text. The receipt's token authorizes the reader. */
export class ReceiptRoutes {
  readonly #database: Database
  readonly #services: Services
  readonly #readers: PageRenderer
  readonly #access: PublicAccess

  constructor(database: Database, services: Services, readers: PageRenderer, access: PublicAccess) {
    this.#database = database
    this.#services = services
    this.#readers = readers
    this.#access = access
  }

  /**
   * Serves the receipt's own address. The response is plain text if the Accept header names plain text before HTML,
   * otherwise a page.
   */
  addPages(app: Hono): void {
    const answer = (c: Context<object, '/R/:token' | '/r/:token'>) => {
      const isText = /\btext\/(html|plain)\b/.exec(c.req.header('accept') ?? '')?.[1] === 'plain'
      return this.#show(c, c.req.param('token'), isText ? 'text' : 'page')
    }
    app.get('/R/:token', answer)
    app.get('/r/:token', answer)
  }

  /**
   * Serves `getReceiptFromToken` to clients that prefer a page or plain text. All other clients get JSON from the
   * operation.
   */
  addOperation(app: Hono, base: string, operation: Operation | undefined): void {
    app.get(`${base}/getReceiptFromToken`, (c, next) => {
      const wanted = /\b(?:text\/(html|plain)|application\/(json))\b/.exec(c.req.header('accept') ?? '')
      const token = c.req.query('token')
      if (!wanted || wanted[2] !== undefined || token === undefined || token.length > 4_096) return next()
      for (const [name, value] of Object.entries(corsHeaders(operation, c.req.header('authorization'))))
        c.header(name, value)
      return this.#show(c, token, wanted[1] === 'plain' ? 'text' : 'page')
    })
  }

  async #show(c: Context, token: string, form: Form): Promise<Response> {
    if (this.#access.isTooFast(c))
      return form === 'text' ? c.text('too many requests', 429) : this.#readers.problem(c, tooManyRequests())
    try {
      const nowMs = this.#services.platform.clock.wall()
      const receipt = await readPublicReceipt({ db: this.#database.reads, services: this.#services, nowMs }, token)
      if (form === 'text') return c.text(receiptText(receipt), 200, PAGE_HEADERS)
      const page = (reader: PageContext) => ReceiptPage({ receipt, reader })
      return await this.#readers.show(c, page, 200, LIVE_PAGE_HEADERS)
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      if (form === 'text') return c.text('Diesen Beleg gibt es nicht / no such receipt\n', 404, PAGE_HEADERS)
      return this.#readers.problem(c, new Failure('not-found', error.message), undefined, 'noReceipt')
    }
  }
}
