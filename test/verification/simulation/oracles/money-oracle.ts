import type { Database as Connection } from 'better-sqlite3'
import type { Evidence } from '../../../../policy/journal.ts'
import type { Core } from '../virtual/core.ts'
import type { Provider } from '../nodes/provider.ts'

/** Compares the provider's books with the cloud database. Each paid cent must belong to a sale or a refund. */
export interface MoneyOracle {
  /** Called when a purchase becomes paid. */
  paid(db: Connection, purchaseId: string): void
  /** Called when staff confirm that the goods are back, so that the refund does not have to wait. */
  confirmed(purchaseId: string): void
  /** Called for the evidence in the durable rows of an agent. */
  used(db: Connection, evidence: Evidence): void
  /**
   * Describes unfinished payments or refunds; undefined if there are none. `nowMs` is the time of the cloud's clock.
   */
  unsettled(db: Connection, nowMs: number): string | undefined
  /** Checks all payments at the end of the run. */
  check(db: Connection): void
}

interface Payment {
  paymentId: string
  purchaseId: string
  ref: string | null
  amountCent: number
  state: string
  applied: number
  dueMs: number | null
  status: string
}

interface Refund {
  refundId: string
  amountCent: number
  state: string
  attempts: number
}

/** Accepted delay of payments and refunds that are due, ms. */
const LATE_MS = 60_000

const PAYMENTS = `SELECT payment_id AS paymentId, p.purchase_id AS purchaseId, provider_ref AS ref, amount_cent AS amountCent, state, applied, due_ms AS dueMs, status
  FROM payment p JOIN purchase u ON u.purchase_id = p.purchase_id`

/**
 * Creates the oracle for a live shop. `isEveryAgentHere` is true if all enrolled agents take part in the run.
 * `isClockSure` is true if the run has no clock faults and no restored agent.
 */
export function moneyOracle(
  core: Core,
  provider: Pick<Provider, 'books'>,
  certainty: { isEveryAgentHere: boolean; isClockSure: boolean },
): MoneyOracle {
  return new Money(core, provider, certainty)
}

class Money implements MoneyOracle {
  readonly #core: Core
  readonly #books: Pick<Provider, 'books'>['books']
  readonly #isEveryAgentHere: boolean
  readonly #isClockSure: boolean
  readonly #vouchedFor = new Set<string>()

  constructor(
    core: Core,
    { books }: Pick<Provider, 'books'>,
    { isEveryAgentHere, isClockSure }: { isEveryAgentHere: boolean; isClockSure: boolean },
  ) {
    this.#core = core
    this.#books = books
    this.#isEveryAgentHere = isEveryAgentHere
    this.#isClockSure = isClockSure
  }

