import { weightText } from '../receipts/receipt-text.ts'
import type { TransactionData } from '../scan-and-go/schema.ts'
import { Page } from './page.tsx'

const euros = new Intl.NumberFormat('de-DE', { style: 'currency', currency: 'EUR' })
const moment = new Intl.DateTimeFormat('de-DE', { dateStyle: 'medium', timeStyle: 'short', timeZone: 'Europe/Berlin' })

function money(cents: number): string {
  return euros.format(cents / 100)
}

/** The receipt as a phone shows it when the QR code is opened. */
export function ReceiptPage({ receipt }: { receipt: TransactionData }) {
  return (
    <Page title={`Beleg ${receipt.storeData.name}`} sandbox={receipt.storeData.mode === 'demo'}>
      <h1>{receipt.storeData.name}</h1>
      <p class="soft">
        {receipt.storeData.address}
        <br />
        {receipt.completedAt === undefined ? '' : moment.format(receipt.completedAt)} · Beleg {receipt.id}
      </p>
      <table>
        <thead>
          <tr>
            <th>Artikel</th>
            <th class="n">Menge</th>
            <th class="n">Einzelpreis</th>
            <th class="n">Betrag</th>
          </tr>
        </thead>
        <tbody>
          {receipt.items.map((item) => (
            <tr>
              <td>
                {item.depositOf === undefined ? item.name : `+ ${item.name}`}
                {weightText(item) === undefined ? null : <span class="soft"> {weightText(item)}</span>}
              </td>
              <td class="n">{item.quantity}</td>
              <td class="n">{money(item.priceUnit)}</td>
              <td class="n">{money(item.totalCent)}</td>
            </tr>
          ))}
          <tr>
            <th>Summe</th>
            <td />
            <td />
            <th class="n">{money(receipt.totalCent)}</th>
          </tr>
        </tbody>
      </table>
      <p>
        {Object.entries(receipt.vatBreakdown).map(([rate, { net, tax }]) => (
          <span>
            {rate} % MwSt: netto {money(net)}, Steuer {money(tax)}
            <br />
          </span>
        ))}
      </p>
      {receipt.receiptQrCode ? <img src={receipt.receiptQrCode} alt="QR-Code dieses Belegs" width="260" height="260" /> : null}
      {receipt.securityTagHint ? <p>{receipt.securityTagHint}</p> : null}
      <p class="soft">{receipt.status === 'CANCELLED' ? 'Dieser Kauf wurde storniert. ' : ''}Kein steuerlicher Nachweis / no fiscal evidence.</p>
    </Page>
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
