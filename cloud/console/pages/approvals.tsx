import type { z } from 'zod'
import { fetchProduct } from '../../shop/catalogue/operations.ts'
import { rolesFrom } from '../../platform/foundation/caller.ts'
import { approveCheckout } from '../../sales/checkout/approval-operations.ts'
import { fetchPurchaseHistory } from '../../sales/checkout/history-operations.ts'
import { StoreOfRow } from '../components/all-stores.tsx'
import { Badge, Card, EmptyState } from '../components/card.tsx'
import { Confirm, ActionButton } from '../components/form.tsx'
import { Live } from '../components/live.tsx'
import { Pagination, List } from '../components/table.tsx'
import { page, type PageContext, type ViewContext } from '../frame/page.ts'

type Basket = z.output<typeof fetchPurchaseHistory.response>['purchases'][number]

/** What the page shows. */
interface ApprovalsView {
  readonly baskets: readonly Basket[]
  /** Ids of products whose buyers must show their age. */
  readonly restricted: ReadonlySet<string>
  readonly total: number
  readonly nextCursor: string | undefined
}

/** Baskets on a page: few, so that the page stays short on a phone. */
const PAGE = 20
/** Maximum number of products that the page looks up. */
const PRODUCTS_LIMIT = 40

/** Baskets that wait until a person has checked the age of the shopper, or the goods. */
export const approvalsPage = page<ApprovalsView>({
  path: '/console/approvals',
  roles: rolesFrom('associate'),
  scope: 'stores',
  navigation: { group: 'work', icon: 'check', tasks: ['ageCheck', 'spotCheck'] },
  live: ['scan and go', 'payments'],
  title: (texts) => texts.approvals.title,
  lead: (at) => at.texts.approvals.lead,
  actions: {
    approve: {
      operation: approveCheckout,
      input: (form) => ({ purchaseId: form.text('purchaseId'), approved: true }),
      done: (texts) => texts.approvals.approved,
    },
    refuse: {
      operation: approveCheckout,
      input: (form) => ({ purchaseId: form.text('purchaseId'), approved: false }),
      done: (texts) => texts.approvals.refused,
    },
  },
  async load(at) {
    const cursor = at.query.get('cursor') ?? undefined
    const found = await at.runIfAllowed(fetchPurchaseHistory, {
      ...(at.store && { storeId: at.store.storeId }),
      awaitingApproval: true,
      limit: PAGE,
      ...(cursor !== undefined && { cursor }),
    })
    const baskets = found?.purchases ?? []
    return {
      baskets,
      restricted: await restrictedProducts(at, baskets),
      total: found?.total ?? 0,
      nextCursor: found?.nextCursor,
    }
  },
  view: (at) => (
    <Live at={at} id="approvals">
      {at.data.baskets.length === 0 ? (
        <Card>
          <EmptyState title={at.texts.approvals.nothing}>{at.texts.approvals.nothingText}</EmptyState>
        </Card>
      ) : (
        at.data.baskets.map((basket) => <BasketCard at={at} basket={basket} />)
      )}
      <Pagination at={at} shown={at.data.baskets.length} total={at.data.total} nextCursor={at.data.nextCursor} />
    </Live>
  ),
})

/** Age-restricted products in the baskets that wait for an age check. */
async function restrictedProducts(at: PageContext, baskets: readonly Basket[]): Promise<Set<string>> {
  const aged = baskets.filter(({ approvalReason }) => approvalReason === 'age')
  const stores = new Map(
    aged.flatMap(({ items, storeId }) => items.flatMap(({ productId }) => (productId ? [[productId, storeId]] : []))),
  )
  const restricted = new Set<string>()
  for (const [productId, storeId] of [...stores].slice(0, PRODUCTS_LIMIT)) {
    const found = await at.runIfAllowed(fetchProduct, { storeId, productId })
    if (found?.flags?.requiresHumanVerification) restricted.add(productId)
  }
  return restricted
}

function BasketCard({ at, basket }: { at: ViewContext<ApprovalsView>; basket: Basket }) {
  const t = at.texts.approvals
  const { transactionId: purchaseId, items, total, receipt } = basket
  const reason = basket.approvalReason === 'age' ? t.age : t.spotCheck
  const pieces = items.reduce((sum, { quantity }) => sum + quantity, 0)
  return (
    <Card
      flush
      title={reason.title}
      aside={<Badge tone="warn">{t.waits(at.formats.ago(receipt.createdAt, at.nowMs))}</Badge>}
    >
      <List>
        <li>
          <div>
            {reason.todo}
            <StoreOfRow at={at} storeId={basket.storeId} />
            <span class="sub">{t.about(at.formats.number(pieces), purchaseId.slice(-6))}</span>
          </div>
        </li>
        {items.map(({ name, quantity, price, productId }) => (
          <li>
            <div>
              <span class="number">{at.formats.number(quantity)} ×</span> <strong>{name}</strong>{' '}
              {at.data.restricted.has(productId ?? '') ? <Badge tone="warn">{t.restricted}</Badge> : null}
              {quantity > 1 ? <span class="sub number">{t.each(at.formats.money(price))}</span> : null}
            </div>
            <span class="number">{at.formats.money(price * quantity)}</span>
          </li>
        ))}
        <li>
          <strong>{t.total}</strong>
          <strong class="number">{at.formats.money(total)}</strong>
        </li>
        <li>
          <div class="row">
            <ActionButton at={at} action="approve" about={{ purchaseId }} main>
              {reason.approve}
            </ActionButton>
            <Confirm
              at={at}
              action="refuse"
              about={{ purchaseId }}
              label={t.refuse}
              question={t.refuseQuestion}
              explanation={t.refuseText}
              confirm={t.refuseConfirm}
            />
          </div>
        </li>
      </List>
    </Card>
  )
}
