import { STORE_TIME_ZONE } from '../../../policy/store-time-zone.ts'
import type { TransactionData } from '../purchases/schema.ts'
import { formatsOf } from '../../platform/texts/catalogue.ts'
import { refundSummaryOf } from './operations.ts'

/** Characters per line on 80 mm paper. */
const WIDTH = 42

const euros = new Intl.NumberFormat('de-DE', { minimumFractionDigits: 2, maximumFractionDigits: 2 })
const moment = new Intl.DateTimeFormat('de-DE', { dateStyle: 'medium', timeStyle: 'short', timeZone: STORE_TIME_ZONE })

/** Formats a receipt as plain text for a receipt printer. */
export function receiptText(receipt: TransactionData): string {
  const money = (cents: number) => euros.format(cents / 100)
  const back = refundSummaryOf(receipt)
  const { weight } = formatsOf('de')
  const lines = receipt.items.flatMap((item) => {
    const amount = row(item.depositOf === undefined ? item.name : `  + ${item.name}`, money(item.totalCent))
    const { weightGrams, pricePerKgCent } = item
    const count = back.isCancelled ? 0 : back.returnedOf(item)
    const returned =
      count === 0
        ? []
        : [count < item.quantity ? `  ${Math.round(count * 1_000) / 1_000} zurückgegeben` : '  zurückgegeben']
    return [
      amount,
      ...returned,
      ...(weightGrams === undefined || pricePerKgCent === undefined
        ? []
        : [`  ${weight(weightGrams, pricePerKgCent)}`]),
      ...(item.quantity === 1 ? [] : [`  ${item.quantity} x ${money(item.priceUnit)}`]),
    ]
  })
  const taxes = Object.entries(receipt.vatBreakdown).map(([rate, { net, tax }]) =>
    row(`MwSt ${rate} %  netto ${money(net)}`, money(tax)),
  )
  return [
    centered(receipt.storeData.name),
    centered(receipt.storeData.address),
    ...(back.isCancelled ? ['', centered(`*** STORNIERT / ${receipt.till ? 'VOIDED' : 'CANCELLED'} ***`)] : []),
    '',
    ...lines,
    '-'.repeat(WIDTH),
    row(`SUMME ${receipt.currency}`, money(receipt.totalCent)),
    ...(back.refundedCent > 0
      ? [
          row(back.isCancelled && receipt.till ? 'Storniert' : 'Erstattet', money(-back.refundedCent)),
          row('Bleibt', money(back.remainingCent)),
        ]
      : []),
    ...(back.pendingCent === 0
      ? []
      : [row('Erstattung unterwegs', back.pendingCent === null ? '' : money(back.pendingCent))]),
    ...(back.failedCent > 0 ? [row('Erstattung fehlgeschlagen', money(back.failedCent))] : []),
    ...taxes,
    '',
    ...(receipt.completedAt === undefined ? [] : [moment.format(receipt.completedAt)]),
    `Beleg ${receipt.id}`,
    ...(receipt.storeData.mode === 'demo' ? ['SANDBOX'] : []),
    'Kein steuerlicher Nachweis / no fiscal evidence',
    '',
  ].join('\n')
}

function row(left: string, right: string): string {
  const room = WIDTH - right.length - 1
  return `${left.length > room ? `${left.slice(0, room - 1)}…` : left.padEnd(room)} ${right}`
}

function centered(text: string): string {
  return text.slice(0, WIDTH).padStart(Math.floor((WIDTH + Math.min(text.length, WIDTH)) / 2))
}
