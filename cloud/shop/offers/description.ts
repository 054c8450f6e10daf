import { STORE_TIME_ZONE } from '../../../policy/store-time-zone.ts'
import type { Validity } from './offer-status.ts'
import { discountOf, type OfferProduct } from './offer-products.ts'

/** Maximum number of product names in a description; further products are only counted. */
const NAMES_LISTED = 2

const DATE = new Intl.DateTimeFormat('de-DE', {
  timeZone: STORE_TIME_ZONE,
  day: '2-digit',
  month: '2-digit',
  year: 'numeric',
})

/** Generates a short German description: products, discount and validity. */
export function describeOffer(products: readonly OfferProduct[], { fromMs, toMs }: Validity): string {
  const names = products.slice(0, NAMES_LISTED).map((product) => product.name)
  const others = products.length - names.length
  const what =
    others > 0
      ? `${names.join(', ')} und ${others} ${others === 1 ? 'weiteres Produkt' : 'weitere Produkte'}`
      : names.join(' und ')
  const percent = discountOf(products)
  const less = percent > 0 ? `, ${products.length > 1 ? 'bis zu ' : ''}${percent} % günstiger` : ' im Angebot'
  // `toMs` is exclusive: an offer that ends at midnight is valid until the end of the day before.
  return `${what}${less}. Gültig vom ${DATE.format(fromMs)} bis ${DATE.format(toMs - 1)}.`
}
