import type { DenyReason, ItemStatus } from '../../../policy/vocabulary.ts'
import type { Texts } from '../texts/texts.ts'
import { dayTime } from './status-view.ts'
import type { NotUnderstood, PageAnswer, PageGoods, PageOrder, PageResult, PageUsedReceipt } from './wire.ts'

type PageDecision = Extract<PageResult, { kind: 'decision' }>

/** granted ✓ · refused ✕ · staff: staff must come · unsure: staff must check · note: no decision */
export type Tone = 'granted' | 'refused' | 'staff' | 'unsure' | 'note'

/** A result on the station page, in the language of the page. */
export interface ResultView {
  tone: Tone
  headline: string
  /** Name of the product that the result is about. '' if unknown. */
  product: string
  /** Hash of its small picture. '' if the agent has none. */
  picture: string
  /** What is left: the number of labels that are still on, or the items of an order. '' if nothing is left. */
  left: string
  /** The goods that are left, such as `2 × Jeans (€69.90)`. '' if unknown. */
  next: string
  /** The same with fewer names, for a small screen. */
  shorterNext: readonly string[]
  message: string
  advice: string
  /**
   * Why the button sends the same scan again: for the next label, for a retry, for an operator's approval, or because
   * only staff may send it. Null: no button.
   */
  again: 'next' | 'retry' | 'approve' | 'sign_in' | null
  /** Time until the page is idle again, s. */
  seconds: number
}

/**
 * `staff`: only staff can resolve the denial. `refused`: the page explains the denial to the customer. `note`: nothing is
 * to be done.
 */
const REFUSAL_TONES: Record<DenyReason, 'refused' | 'staff' | 'note'> = {
  token_invalid: 'refused',
  token_expired: 'refused',
  token_revoked: 'staff',
  device_unknown: 'staff',
  device_revoked: 'staff',
  store_mismatch: 'refused',
  locker_mismatch: 'refused',
  clock_untrusted: 'staff',
  policy_stale: 'staff',
  device_not_capable: 'staff',
  technology_mismatch: 'staff',
  item_unknown: 'staff',
  recalled: 'staff',
  item_not_paid: 'refused',
  no_tagged_goods: 'note',
  already_redeemed: 'staff',
  authorization_outstanding: 'staff',
  action_not_allowed: 'staff',
  workflow_not_allowed: 'staff',
  manual_assistance_required: 'staff',
  limit_exceeded: 'staff',
  tag_not_read: 'refused',
}

/** Tone of an item status. */
const STATUS_TONES: Record<ItemStatus, Tone> = {
  sellable: 'refused',
  paid: 'granted',
  reserved_bopis: 'refused',
  picked_up: 'granted',
  returned: 'refused',
  transfer_in_transit: 'granted',
  cancelled: 'refused',
  exception_hold: 'staff',
}

const SECONDS: Record<Tone, number> = { granted: 6, refused: 12, staff: 20, unsure: 30, note: 10 }
const ALARM_SECONDS = 60
/** Time for which the page shows an order, s. Staff fetch the goods in this time. */
const ORDER_SECONDS = 60
/** The longest time for which a result is shown, ms. */
export const LONGEST_VIEW_MS = Math.max(ALARM_SECONDS, ORDER_SECONDS) * 1_000
/** Time in which the shopper can present the next item, s. */
const COUNTING_SECONDS = 30

/** Kinds of goods that a result names at most. */
const GOODS_LIMIT = 3

/** Denials that an operator can approve. */
const APPROVABLE: ReadonlySet<DenyReason> = new Set([
  'manual_assistance_required',
  'authorization_outstanding',
  'limit_exceeded',
])

/** Codes that work after a sign-in. */
const FOR_STAFF: ReadonlySet<NotUnderstood> = new Set(['needs_staff', 'unknown_code_or_number'])

/** Makes the view of a result. Undefined for a sign-in, which the footer shows. */
export function resultView(result: PageResult, texts: Texts): ResultView | undefined {
  if (result.kind === 'operator') return undefined
  if (result.kind === 'decision')
    return {
      ...(isUsedReceipt(result) ? usedReceipt('staff', result.used, texts) : decided(result, texts)),
      product: result.product ?? '',
      picture: result.picture ?? '',
      ...nextGoods(result.next, texts),
    }
  if (result.kind === 'receipt') return { ...receipt(result, texts), ...nextGoods(result.next, texts) }
  if (result.kind === 'alarm')
    return view('staff', texts.callStaff, {
      message: texts.alarms[result.what].what,
      advice: texts.alarms[result.what].todo,
      seconds: ALARM_SECONDS,
    })
  if (result.kind === 'order') return order(result.order, texts)
  const { headline, what, todo } = texts.notUnderstood[result.why]
  return view(result.why === 'out_of_order' ? 'staff' : 'note', headline, {
    message: what,
    advice: todo,
    again: FOR_STAFF.has(result.why) ? 'sign_in' : null,
  })
}

/** Label of the button that sends the scan again. */
export function againText(again: ResultView['again'], texts: Texts): string {
  const labels = { next: texts.nextLabel, retry: texts.tryAgain, approve: texts.approve, sign_in: texts.signIn }
  return again === null ? '' : labels[again]
}

