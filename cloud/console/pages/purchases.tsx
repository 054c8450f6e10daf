import type { z } from 'zod'
import { rolesFrom } from '../../platform/foundation/caller.ts'
import { precondition } from '../../platform/foundation/failure.ts'
import { asFailure } from '../../service/http/as-failure.ts'
import { refundPayment } from '../../sales/payments/refund-payment.ts'
import { recordReturns } from '../../sales/tills/sale-operations.ts'
import { fetchPurchaseHistory } from '../../sales/checkout/history-operations.ts'
import { fetchPurchase } from '../../sales/checkout/operations.ts'
import { isDay } from '../../shop/analytics/store-days.ts'
import { StoreOfRow, storesToRead } from '../components/all-stores.tsx'
import { Badge, Card, EmptyState } from '../components/card.tsx'
import { TextField } from '../components/fields.tsx'
import { FilterBar, Results, Pagination, List, Timeline, type TimelineEntry } from '../components/table.tsx'
import { Notice } from '../components/notice.tsx'
import { FRAME_FIELDS, NO_FORM, type FormFields, type FormState } from '../frame/form.ts'
import { page, type PageContext, type ViewContext } from '../frame/page.ts'
import { historyOf, isVoided, REFUNDABLE, type Purchase } from './purchase-history.ts'
import { backOf, Confirmation, goodsLeft, leftOfLine, returnedPieces } from './purchase-return.tsx'
import { tagOf } from './tags.tsx'
import { toGtin14 } from '../../../policy/gs1/gtin.ts'
import { readProductCode } from '../../../policy/gs1/product-code.ts'
import { extractReceiptToken } from '../../../policy/receipts/receipt-token.ts'
import { searchProducts } from '../../shop/catalogue/operations.ts'

const PAGE = 20
/** Characters of the longest receipt with its address. */
const SCAN_LIMIT = 1_280

/** What the page shows: recent purchases, or one of them. */
interface RefundsView {
  readonly recent: readonly Purchase[]
  readonly total: number | undefined
  readonly nextCursor: string | undefined
  readonly purchase: Purchase | undefined
  /** What happened to the purchase, the oldest first. */
  readonly history: readonly TimelineEntry[]
  readonly isSearch: boolean
}

