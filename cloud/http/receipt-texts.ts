import type { Language } from './assistance-texts.ts'

interface ReceiptTexts {
  title: string
  item: string
  quantity: string
  each: string
  amount: string
  sum: string
  receipt: string
  vat: (rate: string, net: string, tax: string) => string
  cancelled: string
  back: string
  refunded: string
  remains: string
  pending: string
  failed: string
  qr: string
  expired: string
  locale: string
  other: string
}

/** What the page of a receipt says, in the languages that it speaks. */
export const RECEIPT_TEXTS: Readonly<Record<Language, ReceiptTexts>> = {
  de: {
    title: 'Beleg',
    item: 'Artikel',
    quantity: 'Menge',
    each: 'Preis',
    amount: 'Betrag',
    sum: 'Summe',
    receipt: 'Beleg',
    vat: (rate, net, tax) => `${rate} % MwSt: netto ${net}, Steuer ${tax}`,
    cancelled: 'Storniert',
    back: 'zurückgegeben',
    refunded: 'Erstattet',
    remains: 'Bleibt',
    pending: 'Erstattung unterwegs',
    failed: 'Erstattung fehlgeschlagen',
    qr: 'QR-Code dieses Belegs',
    expired: 'Der QR-Code dieses Belegs galt 24 Stunden. Für gesicherte Ware wenden Sie sich bitte an das Personal.',
    locale: 'de-DE',
    other: 'English',
  },
  en: {
    title: 'Receipt',
    item: 'Item',
    quantity: 'Quantity',
    each: 'Each',
    amount: 'Amount',
    sum: 'Total',
    receipt: 'Receipt',
    vat: (rate, net, tax) => `${rate} % VAT: net ${net}, tax ${tax}`,
    cancelled: 'Cancelled',
    back: 'returned',
    refunded: 'Refunded',
    remains: 'Remains',
    pending: 'Refund on its way',
    failed: 'Refund failed',
    qr: 'QR code of this receipt',
    expired: 'The QR code of this receipt was valid for 24 hours. For goods with a security tag, please ask the staff.',
    locale: 'en-GB',
    other: 'Deutsch',
  },
}