/** The goods that are left, in words. A longer list ends with the number of the others. */
function nextGoods(goods: readonly PageGoods[] | undefined, texts: Texts): Pick<ResultView, 'next' | 'shorterNext'> {
  if (!goods || goods.length === 0) return { next: '', shorterNext: [] }
  const euros = new Intl.NumberFormat(texts.language, { style: 'currency', currency: 'EUR' })
  const words = goods.map(
    (each) => `${each.quantity}\u00a0×\u00a0${goodsName(each, texts)} (${euros.format(each.priceCent / 100)})`,
  )
  const firstOf = (limit: number) => {
    const others = goods.slice(limit).reduce((sum, { quantity }) => sum + quantity, 0)
    return texts.stillOn(`${words.slice(0, limit).join(', ')}${others > 0 ? ` ${texts.andMore(others)}` : ''}`)
  }
  const limits = Array.from({ length: Math.min(GOODS_LIMIT, goods.length) }, (_, n) => n + 1).toReversed()
  const [next = '', ...shorterNext] = limits.map(firstOf)
  return { next, shorterNext }
}

/** Receipts have no names of products: goods with the facts of several products have a common name. */
function goodsName({ name, category, brand }: PageGoods, texts: Texts): string {
  const kind = category.charAt(0).toLocaleUpperCase(texts.language) + category.slice(1)
  return name ?? ([brand, kind].filter((part) => part !== '').join(' ') || texts.item)
}

/** True if a receipt, rather than a tag, has nothing left to release. */
function isUsedReceipt({ answer, item }: PageDecision): boolean {
  return item === undefined && answer.reason === 'already_redeemed' && answer.action !== 'authorize_exit'
}

/** Says when and where the labels were released, so that staff can compare it with what the shopper says. */
function usedReceipt(tone: 'staff' | 'note', used: PageUsedReceipt | undefined, texts: Texts): ResultView {
  const when = used && dayTime(Date.parse(used.at), texts.language)
  return view(tone, texts.alreadyReleased, {
    message: when === undefined ? texts.nothingLeft : texts.nothingLeftSince(when, used?.deviceName),
    advice: texts.nothingLeftAdvice,
  })
}

function decided({ answer, forStaff = 0 }: PageDecision, texts: Texts): ResultView {
  return answer.authorized ? granted(answer, forStaff, texts) : refused(answer, texts)
}

/** Makes a view. Texts that `more` lacks are empty. */
function view(tone: Tone, headline: string, more: Partial<ResultView>): ResultView {
  return {
    tone,
    headline,
    product: '',
    picture: '',
    left: '',
    next: '',
    shorterNext: [],
    message: '',
    advice: '',
    again: null,
    seconds: SECONDS[tone],
    ...more,
  }
}

/** View of a receipt at a device that reads tags, where the receipt alone releases nothing. */
function receipt({ left, used }: Extract<PageResult, { kind: 'receipt' }>, texts: Texts): ResultView {
  if (left === 0) return usedReceipt('note', used, texts)
  return view('granted', texts.receiptRead.what, {
    left: texts.labelsLeft(left),
    message: texts.receiptRead.todo,
    seconds: COUNTING_SECONDS,
  })
}

/** View of an order. Staff hand over only orders that are ready. */
function order({ status, items, note }: PageOrder, texts: Texts): ResultView {
  const { what, todo } = texts.orders[status] ?? texts.unknownOrder
  return view(status === 'ready' ? 'granted' : 'note', what, {
    left: items.map(({ name, quantity }) => `${quantity} × ${name}`).join(', '),
    message: todo,
    advice: note ?? '',
    seconds: ORDER_SECONDS,
  })
}

function granted(answer: PageAnswer, forStaff: number, texts: Texts): ResultView {
  const { outcome, remaining, itemCount, action } = answer
  const left = remaining > 0 ? texts.labelsLeft(remaining) : ''
  if (outcome === 'unknown' || outcome === 'failed') {
    const { what, why, todo } = texts[outcome]
    // After `unknown` the label may be on or off, so staff must check. After `failed` the label is still on.
    return view('unsure', what, { message: why, advice: todo, left, again: outcome === 'failed' ? 'retry' : null })
  }
  if (action === 'verify_item_status') return information(answer, texts)
  const message = remaining > 0 && forStaff > 0 ? texts.moreForStaff(forStaff) : ''
  if (remaining > 0)
    return view('granted', texts.granted[action], { left, message, again: 'next', seconds: COUNTING_SECONDS })
  // The shopper must not leave with labels that are still on.
  if (forStaff > 0)
    return view('staff', texts.callStaff, {
      left: texts.leftForStaff(forStaff),
      message: texts.restNeedsStaff,
      again: 'approve',
    })
  return view('granted', texts.granted[action], { message: itemCount > 1 ? texts.allDone(itemCount) : '' })
}

function information({ itemStatus, action }: PageAnswer, texts: Texts): ResultView {
  if (itemStatus === undefined) return view('note', texts.granted[action], { message: texts.statusUnknown })
  const tone = STATUS_TONES[itemStatus]
  return view(tone, texts.itemStatuses[itemStatus], {
    message: texts.granted[action],
    seconds: Math.max(SECONDS[tone], SECONDS.note),
  })
}

function refused({ reason, itemStatus }: PageAnswer, texts: Texts): ResultView {
  if (reason === undefined) return view('staff', texts.callStaff, { message: texts.noReason })
  const tone = REFUSAL_TONES[reason]
  const { what, todo } = texts.reasons[reason]
  const headlines = { staff: texts.callStaff, refused: texts.refused, note: texts.nothingToRelease }
  return view(tone, headlines[tone], {
    message: withStatus(what, reason === 'recalled' ? undefined : itemStatus, texts),
    advice: todo,
    again: APPROVABLE.has(reason) ? 'approve' : null,
  })
}

/** Adds the item status to a reason, if the status adds information. */
export function withStatus(what: string, itemStatus: ItemStatus | undefined, texts: Texts): string {
  const isInformative = itemStatus !== undefined && itemStatus !== 'sellable' && itemStatus !== 'paid'
  return isInformative ? `${what} (${texts.itemStatuses[itemStatus]})` : what
}