  readonly paid = (db: Connection, purchaseId: string): void => {
    const payment = db.prepare<[string], Payment>(`${PAYMENTS} WHERE p.purchase_id = ? AND applied = 1`).get(purchaseId)
    const session = this.#paidSession(payment?.ref ?? null)
    if (!session || session.paidCent !== payment?.amountCent)
      this.#violate(
        `${purchaseId} counts as paid, but the provider has ${session?.paidCent ?? 'nothing'} instead of ${payment?.amountCent ?? 'a payment'}`,
      )
  }

  confirmed(purchaseId: string): void {
    this.#vouchedFor.add(purchaseId)
  }

  used(db: Connection, evidence: Evidence): void {
    if (evidence.kind !== 'claim' || evidence.operatorId !== undefined || !this.#isClockSure) return
    const { nonce, source, receipt } = evidence
    const cti = source === 'receipt' ? nonce : receipt?.cti
    const purchase = db
      .prepare<[string, string], { id: string }>(
        'SELECT purchase_id AS id FROM purchase WHERE cti = ? UNION SELECT purchase_id FROM protection_authorization WHERE nonce = ? AND purchase_id IS NOT NULL',
      )
      .get(cti ?? '', nonce)
    if (!purchase || this.#vouchedFor.has(purchase.id)) return
    const payment = db
      .prepare<[string], Payment>(`${PAYMENTS} WHERE p.purchase_id = ? AND applied = 1`)
      .get(purchase.id)
    const session = this.#paidSession(payment?.ref ?? null)
    if (session && payment?.status === 'CANCELLED' && this.#refundedCent(session.id) >= session.paidCent)
      this.#violate(`${purchase.id} was refunded, but ${nonce} released a unit of it`)
  }

  unsettled(db: Connection, nowMs: number): string | undefined {
    const count = (sql: string, ...values: (number | string)[]) =>
      db.prepare<(number | string)[], { n: number }>(sql).get(...values)?.n ?? 0
    const held = count("SELECT COUNT(*) AS n FROM refund WHERE state = 'held'")
    // A held refund waits until all agents have reported. Agents outside this run never report.
    if (held > 0 && this.#isEveryAgentHere) return `${held} refunds are held`
    const refunds = count("SELECT COUNT(*) AS n FROM refund WHERE state = 'due' AND due_ms < ?", nowMs - LATE_MS)
    if (refunds > 0) return `${refunds} refunds are overdue`
    const unknown = this.#books.refunds.find(
      ({ id, status }) =>
        status === 'failed' &&
        count("SELECT COUNT(*) AS n FROM refund WHERE state = 'done' AND provider_ref = ?", id) > 0,
    )
    if (unknown) return `the refund ${unknown.id} failed at the bank, but the cloud does not know it`
    const payments = count(
      "SELECT COUNT(*) AS n FROM payment WHERE state IN ('asking', 'open') AND due_ms < ?",
      nowMs - LATE_MS,
    )
    return payments > 0 ? `${payments} payments were not checked` : undefined
  }

  check(db: Connection): void {
    const refundsOf = db.prepare<[string], Refund>(
      'SELECT refund_id AS refundId, amount_cent AS amountCent, state, attempts FROM refund WHERE payment_id = ?',
    )
    const reported = db.prepare<[string, string], { n: number }>(
      "SELECT COUNT(*) AS n FROM protection_exception WHERE (kind = 'payment_mismatch' AND subject = ?) OR (kind = 'refund_failed' AND purchase_id = ?)",
    )
    const payments = db.prepare<[], Payment>(PAYMENTS).all()
    for (const payment of payments)
      this.#checkPayment(
        payment,
        refundsOf.all(payment.paymentId),
        (reported.get(payment.paymentId, payment.purchaseId)?.n ?? 0) > 0,
      )
    const known = new Set(payments.map(({ ref }) => ref))
    for (const { id, status } of this.#books.sessions.values())
      if (status === 'paid' && !known.has(id))
        this.#violate(`session ${id} was paid, but the cloud has no payment for it`)
  }

  #violate(detail: string) {
    return this.#core.violate('money', detail)
  }

  #paidSession(ref: string | null) {
    const session = ref === null ? undefined : this.#books.sessions.get(ref)
    return session?.status === 'paid' ? session : undefined
  }

  /** Sum of the provider's refunds that have this status, cents. */
  #sumOfProviderRefunds(sessionId: string, wanted: 'done' | 'failed') {
    return this.#books.refunds
      .filter(({ sessionId: id, status }) => id === sessionId && status === wanted)
      .reduce((sum, { amountCent }) => sum + amountCent, 0)
  }

  #refundedCent(sessionId: string) {
    return this.#sumOfProviderRefunds(sessionId, 'done')
  }

  #checkPayment(payment: Payment, refunds: readonly Refund[], isReported: boolean): void {
    const session = this.#paidSession(payment.ref)
    const { purchaseId, paymentId } = payment
    if (payment.state !== 'paid') {
      // After 65 minutes the cloud queries the provider for the last time.
      if (session && payment.dueMs === null)
        this.#violate(`${session.paidCent} cents were paid for ${purchaseId}, but ${paymentId} is ${payment.state}`)
      return
    }
    if (!session)
      return this.#violate(`${paymentId} of ${purchaseId} counts as paid, but the provider received nothing`)
    const sumOf = (states: readonly string[]) =>
      refunds.filter(({ state }) => states.includes(state)).reduce((sum, { amountCent }) => sum + amountCent, 0)
    const gone = this.#refundedCent(session.id)
    const underWay = refunds
      .filter(({ state, attempts }) => state === 'due' && attempts > 0)
      .reduce((sum, { amountCent }) => sum + amountCent, 0)
    if (gone < sumOf(['done']) || gone > sumOf(['done']) + underWay)
      this.#violate(
        `the provider refunded ${gone} cents of ${purchaseId}, but the cloud has ${sumOf(['done'])} done and ${underWay} started`,
      )
    const [failed, bounced] = [sumOf(['failed']), this.#sumOfProviderRefunds(session.id, 'failed')]
    if (failed > bounced)
      this.#violate(
        `${failed} cents of ${purchaseId} have failed refunds in the cloud, but only ${bounced} at the provider`,
      )
    const back = sumOf(['done', 'due', 'held'])
    if (session.paidCent !== payment.amountCent) {
      if (!isReported)
        this.#violate(
          `${session.paidCent} instead of ${payment.amountCent} cents were paid for ${purchaseId}, but no exception reports it`,
        )
    } else if (payment.applied === 0 || payment.status === 'CANCELLED') {
      // The bank may return a refund. In that case an exception informs staff, who may repeat the refund.
      const isAllReported = isReported && back < session.paidCent && back + failed >= session.paidCent
      if (back !== session.paidCent && !isAllReported)
        this.#violate(
          `${purchaseId} is ${payment.status}, ${session.paidCent} cents were paid with ${paymentId}, but ${back} are refunded`,
        )
    } else if (payment.status !== 'SUCCESS' && payment.status !== 'UNLOADED')
      this.#violate(`${purchaseId} was paid but is ${payment.status}`)
  }
}
