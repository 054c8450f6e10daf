import type { TransactionData } from '../../shop/purchases/schema.ts'
import type { Texts } from '../../platform/texts/texts.ts'
import { TagHint } from './receipt-page.tsx'
import type { ExitAdvice } from './exit-advice.ts'

/** End of a checkout page: advice for the exit, and the receipt. */
export function CheckoutEnd({ purchase, way, texts }: { purchase: TransactionData; way: ExitAdvice; texts: Texts }) {
  const t = texts.checkout
  const isPaid = purchase.status === 'SUCCESS' || purchase.status === 'UNLOADED'
  return (
    <>
      {way ? (
        <p>
          <strong>{t.wayOut[way]}</strong>
        </p>
      ) : null}
      {isPaid && purchase.receiptUrl ? (
        <>
          <p>
            <a href={new URL(purchase.receiptUrl).pathname}>{t.receipt}</a>
          </p>
          <TagHint texts={texts} purchase={purchase} />
          {purchase.receiptQrCode ? <img class="code" src={purchase.receiptQrCode} alt={texts.receipt.qr} /> : null}
        </>
      ) : null}
    </>
  )
}
