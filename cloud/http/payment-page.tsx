import type { TransactionData } from '../scan-and-go/schema.ts'
import type { Language } from './assistance-texts.ts'
import { CheckoutEnd } from './checkout-end.tsx'
import { amountText, CHECKOUT_TEXTS } from './checkout-texts.ts'
import { Page } from './page.tsx'
import type { WayOut } from './way-out.ts'

/** Where a shopper waits before the payment, and comes back to after it. */
export function PaymentPage({
  purchase,
  isAwaited,
  way,
  language,
}: {
  purchase: TransactionData
  isAwaited: boolean
  way: WayOut
  language: Language
}) {
  const t = CHECKOUT_TEXTS[language]
  const isPaid = purchase.status === 'SUCCESS' || purchase.status === 'UNLOADED'
  const isOver = purchase.status === 'CANCELLED'
  return (
    <Page title={t.title} language={language}>
      <h1>{isPaid ? t.paid : isOver ? t.cancelled : `${t.pay}: ${amountText(purchase.totalCent, language)}`}</h1>
      <p class="soft">
        {purchase.storeData.name} · {t.lines(purchase.items.length)}
      </p>
      {isAwaited ? <p>{t.staffCheck}</p> : null}
      {isPaid || isOver || isAwaited ? null : <p>{t.confirming}</p>}
      <CheckoutEnd purchase={purchase} way={way} language={language} query="returned=1&" />
    </Page>
  )
}
