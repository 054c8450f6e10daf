import type { Context, Hono } from 'hono'
import { Failure } from '../../platform/foundation/failure.ts'
import type { Operation, Services } from '../../platform/operations/operation.ts'
import type { Database } from '../../platform/persistence/database.ts'
import { readPublicReceipt } from '../../shop/receipts/operations.ts'
import { receiptText } from '../../shop/receipts/receipt-text.ts'
import { corsHeaders } from './cors.ts'
import { tooManyRequests, type PublicAccess } from './public-access.ts'
import { PAGE_HEADERS, type PageRenderer } from './page-renderer.tsx'
import { ReceiptPage } from './receipt-page.tsx'

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
      return await this.#readers.show(c, (reader) => ReceiptPage({ receipt, reader }))
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      if (form === 'text') return c.text('Diesen Beleg gibt es nicht / no such receipt\n', 404, PAGE_HEADERS)
      return this.#readers.problem(c, new Failure('not-found', error.message), undefined, 'noReceipt')
    }
  }
}
