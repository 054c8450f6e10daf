import type { TransactionData } from '../scan-and-go/schema.ts'
import type { Language } from './assistance-texts.ts'
import { CheckoutEnd } from './checkout-end.tsx'
import { amountText, CHECKOUT_TEXTS } from './checkout-texts.ts'
import { Page } from './page.tsx'
import type { WayOut } from './way-out.ts'

/** The test checkout of the sandbox: pay, decline or cancel, without any payment provider. */
export function CheckoutPage({
  purchase,
  action,
  way,
  language,
}: {
  purchase: TransactionData
  action: string
  way: WayOut
  language: Language
}) {
  const t = CHECKOUT_TEXTS[language]
  const isOpen = purchase.status === 'PENDING_PAYMENT' || purchase.status === 'CREATED'
  const isAwaited = isOpen && purchase.status === 'CREATED'
  const isPaid = purchase.status === 'SUCCESS' || purchase.status === 'UNLOADED'
  return (
    <Page title={t.testTitle} language={language} sandbox>
      <h1>{isOpen ? `${t.pay}: ${amountText(purchase.totalCent, language)}` : isPaid ? t.paid : t.cancelled}</h1>
      <p class="soft">
        {purchase.storeData.name} · {t.lines(purchase.items.length)} · {t.noMoney}
      </p>
      {isAwaited ? <p>{t.staffCheck}</p> : null}
      {isOpen ? (
        <form class="row" method="post" action={action}>
          {isAwaited ? null : (
            <button class="main" name="result" value="paid">
              {t.pay}
            </button>
          )}
          <button name="result" value="declined">
            {t.decline}
          </button>
          <button name="result" value="cancelled">
            {t.cancel}
          </button>
        </form>
      ) : null}
      <CheckoutEnd purchase={purchase} way={way} language={language} />
    </Page>
  )
}
