import type { z } from 'zod'
import { addDays, dayOf, isDay, startOfDay } from '../../shop/analytics/store-days.ts'
import type { fetchOffer } from '../../shop/offers/read-operations.ts'
import { numberOf, type FormFields, type FormState } from '../frame/form.ts'
import type { PageContext } from '../frame/page.ts'
import { amountText, cellsOf, cellText, withLineErrors } from '../frame/lines.ts'
import { Checkbox, FieldError, TextArea, TextField } from './fields.tsx'
import { Before } from './form.tsx'

export type Offer = z.output<typeof fetchOffer.response>['offer']

/** Stores that the form lists; a form has at most 200 fields. */
const STORES_LISTED = 100
/** Days that a new offer runs, unless changed. */
const USUAL_DAYS = 14
const STORE = 'store-'

/** Code or name of a product, as its line begins. */
const headOf = ({ ean, name }: { ean?: string | undefined; name: string }) => ean ?? cellText(name)

function linesOf(offer: Offer, at: PageContext): string {
  return offer.products
    .map(({ originalPrice, discountPrice, ...product }) =>
      [headOf(product), amountText(discountPrice, at), originalPrice === undefined ? '' : amountText(originalPrice, at)]
        .join('; ')
        .replace(/; $/, ''),
    )
    .join('\n')
}

/**
 * Products of the lines, as the operations take them. A line of a known product keeps the fields that a line does not
 * show, and the price of each store if the prices of the line are unchanged.
 */
export function productsOf(form: FormFields, known: Offer['products'] = []): Record<string, unknown>[] {
  const byHead = new Map(known.map((product) => [headOf(product), product]))
  return cellsOf(form.text('products') ?? '').map(([head = '', priceText = '', oldText = '']) => {
    const price = priceText === '' ? undefined : numberOf(priceText)
    const oldPrice = oldText === '' ? undefined : numberOf(oldText)
    const product = byHead.get(head)
    if (!product) return { [/^\d{7,14}$/.test(head) ? 'ean' : 'name']: head, price, oldPrice }
    const { originalPrice, discountPrice, prices, ...fields } = product
    const isSame = price === discountPrice && oldPrice === originalPrice
    return { ...fields, price, oldPrice, ...(isSame && { prices }) }
  })
}

/** Stores of the form. Stores of the offer that the form cannot list stay. */
export function storesOf(form: FormFields, at: PageContext, known: readonly string[] = []): string[] {
  if (form.isSet('allStores')) return at.stores.map(({ storeId }) => storeId)
  const listed = new Set(listedStores(at).map(({ storeId }) => storeId))
  return [...listed].filter((id) => form.isSet(`${STORE}${id}`)).concat(known.filter((id) => !listed.has(id)))
}

const listedStores = (at: PageContext) => at.stores.slice(0, STORES_LISTED)

/** Start of the first day, or end of the last. A text that is no day stays, so that the operation rejects it. */
export function timeOf(form: FormFields, name: 'validFrom' | 'validTo'): string {
  const day = form.text(name) ?? ''
  return isDay(day) ? new Date(startOfDay(name === 'validTo' ? addDays(day, 1) : day)).toISOString() : day
}

/** Last day on which the offer runs. `validTo` is the first moment at which it does not. */
export const lastDayOf = ({ validTo }: Pick<Offer, 'validTo'>) => dayOf(Date.parse(validTo) - 1)

/** The fields of a new or stored offer. */
export function OfferFields({ at, form, offer }: { at: PageContext; form: FormState; offer?: Offer }) {
  const t = at.texts.offers
  const today = dayOf(at.nowMs)
  const ean = at.query.get('ean')
  const first = offer ? dayOf(Date.parse(offer.validFrom)) : today
  const last = offer ? lastDayOf(offer) : addDays(today, USUAL_DAYS - 1)
  const lines = offer ? linesOf(offer, at) : ean === null ? '' : `${ean.slice(0, 200)}; `
  return (
    <>
      <TextField form={form} name="title" label={t.name} value={offer?.title ?? ''} maxlength={80} required />
      <div class="grid">
        <TextField form={form} name="validFrom" type="date" label={t.from} value={first} required />
        <TextField form={form} name="validTo" type="date" label={t.to} value={last} required />
      </div>
      <StoreFields at={at} form={form} chosen={offer?.storeIds ?? (at.store ? [at.store.storeId] : [])} />
      <TextArea
        form={withLineErrors(at, form, 'products')}
        name="products"
        label={t.lines}
        hint={t.linesHint}
        value={lines}
        rows={8}
        required
      />
      <Before values={{ validFrom: first, validTo: last, products: lines }} />
      <TextArea
        form={form}
        name="description"
        label={t.description}
        hint={t.descriptionHint}
        value={offer?.description ?? ''}
        maxlength={1_000}
      />
      <TextField
        form={form}
        name="quantity"
        label={t.quantity}
        hint={t.quantityHint}
        value={offer?.quantity === undefined ? '' : String(offer.quantity)}
        inputmode="numeric"
      />
    </>
  )
}

function StoreFields({ at, form, chosen }: { at: PageContext; form: FormState; chosen: readonly string[] }) {
  const t = at.texts.offers
  const error = form.errors['storeIds']
  const stores = listedStores(at)
  const isChosen = new Set(chosen)
  return (
    <fieldset class="field" {...(error !== undefined && { 'aria-describedby': 'offer-stores-error' })}>
      <legend>{t.stores}</legend>
      <span class="hint">{t.storesHint}</span>
      {at.storesTotal > 1 && at.storesTotal <= at.stores.length ? (
        <Checkbox form={form} name="allStores" label={t.allStores} />
      ) : null}
      {stores.map(({ storeId, tradingName, city }) => (
        <Checkbox
          form={form}
          name={`${STORE}${storeId}`}
          label={tradingName}
          hint={city}
          value={isChosen.has(storeId) ? 'yes' : undefined}
        />
      ))}
      {at.storesTotal > stores.length ? (
        <span class="hint">{t.moreStores(at.formats.number(stores.length), at.formats.number(at.storesTotal))}</span>
      ) : null}
      {error === undefined ? null : <FieldError id="offer-stores" error={error} />}
    </fieldset>
  )
}
