import type { Language } from '../../../policy/page-language.ts'
import type { SecurityTagMode } from '../../../policy/vocabulary.ts'

/** What happened, and what the reader does next. */
interface Advice {
  what: string
  todo: string
}

/** Failures that have a page. */
export type Problem =
  | 'noReceipt'
  | 'noCard'
  | 'notFound'
  | 'needsKey'
  | 'notAllowed'
  | 'rejected'
  | 'tooFast'
  | 'unavailable'
  | 'internal'

/** All texts of the cloud's pages. A missing translation fails the build. */
export interface Texts {
  language: Language
  /** Name of the language in that language. */
  languageName: string
  locale: string
  problems: Record<Problem, Advice>
  apiReference: string
  requestNumber: string
  /** Label of the store's own hint about security tags. */
  storeNote: string
  /** Default hints about the removal of security tags. */
  tagHints: Record<Exclude<SecurityTagMode, 'none'>, string>

  receipt: {
    title: string
    item: string
    quantity: string
    each: string
    amount: string
    sum: string
    receipt: string
    vat: (rate: string, net: string, tax: string) => string
    cancelled: string
    /** Stamp on the receipt of a sale that a till voided. */
    voided: string
    back: string
    refunded: string
    remains: string
    pending: string
    failed: string
    qr: string
    codeUse: string
    /** The same, once no tag is left to release. */
    codeUseAtExit: string
    tagsOff: string
    paid: string
    beforeLeaving: string
    expired: string
    noFiscalEvidence: string
  }

  loyaltyCard: {
    title: string
    show: string
    qr: string
    /** Balance; `amount` is formatted, `count` chooses the plural. */
    balance: Record<'stamps' | 'points' | 'cashback', (amount: string, count: number) => string>
    level: string
    next: (missing: string, reward: string) => string
    rewards: string
    reward: string
    cost: string
    ready: string
    expires: (date: string) => string
    inactive: string
    keep: string
  }

  checkout: {
    title: string
    testTitle: string
    /** A button was pressed while the cloud did not answer. */
    notSent: string
    pay: string
    paid: string
    cancelled: string
    /** Pieces of the goods, as on the receipt and for staff. */
    pieces: (count: number) => string
    noMoney: string
    staffCheck: string
    soldMeanwhile: string
    confirming: string
    decline: string
    cancel: string
    receipt: string
    wayOut: Record<'leave' | 'show_receipt', string>
  }

  zone: Record<
    | 'title'
    | 'intro'
    | 'label'
    | 'call'
    | 'chat'
    | 'open'
    | 'answered'
    | 'closed'
    | 'refresh'
    | 'reply'
    | 'send'
    | 'again'
    | 'shopper'
    | 'staff'
    | 'keep'
    | 'full'
    | 'unknown'
    | 'tooFast'
    | 'tooLong'
    | 'busy'
    | 'back'
    | 'lost'
    | 'old'
    | 'notConfirmed'
    | 'pressNotConfirmed',
    string
  >
}
