import { weightText } from '../receipts/receipt-text.ts'
import { takenBack } from '../receipts/taken-back.ts'
import type { TransactionData } from '../scan-and-go/schema.ts'
import type { Language } from './assistance-texts.ts'
import { Page } from './page.tsx'
import { RECEIPT_TEXTS } from './receipt-texts.ts'

function formatsOf(language: Language) {
  const { locale } = RECEIPT_TEXTS[language]
  const euros = new Intl.NumberFormat(locale, { style: 'currency', currency: 'EUR' })
  const moment = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'short', timeZone: 'Europe/Berlin' })
  return { money: (cents: number) => euros.format(cents / 100), time: (ms: number) => moment.format(ms) }
}
const FORMATS = { de: formatsOf('de'), en: formatsOf('en') }

/** The receipt as a phone shows it when the QR code is opened. What was taken back since is said first, and struck out below. */
export function ReceiptPage({ receipt, language }: { receipt: TransactionData; language: Language }) {
  const t = RECEIPT_TEXTS[language]
  const { money, time } = FORMATS[language]
  const back = takenBack(receipt)
  const other = language === 'de' ? 'en' : 'de'
  const isExpired = back.hasGoods && receipt.receiptUrl !== undefined && receipt.receiptQrCode === undefined
  const rows = [
    { name: t.sum, amount: money(receipt.totalCent) },
    ...(back.refundedCent > 0
      ? [
          { name: t.refunded, amount: money(-back.refundedCent) },
          { name: t.remains, amount: money(back.remainingCent) },
        ]
      : []),
    ...(back.pendingCent === 0
      ? []
      : [{ name: t.pending, amount: back.pendingCent === null ? '' : money(back.pendingCent) }]),
    ...(back.failedCent > 0 ? [{ name: t.failed, amount: money(back.failedCent) }] : []),
  ]
  return (
    <Page
      title={`${t.title} ${receipt.storeData.name}`}
      language={language}
      sandbox={receipt.storeData.mode === 'demo'}
    >
      <h1>{receipt.storeData.name}</h1>
      {back.isCancelled ? <p class="stamp">{t.cancelled}</p> : null}
      <p class="soft">
        {receipt.storeData.address}
        <br />
        {receipt.completedAt === undefined ? '' : time(receipt.completedAt)} · {t.receipt} {receipt.id}
      </p>
      <table class="lines">
        <thead>
          <tr>
            <th>{t.item}</th>
            <th class="n">{t.quantity}</th>
            <th class="n">{t.each}</th>
            <th class="n">{t.amount}</th>
          </tr>
        </thead>
        <tbody>
          {receipt.items.map((item) => (
            <Line
              item={item}
              isReturned={back.isReturned(item.itemLineId)}
              note={back.isCancelled ? undefined : t.back}
              money={money}
            />
          ))}
          {rows.map(({ name, amount }) => (
            <tr>
              <th colspan={3}>{name}</th>
              <th class="n">{amount}</th>
            </tr>
          ))}
        </tbody>
      </table>
      <p>
        {Object.entries(receipt.vatBreakdown).map(([rate, { net, tax }]) => (
          <span>
            {t.vat(rate, money(net), money(tax))}
            <br />
          </span>
        ))}
      </p>
      {back.hasGoods && receipt.receiptQrCode ? (
        <img src={receipt.receiptQrCode} alt={t.qr} width="260" height="260" />
      ) : null}
      {isExpired ? <p>{t.expired}</p> : null}
      {back.hasGoods && !isExpired && receipt.securityTagHint ? <p>{receipt.securityTagHint}</p> : null}
      <p class="soft">Kein steuerlicher Nachweis / no fiscal evidence.</p>
      {receipt.receiptUrl === undefined ? null : (
        <p>
          <a href={`${new URL(receipt.receiptUrl).pathname}?lang=${other}`} lang={other} hreflang={other}>
            {t.other}
          </a>
        </p>
      )}
    </Page>
  )
}

interface LineView {
  item: TransactionData['items'][number]
  isReturned: boolean
  note: string | undefined
  money: (cents: number) => string
}

function Line({ item, isReturned, note, money }: LineView) {
  const struck = (text: string | number) => (isReturned ? <s>{text}</s> : text)
  return (
    <tr>
      <td>
        {struck(item.depositOf === undefined ? item.name : `+ ${item.name}`)}
        {weightText(item) === undefined ? null : <span class="soft"> {weightText(item)}</span>}
        {isReturned && note !== undefined ? <span class="soft"> {note}</span> : null}
      </td>
      <td class="n">{struck(item.quantity)}</td>
      <td class="n">{struck(money(item.priceUnit))}</td>
      <td class="n">{struck(money(item.totalCent))}</td>
    </tr>
  )
}

/** What stands where there is no receipt. */
export function NoReceiptPage() {
  return (
    <Page title="Kein Beleg">
      <h1>Diesen Beleg gibt es nicht</h1>
      <p>Bitte scannen Sie den QR-Code noch einmal ganz ab. / Please scan the whole QR code again.</p>
    </Page>
  )
}
