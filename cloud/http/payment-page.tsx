import type { TransactionData } from '../purchases/schema.ts'
import { CheckoutEnd } from './checkout-end.tsx'
import { Page, type PageContext } from './page.tsx'
import type { ExitAdvice } from './exit-advice.ts'

/** Page on which a shopper waits before the payment, and to which the provider sends the shopper back. */
export function PaymentPage({
  purchase,
  isAwaited,
  isSold,
  way,
  reader,
}: {
  purchase: TransactionData
  isAwaited: boolean
  isSold: boolean
  way: ExitAdvice
  reader: PageContext
}) {
  const { texts, formats } = reader
  const t = texts.checkout
  const isPaid = purchase.status === 'SUCCESS' || purchase.status === 'UNLOADED'
  const isOver = purchase.status === 'CANCELLED'
  return (
    <Page title={t.title} reader={reader}>
      <h1>{isPaid ? t.paid : isOver ? t.cancelled : `${t.pay}: ${formats.money(purchase.totalCent)}`}</h1>
      <p class="soft">
        {purchase.storeData.name} · {t.lines(purchase.items.length)}
      </p>
      {isSold ? <p>{t.soldMeanwhile}</p> : isAwaited ? <p>{t.staffCheck}</p> : null}
      {isPaid || isOver || isAwaited || isSold ? null : <p>{t.confirming}</p>}
      <CheckoutEnd purchase={purchase} way={way} texts={texts} />
    </Page>
  )
}
