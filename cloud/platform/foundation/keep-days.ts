/**
 * How long each kind of data is kept, days. `--keep-days` changes the numbers; docs/guides/data-protection.md gives the
 * reasons and sources of the defaults.
 */
const KEPT_KINDS = {
  /** Purchases with receipts, payments and refunds; pick-up orders. § 147 (3) AO: vouchers, 8 years. */
  purchases: { days: 2_922, min: 30, max: 36_500, isFromYearEnd: true },
  /** Day closings. § 147 (3) AO: books and records, 10 years. */
  closings: { days: 3_653, min: 30, max: 36_500, isFromYearEnd: true },
  /** Audit log. It documents the settings of the shop: 10 years, as for records. */
  audit: { days: 3_653, min: 30, max: 36_500, isFromYearEnd: true },
  /** Link between a customer and purchases, sessions, loyalty, follows. § 195 BGB: claims end after 3 years. */
  customers: { days: 1_096, min: 30, max: 36_500, isFromYearEnd: false },
  /** Releases, alarms, status changes of items, and reports of agents. They name operators. */
  protection: { days: 365, min: 30, max: 36_500, isFromYearEnd: false },
  /** Push subscriptions that were not registered again. */
  push: { days: 365, min: 1, max: 36_500, isFromYearEnd: false },
  /** Events and webhook deliveries with the answers of the receivers. */
  events: { days: 30, min: 1, max: 365, isFromYearEnd: false },
  /** Requests for staff with their messages. */
  chats: { days: 30, min: 1, max: 365, isFromYearEnd: false },
  /** Sealed ids of erased customers, for restored backups. Not shorter than the age of the oldest backup. */
  backups: { days: 365, min: 30, max: 36_500, isFromYearEnd: false },
  /** Acknowledged rows in the ledgers of agents. A restored cloud gets them again. */
  ledger: { days: 14, min: 1, max: 14, isFromYearEnd: false },
} as const

export type KeptKind = keyof typeof KEPT_KINDS
export type KeepDays = Readonly<Partial<Record<KeptKind, number>>>

const DAY_MS = 86_400_000

/** Days for which this kind is kept. */
export function daysOf(keepDays: KeepDays | undefined, kind: KeptKind): number {
  return keepDays?.[kind] ?? KEPT_KINDS[kind].days
}

/**
 * Data of this kind from before this time (ms) is deleted. Periods of bookkeeping begin at the end of the calendar year
 * (§ 147 (4) AO). One more day covers the time zones.
 */
export function deletedBeforeMs(keepDays: KeepDays | undefined, kind: KeptKind, nowMs: number): number {
  const beforeMs = nowMs - daysOf(keepDays, kind) * DAY_MS
  if (!KEPT_KINDS[kind].isFromYearEnd) return beforeMs
  return Date.UTC(new Date(beforeMs).getUTCFullYear(), 0, 1) - DAY_MS
}

/** Parses `purchases=2922,chats=14`. In an error message the text of a fault follows the name of the setting. */
export function parseKeepDays(text: string): { value: KeepDays } | { fault: string } {
  const value: Partial<Record<KeptKind, number>> = {}
  for (const part of text.split(',')) {
    const [kind = '', days = ''] = part.split('=').map((word) => word.trim())
    if (!isKeptKind(kind)) return { fault: `does not know "${kind}": use ${Object.keys(KEPT_KINDS).join(', ')}` }
    const { min, max } = KEPT_KINDS[kind]
    const number = /^\d{1,5}$/.test(days) ? Number(days) : Number.NaN
    if (!(number >= min && number <= max))
      return { fault: `needs a whole number of days from ${min} to ${max} for ${kind}, not "${days}"` }
    value[kind] = number
  }
  return { value }
}

function isKeptKind(text: string): text is KeptKind {
  return Object.hasOwn(KEPT_KINDS, text)
}
