import type { z } from 'zod'
import { rolesFrom } from '../../foundation/roles.ts'
import { asFailure } from '../../http/as-failure.ts'
import { refundPayment } from '../../payments/refund-payment.ts'
import { fetchPurchaseHistory } from '../../scan-and-go/history-operations.ts'
import { fetchPurchase } from '../../scan-and-go/operations.ts'
import { Badge } from '../components/badge.tsx'
import { Card } from '../components/card.tsx'
import { EmptyState } from '../components/empty-state.tsx'
import { TextField } from '../components/fields.tsx'
import { FilterBar, Results } from '../components/filter-bar.tsx'
import { ActionForm, Submit } from '../components/form.tsx'
import { Notice } from '../components/notice.tsx'
import { Pagination } from '../components/pagination.tsx'
import { List } from '../components/table.tsx'
import { NO_FORM } from '../frame/form.ts'
import { page, type PageContext, type ViewContext } from '../frame/page.ts'

type Purchase = z.output<typeof fetchPurchaseHistory.response>['purchases'][number]

const PAGE = 20
/** Statuses in which money may be returned. */
const REFUNDABLE: ReadonlySet<Purchase['status']> = new Set(['SUCCESS', 'UNLOADED', 'CANCELLED'])

/** What the page shows: recent purchases, or one of them. */
interface RefundsView {
  readonly recent: readonly Purchase[]
  readonly total: number | undefined
  readonly nextCursor: string | undefined
  readonly purchase: Purchase | undefined
  readonly isSearch: boolean
}

/** Refunds: find a purchase, choose its lines, confirm. */
export const refundsPage = page<RefundsView>({
  path: '/console/refunds',
  roles: rolesFrom('manager'),
  scope: 'store',
  navigation: { group: 'operations', icon: 'money' },
  title: (texts) => texts.refunds.title,
  lead: (at) => at.texts.refunds.lead,
  actions: {
    refund: {
      operation: refundPayment,
      input: (form) => {
        const lines = form.text('lines')?.split(' ')
        return { purchaseId: form.text('purchaseId'), itemLineIds: lines, reason: form.text('reason') }
      },
      done: (texts) => texts.refunds.refunded,
      next: ({ transactionId }, at) => `${at.path}?purchase=${String(transactionId)}`,
    },
  },
  async load(at) {
    const storeId = at.store?.storeId ?? ''
    const text = at.query.get('purchase')?.trim() ?? ''
    const purchase = await purchaseNamed(at, text)
    const nothing = { recent: [], total: undefined, nextCursor: undefined }
    if (purchase) return { ...nothing, purchase, isSearch: true }
    const cursor = at.query.get('cursor') ?? undefined
    const found = await at.runIfAllowed(fetchPurchaseHistory, {
      storeId,
      limit: PAGE,
      ...(cursor !== undefined && { cursor }),
    })
    return {
      recent: found?.purchases ?? [],
      total: found?.total,
      nextCursor: found?.nextCursor,
      purchase: undefined,
      isSearch: text !== '',
    }
  },
  view(at) {
    const t = at.texts.refunds
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
            value={at.query.get('purchase') ?? ''}
            maxlength={500}
          />
        </FilterBar>
        <Results>
          {isSearch && !purchase ? (
            <Notice tone="warn" title={t.notFound}>
              {t.notFoundText}
            </Notice>
          ) : null}
          {purchase ? <Lines at={at} purchase={purchase} /> : <Recent at={at} purchases={recent} />}
          <Pagination at={at} shown={recent.length} total={total} nextCursor={nextCursor} />
        </Results>
      </>
    )
  },
})

/** The purchase whose id is in a text, such as the address of a receipt. Undefined if it is of another store. */
async function purchaseNamed(at: PageContext, text: string): Promise<Purchase | undefined> {
  const purchaseId = /pur_[0-9A-Za-z]{26}/.exec(text)?.[0]
  if (purchaseId === undefined) return undefined
  try {
    const { success: _, ...found } = await at.run(fetchPurchase, { transactionId: purchaseId })
    return found.storeId === at.store?.storeId ? found : undefined
  } catch (error) {
    if (asFailure(error).code === 'not-found') return undefined
    throw error
  }
}

