import { rolesFrom } from '../../platform/foundation/caller.ts'
import { asFailure } from '../../service/http/as-failure.ts'
import { createOffer, deleteOffer, updateOffer } from '../../shop/offers/operations.ts'
import { fetchOffer } from '../../shop/offers/read-operations.ts'
import { Card, EmptyState, Pairs } from '../components/card.tsx'
import { ActionForm, Confirm, Submit, isChanged } from '../components/form.tsx'
import { Notice } from '../components/notice.tsx'
import { OfferFields, productsOf, storesOf, timeOf, type Offer } from '../components/offer-fields.tsx'
import { Table } from '../components/table.tsx'
import { NO_FORM } from '../frame/form.ts'
import { page, type PageContext, type ViewContext } from '../frame/page.ts'
import { offerHref, OfferState, periodOf } from './offers.tsx'

const MANAGERS = rolesFrom('manager')
const LIST = '/console/offers'
/** Stores that a price names. */
const NAMED = 3

/** The form of a new offer. */
export const newOfferPage = page<undefined>({
  path: '/console/offers/new',
  roles: MANAGERS,
  scope: 'account',
  title: (texts) => texts.offers.addTitle,
  lead: (at) => at.texts.offers.lead,
  actions: {
    add: {
      operation: createOffer,
      input: (form, at) => ({
        storeIds: storesOf(form, at),
        title: form.text('title') ?? '',
        validFrom: timeOf(form, 'validFrom'),
        validTo: timeOf(form, 'validTo'),
        products: productsOf(form),
        description: form.text('description'),
        quantity: form.number('quantity'),
      }),
      done: (texts) => texts.offers.published,
      // The sandbox stores no offer.
      next: ({ offerId }, at) => (at.mode === 'test' ? LIST : offerHref(String(offerId))),
    },
  },
  load: () => Promise.resolve(undefined),
  view(at) {
    const t = at.texts.offers
    return (
      <div class="stack wide">
        {at.mode === 'test' ? <Notice title={t.sandbox}>{t.sandboxText}</Notice> : null}
        <Card>
          <ActionForm at={at} action="add">
            <OfferFields at={at} form={at.form} />
            <div class="form-foot">
              <Submit>{t.publish}</Submit>
              <a class="button" href="/console/products">
                {t.findBarcodes}
              </a>
            </div>
          </ActionForm>
        </Card>
      </div>
    )
  },
})

/** The offer of the page; undefined if there is none. */
async function offerOfPage(at: PageContext): Promise<Offer | undefined> {
  const offerId = at.params['offerId'] ?? ''
  try {
    return (await at.run(fetchOffer, { offerId })).offer
  } catch (error) {
    if (!['not-found', 'invalid-argument'].includes(asFailure(error).code)) throw error
    // An offer with very many prices is read for one store.
    if (!at.store || asFailure(error).code === 'not-found') return undefined
  }
  return (await at.run(fetchOffer, { offerId, storeId: at.store.storeId }).catch(() => undefined))?.offer
}

/** One offer: its prices in each store, and the form that changes it. */
export const offerPage = page<Offer | undefined>({
  path: '/console/offers/:offerId',
  roles: rolesFrom('viewer'),
  scope: 'account',
  title: (texts) => texts.offers.offer,
  lead: (at) => at.data?.title,
  actions: {
    change: {
      operation: updateOffer,
      roles: MANAGERS,
      async input(form, at) {
        const offer = await offerOfPage(at)
        return {
          offerId: at.params['offerId'],
          title: form.text('title') ?? '',
          storeIds: storesOf(form, at, offer?.storeIds),
          ...(isChanged(form, 'validFrom') && { validFrom: timeOf(form, 'validFrom') }),
          ...(isChanged(form, 'validTo') && { validTo: timeOf(form, 'validTo') }),
          ...(isChanged(form, 'products') && { products: productsOf(form, offer?.products) }),
          description: form.text('description') ?? '',
          quantity: form.number('quantity') ?? null,
        }
      },
      done: (texts) => texts.offers.saved,
    },
    end: {
      operation: updateOffer,
      roles: MANAGERS,
      input: (_, at) => ({ offerId: at.params['offerId'], validTo: new Date(at.nowMs).toISOString() }),
      done: (texts) => texts.offers.ended,
    },
    remove: {
      operation: deleteOffer,
      roles: MANAGERS,
      input: (_, at) => ({ offerId: at.params['offerId'] }),
      done: (texts) => texts.offers.removed,
      next: () => LIST,
    },
  },
  load: offerOfPage,
  view(at) {
    const t = at.texts.offers
    const offer = at.data
    const back = (
      <a class="button" href={LIST}>
        {t.back}
      </a>
    )
    if (!offer)
      return (
        <Card>
          <EmptyState icon="offer" title={t.unknown} />
          <div class="empty">{back}</div>
        </Card>
      )
    return (
      <div class="stack wide">
        <nav class="row" aria-label={t.back}>
          {back}
        </nav>
        <Summary at={at} offer={offer} />
        <Prices at={at} offer={offer} />
        {at.has(MANAGERS) ? <Change at={at} offer={offer} /> : null}
      </div>
    )
  },
})