/** Refunds: find a purchase, choose its lines, confirm. */
export const purchasesPage = page<RefundsView>({
  path: '/console/purchases',
  roles: rolesFrom('manager'),
  scope: 'stores',
  navigation: { group: 'operations', icon: 'money' },
  title: (texts) => texts.purchases.title,
  lead: (at) => at.texts.purchases.lead,
  actions: {
    takeBack: {
      operation: recordReturns,
      input: (form) => {
        const lines = wantedLines(form)?.map(({ itemLineId: lineId, ...pieces }) => ({ lineId, ...pieces }))
        const returned = {
          // A form that is sent twice is one return.
          returnId: form.text(FRAME_FIELDS.key),
          purchaseId: form.text('purchaseId'),
          lines,
          resellable: form.isSet('resellable'),
          reason: form.text('reason'),
        }
        return { storeId: form.text('storeId'), returns: [returned] }
      },
      done: (texts) => texts.purchases.takenBack,
      next(result, at) {
        const [refused] = (result as z.output<typeof recordReturns.response>).errors
        if (refused) throw precondition(refused.code, refused.error)
        return `${at.path}?purchase=${at.query.get('purchase') ?? ''}`
      },
    },
    refund: {
      operation: refundPayment,
      input: (form) => ({
        purchaseId: form.text('purchaseId'),
        lines: wantedLines(form),
        refundId: form.text('refundId'),
        reason: form.text('reason'),
      }),
      done: (texts) => texts.purchases.refunded,
      next: ({ transactionId }, at) => `${at.path}?purchase=${String(transactionId)}`,
    },
  },
  async load(at) {
    const text = at.query.get('purchase')?.trim() ?? ''
    const purchase = await purchaseNamed(at, text)
    const nothing = { recent: [], history: [], total: undefined, nextCursor: undefined }
    if (purchase) return { ...nothing, purchase, history: await historyOf(at, purchase), isSearch: true }
    const day = at.query.get('day') ?? ''
    const typedAmount = at.query.get('amount')?.trim() ?? ''
    const amount = centsIn(typedAmount)
    const isSearch = text !== '' || day !== '' || typedAmount !== ''
    if (typedAmount !== '' && amount === undefined) return { ...nothing, purchase: undefined, isSearch }
    const cursor = at.query.get('cursor') ?? undefined
    const filters = await filtersOf(at, text)
    if (text !== '' && filters.length === 0) return { ...nothing, purchase: undefined, isSearch }
    const pages = []
    for (const filter of text === '' ? [{}] : filters)
      pages.push(
        await at.runIfAllowed(fetchPurchaseHistory, {
          ...(at.store && { storeId: at.store.storeId }),
          limit: PAGE,
          ...filter,
          ...(isDay(day) && { day }),
          ...(amount !== undefined && { totalCent: amount }),
          ...(cursor !== undefined && { cursor }),
        }),
      )
    const [only] = pages.length === 1 ? pages : []
    return {
      recent: newestOf(pages.flatMap((found) => found?.purchases ?? [])),
      total: only?.total,
      nextCursor: only?.nextCursor,
      purchase: undefined,
      history: [],
      isSearch,
    }
  },
  view(at) {
    const t = at.texts.purchases
    const { purchase, recent, total, nextCursor, isSearch } = at.data
    const confirm = at.query.get('confirm')
    if (purchase && (confirm === 'whole' || (confirm === 'lines' && at.query.has('line'))))
      return <Confirmation at={at} purchase={purchase} isWhole={confirm === 'whole'} />
    return (
      <>
        <FilterBar at={at}>
          <TextField
            form={NO_FORM}
            name="purchase"
            type="search"
            label={t.search}
            hint={t.searchHint}
            value={purchase ? '' : (at.query.get('purchase') ?? '')}
            maxlength={SCAN_LIMIT}
          />
          <TextField form={NO_FORM} name="day" type="date" label={t.day} value={at.query.get('day') ?? ''} />
          <TextField
            form={amountForm(at)}
            name="amount"
            inputmode="decimal"
            label={t.amount}
            hint={t.amountHint}
            value={at.query.get('amount') ?? ''}
            maxlength={12}
          />
        </FilterBar>
        <Results>
          {purchase ? (
            <>
              <Lines at={at} purchase={purchase} />
              <Card title={t.history}>
                <Timeline entries={at.data.history} formats={at.formats} />
              </Card>
            </>
          ) : isSearch && recent.length === 0 && nextCursor === undefined ? (
            <Notice tone="warn" title={t.notFound}>
              {amountForm(at).errors['amount'] ?? t.notFoundText}
            </Notice>
          ) : (
            <Recent at={at} purchases={recent} isSearch={isSearch} />
          )}
          <Pagination at={at} shown={recent.length} total={total} nextCursor={nextCursor} />
        </Results>
      </>
    )
  },
})

/** The purchase whose id or receipt is in a text, such as a scanned QR code. Undefined if it is of another store. */
async function purchaseNamed(at: PageContext, text: string): Promise<Purchase | undefined> {
  const purchaseId = /pur_[0-9A-Za-z]{26}/.exec(text)?.[0] ?? (await purchaseOfReceipt(at, text))
  if (purchaseId === undefined) return undefined
  try {
    const { success: _, ...found } = await at.run(fetchPurchase, { transactionId: purchaseId })
    return !at.store || found.storeId === at.store.storeId ? found : undefined
  } catch (error) {
    if (asFailure(error).code === 'not-found') return undefined
    throw error
  }
}

/** The lines that the form names; undefined: the whole purchase. */
function wantedLines(form: FormFields) {
  return form
    .text('lines')
    ?.split(' ')
    .map((line) => wantedPieces(line, form))
}

/** The pieces of a line that the form names, as `lin_…:2`, and their tags. */
function wantedPieces(text: string, form: FormFields) {
  const [itemLineId = '', quantity] = text.split(':')
  const tags = (form.text(`tags-${itemLineId}`) ?? '')
    .split(/[\s,;]+/)
    .flatMap((tag) => (tag === '' ? [] : [tagOf(tag)]))
  const lists = {
    epcs: tags.flatMap((tag) => ('epc' in tag ? [tag.epc] : [])),
    tagUids: tags.flatMap((tag) => ('tagUid' in tag ? [tag.tagUid] : [])),
    tagIds: tags.flatMap((tag) => ('tagId' in tag ? [tag.tagId] : [])),
  }
  return {
    itemLineId,
    ...(quantity !== undefined && { quantity: Number(quantity) }),
    ...Object.fromEntries(Object.entries(lists).filter(([, list]) => list.length > 0)),
  }
}