function Recent({ at, purchases }: { at: ViewContext; purchases: readonly Purchase[] }) {
  const t = at.texts.refunds
  return (
    <Card title={t.recent} flush>
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
                  <strong>{name}</strong>
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
                    href={`/console/refunds?purchase=${purchase.transactionId}`}
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
  const t = at.texts.refunds
  const gone = refundedLines(purchase)
  const isPaid = REFUNDABLE.has(purchase.status)
  const mayRefund = isPaid && purchase.refunded < purchase.total
  return (
    <Card title={t.purchase(purchase.transactionId.slice(-6))} aside={<Badge>{stateOf(at, purchase)}</Badge>}>
      <form class="stack" method="get" action={at.path}>
        <input type="hidden" name="purchase" value={purchase.transactionId} />
        <p class="soft">
          {at.formats.moment(Date.parse(purchase.timestamp))} · {t.total} {at.formats.money(purchase.total)} ·{' '}
          {t.already} {at.formats.money(purchase.refunded)}
        </p>
        {at.query.get('confirm') === 'lines' ? <Notice tone="warn" title={t.chooseFirst} isUrgent /> : null}
        <fieldset class="field">
          <legend>{mayRefund ? t.choose : t.lines}</legend>
          <div class="choices">
            {purchase.items.map((line) => {
              const isGone = gone.has(line.itemLineId)
              return (
                <label class="choice">
                  {mayRefund ? <input type="checkbox" name="line" value={line.itemLineId} disabled={isGone} /> : null}
                  <span>
                    {at.formats.number(line.quantity)} × {line.name}
                    <small>
                      {at.formats.money(line.price * line.quantity)}
                      {isGone ? ` · ${t.lineRefunded}` : ''}
                    </small>
                  </span>
                </label>
              )
            })}
          </div>
        </fieldset>
        <div class="form-foot">
          {mayRefund ? (
            <>
              <button type="submit" class="button main" name="confirm" value="lines">
                {t.next}
              </button>
              <button type="submit" class="button" name="confirm" value="whole">
                {t.whole}
              </button>
            </>
          ) : (
            <p>{isPaid ? t.fullyRefunded : t.notPaid}</p>
          )}
          <a class="button quiet" href={at.path}>
            {t.back}
          </a>
        </div>
      </form>
    </Card>
  )
}

function refundedLines({ refunds }: Purchase): ReadonlySet<string> {
  return new Set(refunds.filter(({ status }) => status !== 'failed').flatMap(({ itemLineIds }) => itemLineIds ?? []))
}

function stateOf(at: ViewContext, { status, refunded, total }: Purchase): string {
  const t = at.texts.refunds
  if (refunded === 0) return t.states[status]
  return refunded < total ? t.partlyRefunded : t.isRefunded
}

/** What is refunded, before it is: the chosen lines, or the whole purchase. */
function Confirmation({ at, purchase, isWhole }: { at: ViewContext; purchase: Purchase; isWhole: boolean }) {
  const t = at.texts.refunds
  const chosen = new Set(at.query.getAll('line'))
  const lines = purchase.items.filter(
    ({ itemLineId, depositOf }) => chosen.has(itemLineId) || (depositOf !== undefined && chosen.has(depositOf)),
  )
  const shown = isWhole ? purchase.items : lines
  const amount = isWhole
    ? purchase.total - purchase.refunded
    : lines.reduce((sum, { price, quantity }) => sum + price * quantity, 0)
  const purchaseId = purchase.transactionId
  const about = { purchaseId, ...(!isWhole && { lines: lines.map(({ itemLineId }) => itemLineId).join(' ') }) }
  return (
    <Card title={t.confirmTitle(at.formats.money(amount))}>
      <div class="stack">
        <p>
          {isWhole ? t.wholeText : t.partText} {t.money}
        </p>
        <ul class="stack tight">
          {shown.map(({ name, quantity, price }) => (
            <li class="row between">
              <span>
                {at.formats.number(quantity)} × {name}
              </span>
              <span class="number">{at.formats.money(price * quantity)}</span>
            </li>
          ))}
        </ul>
        <ActionForm at={at} action="refund" about={about}>
          <TextField form={at.form} name="reason" label={t.reason} maxlength={300} />
          <div class="form-foot">
            <Submit>{t.confirm(at.formats.money(amount))}</Submit>
            <a class="button" href={`${at.path}?purchase=${purchaseId}`}>
              {at.texts.frame.cancel}
            </a>
          </div>
        </ActionForm>
      </div>
    </Card>
  )
}
