import type { TransactionData } from '../purchases/schema.ts'
import { CheckoutEnd } from './checkout-end.tsx'
import { Page, type PageContext } from './page.tsx'
import type { ExitAdvice } from './exit-advice.ts'

/** The test checkout of the sandbox, without a payment provider. */
export function CheckoutPage({
  purchase,
  action,
  isSold,
  way,
  reader,
}: {
  purchase: TransactionData
  action: string
  isSold: boolean
  way: ExitAdvice
  reader: PageContext
}) {
  const { texts, formats } = reader
  const t = texts.checkout
  const isOpen = purchase.status === 'PENDING_PAYMENT' || purchase.status === 'CREATED'
  const isAwaited = isOpen && purchase.status === 'CREATED'
  const isPaid = purchase.status === 'SUCCESS' || purchase.status === 'UNLOADED'
  return (
    <Page title={t.testTitle} reader={reader} sandbox>
      <h1>{isOpen ? `${t.pay}: ${formats.money(purchase.totalCent)}` : isPaid ? t.paid : t.cancelled}</h1>
      <p class="soft">
        {purchase.storeData.name} · {t.lines(purchase.items.length)} · {t.noMoney}
      </p>
      {isSold ? <p>{t.soldMeanwhile}</p> : isAwaited ? <p>{t.staffCheck}</p> : null}
      {isOpen ? (
        <form class="row" method="post" action={action}>
          {isAwaited || isSold ? null : (
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
      <CheckoutEnd purchase={purchase} way={way} texts={texts} />
    </Page>
  )
}
