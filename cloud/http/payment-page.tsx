import type { TransactionData } from '../scan-and-go/schema.ts'
import { Page } from './page.tsx'
import { WAY_OUT_TEXT, type WayOut } from './way-out.ts'

const euros = new Intl.NumberFormat('de-DE', { style: 'currency', currency: 'EUR' })

/** Where a shopper waits before the payment, and comes back to after it. */
export function PaymentPage({ purchase, isAwaited, way }: { purchase: TransactionData; isAwaited: boolean; way: WayOut }) {
  const isPaid = purchase.status === 'SUCCESS' || purchase.status === 'UNLOADED'
  const isOver = purchase.status === 'CANCELLED'
  return (
    <Page title="Checkout">
      <h1>{isPaid ? 'Bezahlt' : isOver ? 'Abgebrochen' : `Bezahlen: ${euros.format(purchase.totalCent / 100)}`}</h1>
      <p class="soft">
        {purchase.storeData.name} · {purchase.items.length} Positionen
      </p>
      {isAwaited ? <p>Bitte warten: Mitarbeitende prüfen den Einkauf. / Please wait: staff are checking.</p> : null}
      {isPaid || isOver || isAwaited ? null : <p>Die Zahlung wird bestätigt; diese Seite gleich neu laden. / Your payment is being confirmed; reload in a moment.</p>}
      {way ? <p><strong>{WAY_OUT_TEXT[way]}</strong></p> : null}
      {isPaid && purchase.receiptUrl ? (
        <p>
          <a href={new URL(purchase.receiptUrl).pathname}>Zum Beleg</a>
          {purchase.securityTagHint ? <span> · {purchase.securityTagHint}</span> : null}
        </p>
      ) : null}
    </Page>
  )
}