function Summary({ at, offer }: { at: ViewContext; offer: Offer }) {
  const t = at.texts.offers
  const { title, status, storeIds, discountPercent, clickCount, description } = offer
  const pairs = [
    [t.runs, periodOf(at, offer)],
    [t.stores, storeNames(at, storeIds)],
    [t.discount, at.formats.percent(discountPercent / 100)],
    [t.clicks, at.formats.number(clickCount)],
    [t.description, description],
  ] as const
  return (
    <Card title={title} aside={<OfferState at={at} status={status} />}>
      <div class="stack">
        <Pairs pairs={pairs} />
        {at.has(MANAGERS) ? (
          <div class="row">
            {status === 'ACTIVE' ? (
              <Confirm
                at={at}
                action="end"
                label={t.end}
                question={t.endQuestion(title)}
                explanation={t.endText}
                confirm={t.end}
              />
            ) : null}
            <Confirm
              at={at}
              action="remove"
              label={t.remove}
              question={t.removeQuestion(title)}
              explanation={t.removeText}
              confirm={t.remove}
            />
          </div>
        ) : null}
      </div>
    </Card>
  )
}

/** Names of the first stores, and how many others there are. */
function storeNames(at: PageContext, storeIds: readonly string[]): string {
  const names = new Map(at.stores.map(({ storeId, tradingName }) => [storeId, tradingName]))
  const named = storeIds.slice(0, NAMED).map((id) => names.get(id) ?? id)
  const more = storeIds.length - named.length
  return [named.join(', '), ...(more > 0 ? [at.texts.offers.andMore(at.formats.number(more))] : [])].join(' ')
}

function Prices({ at, offer: { products } }: { at: ViewContext; offer: Offer }) {
  const t = at.texts.offers
  return (
    <Card title={t.products} flush>
      <Table
        caption={t.products}
        rows={products}
        columns={[
          {
            label: t.product,
            kind: 'head',
            cell: ({ name, ean }) => (
              <>
                {name}
                {ean === undefined ? null : <span class="sub">{ean}</span>}
              </>
            ),
          },
          {
            label: t.formerPrice,
            kind: 'number',
            cell: ({ originalPrice }) => (originalPrice === undefined ? null : at.formats.money(originalPrice)),
          },
          { label: t.offerPrice, kind: 'number', cell: ({ discountPrice }) => at.formats.money(discountPrice) },
          { label: t.inStores, cell: ({ prices }) => <BranchPrices at={at} prices={prices} /> },
        ]}
      />
    </Card>
  )
}

/** Each price with the stores that have it. */
function BranchPrices({ at, prices }: { at: ViewContext; prices: Offer['products'][number]['prices'] }) {
  const byPrice = new Map<number, string[]>()
  for (const { storeId, discountPrice } of prices)
    byPrice.set(discountPrice, [...(byPrice.get(discountPrice) ?? []), storeId])
  if (byPrice.size < 2) return <span class="soft">{at.texts.offers.sameEverywhere}</span>
  return (
    <span>
      {[...byPrice].map(([price, storeIds]) => (
        <span class="sub">
          {at.formats.money(price)}: {storeNames(at, storeIds)}
        </span>
      ))}
    </span>
  )
}

function Change({ at, offer }: { at: ViewContext; offer: Offer }) {
  const t = at.texts.offers
  return (
    <Card title={t.change}>
      <ActionForm at={at} action="change">
        <OfferFields at={at} form={at.form.id === 'change' ? at.form : NO_FORM} offer={offer} />
        <div class="form-foot">
          <Submit>{t.save}</Submit>
        </div>
      </ActionForm>
    </Card>
  )
}