/** The newest of these purchases, each once. */
function newestOf(found: readonly Purchase[]): readonly Purchase[] {
  const byId = new Map(found.map((purchase) => [purchase.transactionId, purchase]))
  return [...byId.values()].toSorted((a, b) => (a.transactionId < b.transactionId ? 1 : -1)).slice(0, PAGE)
}

/** The field of the amount, with an error if its text is none. */
function amountForm(at: PageContext): FormState {
  const typed = at.query.get('amount')?.trim() ?? ''
  const isWrong = typed !== '' && centsIn(typed) === undefined
  return isWrong ? { ...NO_FORM, errors: { amount: at.texts.purchases.amountRule } } : NO_FORM
}

/** Cents of an amount such as `49,90`; undefined if the text is none. */
function centsIn(text: string): number | undefined {
  const [, euros, cents = ''] = /^\s*(\d{1,7})(?:[.,](\d{1,2}))?\s*€?\s*$/.exec(text) ?? []
  return euros === undefined ? undefined : Number(euros) * 100 + Number(cents.padEnd(2, '0'))
}

function Recent({ at, purchases, isSearch }: { at: ViewContext; purchases: readonly Purchase[]; isSearch: boolean }) {
  const t = at.texts.purchases
  return (
    <Card title={isSearch ? t.found : t.recent} flush>
      {purchases.length === 0 ? (
        <EmptyState icon="money" title={t.nothing}>
          {t.nothingText}
        </EmptyState>
      ) : (
        <List>
          {purchases.map((purchase) => {
            const name = t.purchase(purchase.transactionId.slice(-6))
            return (
              <li>
                <div>
                  <strong>
                    {purchase.receipt.till
                      ? t.tillSale(purchase.receipt.till.saleId, purchase.receipt.till.tillId ?? '')
                      : name}
                  </strong>
                  <StoreOfRow at={at} storeId={purchase.storeId} />
                  <span class="sub">
                    {at.formats.moment(Date.parse(purchase.timestamp))} · {at.formats.money(purchase.total)}
                  </span>
                  <span class="sub">
                    {purchase.items
                      .map((item) => item.name)
                      .slice(0, 3)
                      .join(' · ')}
                  </span>
                </div>
                <span class="row">
                  <Badge>{stateOf(at, purchase)}</Badge>
                  <a
                    class="button"
                    href={`/console/purchases?purchase=${purchase.transactionId}`}
                    aria-label={`${t.open}: ${name}`}
                  >
                    {t.open}
                  </a>
                </span>
              </li>
            )
          })}
        </List>
      )}
    </Card>
  )
}

