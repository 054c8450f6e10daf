import type { Language } from './assistance-texts.ts'
import type { WayOut } from './way-out.ts'

interface CheckoutTexts {
  title: string
  testTitle: string
  pay: string
  paid: string
  cancelled: string
  lines: (count: number) => string
  noMoney: string
  staffCheck: string
  confirming: string
  decline: string
  cancel: string
  receipt: string
  wayOut: Record<Exclude<WayOut, undefined>, string>
  locale: string
  other: string
}

/** What the pages of a checkout say, in the languages that they speak. */
export const CHECKOUT_TEXTS: Readonly<Record<Language, CheckoutTexts>> = {
  de: {
    title: 'Kasse',
    testTitle: 'Test-Kasse',
    pay: 'Bezahlen',
    paid: 'Bezahlt',
    cancelled: 'Abgebrochen',
    lines: (count) => (count === 1 ? '1 Position' : `${count} Positionen`),
    noMoney: 'es fließt kein Geld',
    staffCheck: 'Bitte warten: Mitarbeitende prüfen den Einkauf.',
    confirming: 'Die Zahlung wird bestätigt; diese Seite gleich neu laden.',
    decline: 'Ablehnen',
    cancel: 'Abbrechen',
    receipt: 'Zum Beleg',
    wayOut: { leave: 'Sie können gehen.', show_receipt: 'Bitte am Ausgang den Beleg zeigen.' },
    locale: 'de-DE',
    other: 'English',
  },
  en: {
    title: 'Checkout',
    testTitle: 'Test checkout',
    pay: 'Pay',
    paid: 'Paid',
    cancelled: 'Cancelled',
    lines: (count) => (count === 1 ? '1 item' : `${count} items`),
    noMoney: 'no money moves',
    staffCheck: 'Please wait: staff are checking.',
    confirming: 'Your payment is being confirmed; reload in a moment.',
    decline: 'Decline',
    cancel: 'Cancel',
    receipt: 'To the receipt',
    wayOut: { leave: 'You may leave.', show_receipt: 'Please show your receipt at the exit.' },
    locale: 'en-GB',
    other: 'Deutsch',
  },
}

const MONEY = { de: moneyOf('de'), en: moneyOf('en') }

function moneyOf(language: Language): Intl.NumberFormat {
  return new Intl.NumberFormat(CHECKOUT_TEXTS[language].locale, { style: 'currency', currency: 'EUR' })
}

/** An amount as people read it. */
export function amountText(cents: number, language: Language): string {
  return MONEY[language].format(cents / 100)
}
