import type { TransactionData } from '../scan-and-go/schema.ts'
import type { Language } from './assistance-texts.ts'
import { CHECKOUT_TEXTS } from './checkout-texts.ts'
import type { WayOut } from './way-out.ts'

/** The end of a page of a checkout: the way out of the store, the receipt, and the page in the other language. */
export function CheckoutEnd({
  purchase,
  way,
  language,
  query = '',
}: {
  purchase: TransactionData
  way: WayOut
  language: Language
  query?: string
}) {
  const t = CHECKOUT_TEXTS[language]
  const isPaid = purchase.status === 'SUCCESS' || purchase.status === 'UNLOADED'
  const other = language === 'de' ? 'en' : 'de'
  return (
    <>
      {way ? (
        <p>
          <strong>{t.wayOut[way]}</strong>
        </p>
      ) : null}
      {isPaid && purchase.receiptUrl ? (
        <p>
          <a href={new URL(purchase.receiptUrl).pathname}>{t.receipt}</a>
          {purchase.securityTagHint ? <span> · {purchase.securityTagHint}</span> : null}
        </p>
      ) : null}
      <p class="soft">
        <a href={`?${query}lang=${other}`} lang={other}>
          {t.other}
        </a>
      </p>
    </>
  )
}