/** The lines of a purchase with checkboxes. The form leads to the confirmation, so it changes nothing. */
function Lines({ at, purchase }: { at: ViewContext; purchase: Purchase }) {
  const t = at.texts.purchases
  const gone = returnedPieces(purchase)
  const isPaid = REFUNDABLE.has(purchase.status)
  const { till } = purchase.receipt
  const gives = backOf(at, purchase)
  const isLeft = till ? goodsLeft(purchase).length > 0 : purchase.refunded < purchase.total
  const mayRefund = isPaid && isLeft && !isVoided(purchase)
  return (
    <Card title={t.purchase(purchase.transactionId.slice(-6))} aside={<Badge>{stateOf(at, purchase)}</Badge>}>
      <form class="stack" method="get" action={at.path}>
        <input type="hidden" name="purchase" value={purchase.transactionId} />
        <p class="soft">
          {at.formats.moment(Date.parse(purchase.timestamp))} · {t.total} {at.formats.money(purchase.total)}
          {isVoided(purchase) ? '' : ` · ${backOf(at, purchase).soFar(at.formats.money(purchase.refunded))}`}
          {till ? ` · ${t.tillSale(till.saleId, till.tillId ?? '')}` : ''}
        </p>
        {at.query.get('confirm') === 'lines' ? <Notice tone="warn" title={t.chooseFirst} isUrgent /> : null}
        <fieldset class="field">
          <legend>{mayRefund ? t.choose : t.lines}</legend>
          <div class="choices">
            {purchase.items.map((line) => {
              const left = leftOfLine(line, gone)
              const count = line.quantity - left
              return (
                <>
                  <label class="choice">
                    {mayRefund && line.price >= 0 ? (
                      <input type="checkbox" name="line" value={line.itemLineId} disabled={left === 0} />
                    ) : null}
                    <span>
                      {at.formats.number(line.quantity)} × {line.name}
                      <small>
                        {at.formats.money(line.price < 0 ? line.price * line.quantity : line.paid)}
                        {line.quantity > 1 && line.price > 0 ? ` (${t.each(at.formats.money(line.price))})` : ''}
                        {count === 0 ? '' : ` · ${backOf(at, purchase).line(at.formats.number(count), left)}`}
                      </small>
                    </span>
                  </label>
                  {mayRefund && line.price >= 0 && left > 1 ? (
                    <label class="row">
                      {t.pieces(line.name)}
                      <input
                        class="input"
                        type="number"
                        name={`quantity-${line.itemLineId}`}
                        value={String(left)}
                        min="1"
                        max={String(left)}
                      />
                    </label>
                  ) : null}
                </>
              )
            })}
          </div>
        </fieldset>
        <div class="form-foot">
          {mayRefund ? (
            <>
              <button type="submit" class="button main" name="confirm" value="lines">
                {gives.next}
              </button>
              <button type="submit" class="button" name="confirm" value="whole">
                {purchase.refunded > 0 ? gives.rest : gives.wholePurchase}
              </button>
            </>
          ) : (
            <p>{isVoided(purchase) ? t.voidedAtTill : isPaid ? gives.all : t.notPaid}</p>
          )}
          <a class="button quiet" href={at.path}>
            {t.back}
          </a>
        </div>
      </form>
    </Card>
  )
}

function stateOf(at: ViewContext, purchase: Purchase): string {
  const t = at.texts.purchases
  const { status, refunded, total } = purchase
  if (isVoided(purchase)) return t.isVoided
  if (refunded === 0) return t.states[status]
  const back = backOf(at, purchase)
  return refunded < total ? back.partly : back.whole
}

/** Products whose purchases a search by name finds. */
const NAMED_LIMIT = 5

/**
 * Filters for what a person reads on the page, the receipt or the goods: the end of a number, a product code, the name of
 * a product, a tag, a code that a till printed. A text may mean several of them.
 */
async function filtersOf(at: PageContext, text: string): Promise<readonly Record<string, string>[]> {
  if (text === '' || text.length > 128) return []
  const read = readProductCode(text)
  if (read.ok && (read.code.isExact || toGtin14(text) !== undefined)) return [{ ean: text }]
  const number = /^(?:.*…\s*)?([0-9A-HJKMNP-TV-Z]{6,26})$/i.exec(text)?.[1]
  const storeIds = storesToRead(at, [])
  const eans = new Set<string>()
  for (const storeId of storeIds) {
    const found = await at.runIfAllowed(searchProducts, { storeId, q: text, limit: NAMED_LIMIT })
    for (const { ean } of found?.products ?? []) if (eans.size < NAMED_LIMIT) eans.add(ean)
  }
  const saleIds = text.length <= 64 ? storeIds.map((storeId) => ({ storeId, saleId: text })) : []
  const numbers = number === undefined ? [] : [{ number }]
  const codes = storeIds.map((storeId) => ({ storeId, receiptCode: text }))
  return [...saleIds, ...codes, ...numbers, ...[...eans].map((ean) => ({ ean })), { tag: text }]
}

/** Id of the purchase whose receipt a scanner read: the address in its QR code, or its token. */
async function purchaseOfReceipt(at: PageContext, text: string): Promise<string | undefined> {
  const receipt = extractReceiptToken(text)
  if (receipt === undefined) return undefined
  const found = await at.runIfAllowed(fetchPurchaseHistory, { receipt, limit: 1 })
  return found?.purchases[0]?.transactionId
}
