import type { Call } from '../../platform/operations/operation.ts'
import { groupBy } from '../../platform/persistence/database.ts'
import { countExceptions } from '../../protection/records/exceptions.ts'

/** What is doubtful about a recorded sale: the till gets a warning, and people an exception. */
export interface Doubt {
  readonly code: keyof typeof TEXTS
  readonly lineId?: string
  readonly tag?: string
  /** What the exception is about: one exception in the store for each code and subject. */
  readonly subject: string
  /** Status of the item. */
  readonly status?: string | undefined
}

const TEXTS = {
  sale_tag_unknown: ({ tag }: Doubt) => `the tag ${tag} is not registered in this store`,
  item_already_paid: ({ tag }: Doubt) => `the tag ${tag} was sold before`,
  sale_of_held_item: ({ tag, subject, status }: Doubt) =>
    tag === undefined
      ? `the product ${subject} is recalled: keep the goods here`
      : `the tag ${tag} is ${status === 'sellable' ? 'recalled' : status}: keep the goods here`,
  sale_of_more_items: ({ tag }: Doubt) => `the line has fewer pieces than tags: the tag ${tag} keeps its status`,
  sale_of_other_product: ({ tag }: Doubt) => `the tag ${tag} is registered for another product`,
  item_changed: ({ tag }: Doubt) =>
    `the goods with the tag ${tag} came back, or were counted again, since they were sold`,
  not_sold_at_a_till: ({ tag }: Doubt) =>
    `untag took the money for the goods with the tag ${tag}: refund them with refundPayment, if the till did not pay it back`,
  sale_is_void: ({ subject }: Doubt) => `${subject} was voided before it arrived: its goods alarm`,
  sale_product_unknown: ({ subject }: Doubt) => `the product ${subject} is not in the catalogue of this store`,
  sale_total_differs: ({ subject }: Doubt) => `the lines of ${subject} do not add up to its total`,
  sale_in_future: ({ subject }: Doubt) => `${subject} is dated in the future: set the clock of the till`,
  sale_over_limit: ({ subject }: Doubt) =>
    `${subject} sold more in an hour than the policy allows: its sales release nothing`,
  sale_of_revoked_till: ({ subject }: Doubt) => `${subject} is revoked: its sales release nothing`,
  sale_too_old: ({ subject }: Doubt) => `${subject} is older than 24 hours: its goods count as gone`,
} satisfies Record<string, (doubt: Doubt) => string>

/** A warning to the till about one of its sales. */
export interface Warning {
  code: string
  message: string
  lineId?: string
  tag?: string
}

/** The warning that the till gets. */
export function warningOf(doubt: Doubt): Warning {
  const { code, lineId, tag } = doubt
  return {
    code,
    message: TEXTS[code](doubt),
    ...(lineId !== undefined && { lineId }),
    ...(tag !== undefined && { tag }),
  }
}

/** Doubts about sales whose tags keep their status. */
const SELLS_NOTHING: ReadonlySet<string> = new Set<Doubt['code']>(['sale_over_limit', 'sale_of_revoked_till'])

/** The warnings with which a sale was answered. */
export function warningsOf(sale: { readonly result: string | null } | undefined): readonly Warning[] {
  return (JSON.parse(sale?.result ?? '{"warnings":[]}') as { warnings: readonly Warning[] }).warnings
}

/** True if the tags of a sale that was answered like this became paid, as also those of an old sale do. */
export function makesPaid(sale: { readonly result: string | null }): boolean {
  return !warningsOf(sale).some(({ code }) => SELLS_NOTHING.has(code))
}

/** What needs no attention of people, or has an exception of its own: `return_unclear`. */
type SilentCode = 'sale_too_old' | 'sale_is_void' | 'not_sold_at_a_till'
const SILENT: ReadonlySet<string> = new Set<SilentCode>(['sale_too_old', 'sale_is_void', 'not_sold_at_a_till'])

type LoudCode = Exclude<Doubt['code'], SilentCode>

/** Doubts of one code that are exceptions of their own. More are one exception about the sale. */
const EXCEPTIONS_OF_CODE = 20

/** Raises the exceptions of a sale's doubts. */
export async function raiseDoubts(
  call: Call,
  storeId: string,
  tenant: string,
  doubts: readonly Doubt[],
  purchaseId: string,
): Promise<void> {
  const scope = { db: call.db, tenant, platform: call.services.platform, nowMs: call.nowMs }
  const loud = doubts.flatMap((doubt) => (SILENT.has(doubt.code) ? [] : { ...doubt, kind: doubt.code as LoudCode }))
  const exceptions = [...groupBy(loud, ({ kind }) => kind).entries()].flatMap(([kind, ofCode]) => {
    const [first] = ofCode
    if (first && ofCode.length > EXCEPTIONS_OF_CODE)
      return [
        { kind, subject: purchaseId, detail: `${TEXTS[kind](first)}, and ${ofCode.length - 1} more of this sale` },
      ]
    return ofCode.map((doubt) => ({ kind, subject: doubt.subject, detail: TEXTS[kind](doubt) }))
  })
  await countExceptions(
    scope,
    exceptions.map((exception) => ({ ...exception, storeId, purchaseId })),
  )
}
