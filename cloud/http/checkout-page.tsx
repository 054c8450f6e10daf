import type { TransactionData } from '../scan-and-go/schema.ts'
import { Page } from './page.tsx'
import { WAY_OUT_TEXT, type WayOut } from './way-out.ts'

const euros = new Intl.NumberFormat('de-DE', { style: 'currency', currency: 'EUR' })

/** The test checkout of the sandbox: pay, decline or cancel, without any payment provider. */
export function CheckoutPage({ purchase, action, way }: { purchase: TransactionData; action: string; way: WayOut }) {
  const isOpen = purchase.status === 'PENDING_PAYMENT' || purchase.status === 'CREATED'
  const isAwaited = isOpen && purchase.status === 'CREATED'
  const isPaid = purchase.status === 'SUCCESS' || purchase.status === 'UNLOADED'
  return (
    <Page title="Test-Checkout" sandbox>
      <h1>{isOpen ? `Bezahlen: ${euros.format(purchase.totalCent / 100)}` : isPaid ? 'Bezahlt' : 'Abgebrochen'}</h1>
      <p class="soft">
        {purchase.storeData.name} · {purchase.items.length} Positionen · es fließt kein Geld
      </p>
      {isAwaited ? <p>Bitte warten: Mitarbeitende prüfen den Einkauf. / Please wait: staff are checking.</p> : null}
      {isOpen ? (
        <form class="row" method="post" action={action}>
          {isAwaited ? null : (
            <button class="main" name="result" value="paid">
              Bezahlen
            </button>
          )}
          <button name="result" value="declined">
            Ablehnen
          </button>
          <button name="result" value="cancelled">
            Abbrechen
          </button>
        </form>
      ) : null}
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
