import { centsOf } from '../../platform/operations/fields.ts'
import { piecesLeft } from '../../../policy/decimals.ts'
import { paidForPieces } from '../../shop/purchases/line-value.ts'
import { Card } from '../components/card.tsx'
import { Checkbox, Select, TextField } from '../components/fields.tsx'
import { ActionForm, Submit } from '../components/form.tsx'
import type { ViewContext } from '../frame/page.ts'
import { isEffective, type Purchase } from './purchase-history.ts'

/** Kinds of refunds that may name no goods. */
const GOODS_UNKNOWN: ReadonlySet<string> = new Set(['part'])

/** Number of returned pieces by line. */
export function returnedPieces({ refunds }: Purchase): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const { itemLineId, quantity, part = quantity } of refunds
    .filter(isEffective)
    .flatMap(({ lines }) => lines ?? []))
    counts.set(itemLineId, part + (counts.get(itemLineId) ?? 0))
  return counts
}

type PurchaseLine = Purchase['items'][number]

/** Pieces of a line that did not come back, with its sale or later. */
export function leftOfLine(line: PurchaseLine, gone: ReadonlyMap<string, number>): number {
  return piecesLeft(line.quantity - (line.cameBack ?? 0), gone.get(line.itemLineId) ?? 0)
}

/** What was paid for pieces of a line of which `left` did not come back yet, cents. */
function paidFor({ paid, quantity, cameBack = 0 }: PurchaseLine, left: number, count: number): number {
  return paidForPieces(centsOf(paid), quantity - cameBack, quantity - cameBack - left, count)
}

/** What did not come back yet, with what was paid for it. */
export function goodsLeft(purchase: Purchase) {
  const gone = returnedPieces(purchase)
  return purchase.items.flatMap((line) => {
    const left = leftOfLine(line, gone)
    if (line.price < 0 || left === 0) return []
    const { name, quantity: of } = line
    return [{ name, quantity: left, paid: paidFor(line, left, left) / 100, before: of - left, of }]
  })
}

interface ChosenLine {
  readonly line: PurchaseLine
  readonly quantity: number
  /** Pieces of the line that did not come back before. */
  readonly left: number
  readonly paidCent: number
}

/** The lines that the form chose, and the deposits on them. */
function chosenLines(at: ViewContext, purchase: Purchase): ChosenLine[] {
  const gone = returnedPieces(purchase)
  const ids = new Set(at.query.getAll('line'))
  const leftOf = (line: PurchaseLine) => leftOfLine(line, gone)
  const wantedOf = (lineId: string, left: number) => {
    const wanted = Number(at.query.get(`quantity-${lineId}`) ?? left)
    return Number.isInteger(wanted) && wanted > 0 ? Math.min(wanted, left) : left
  }
  return purchase.items.flatMap((line) => {
    const left = leftOf(line)
    const goods = purchase.items.find(({ itemLineId }) => itemLineId === line.depositOf)
    const follows = goods !== undefined && !ids.has(line.itemLineId) && ids.has(goods.itemLineId)
    if (left === 0 || (!ids.has(line.itemLineId) && !follows)) return []
    const quantity = follows
      ? Math.min(left, wantedOf(goods.itemLineId, leftOf(goods)))
      : wantedOf(line.itemLineId, left)
    return [{ line, quantity, left, paidCent: paidFor(line, left, quantity) }]
  })
}

/** Words for what came back: the money of a till's sale is paid back at the till. */
export function backOf(at: ViewContext, { receipt }: Purchase) {
  const { cameBack, moneyBack } = at.texts.purchases
  return receipt.till ? cameBack : moneyBack
}

/** What is refunded, before it is: the chosen lines, or the whole purchase. */
export function Confirmation({ at, purchase, isWhole }: { at: ViewContext; purchase: Purchase; isWhole: boolean }) {
  const t = at.texts.purchases
  const lines = chosenLines(at, purchase)
  const shown = isWhole
    ? goodsLeft(purchase)
    : lines.map(({ line: { name, quantity: of }, quantity, left, paidCent }) => ({
        name,
        quantity,
        paid: paidCent / 100,
        before: of - left,
        of,
      }))
  const { till } = purchase.receipt
  const goodsCent = shown.reduce((sum, { paid }) => sum + centsOf(paid), 0)
  const leftCent = centsOf(purchase.total - purchase.refunded)
  // A till's sale that took goods back has a smaller total than its goods.
  const amount = (till ? goodsCent : isWhole ? leftCent : Math.min(leftCent, goodsCent)) / 100
  const purchaseId = purchase.transactionId
  const named = lines.map(({ line: { itemLineId }, quantity }) => `${itemLineId}:${quantity}`).join(' ')
  const words = backOf(at, purchase)
  const about = { purchaseId, ...(till && { storeId: purchase.storeId }), ...(!isWhole && { lines: named }) }
  return (
    <Card title={words.confirmTitle(at.formats.money(amount))}>
      <div class="stack">
        <p>
          {!isWhole ? words.partText : purchase.refunded > 0 ? words.restText : words.wholeText} {words.money}
        </p>
        <ul class="stack tight">
          {shown.map(({ name, quantity, paid, before, of }) => (
            <li class="row between">
              <span>
                {at.formats.number(quantity)} × {name}
                {before === 0 ? null : (
                  <strong class="sub">{t.refundedOf(at.formats.number(before), at.formats.number(of))}</strong>
                )}
              </span>
              <span class="number">{at.formats.money(paid)}</span>
            </li>
          ))}
        </ul>
        <ActionForm at={at} action={till ? 'takeBack' : 'refund'} about={about}>
          {isWhole ? null : <Pieces at={at} purchase={purchase} lines={lines} />}
          {till ? <Checkbox form={at.form} name="resellable" label={t.resellable} hint={t.resellableHint} /> : null}
          <TextField form={at.form} name="reason" label={t.reason} maxlength={300} />
          <div class="form-foot">
            <Submit>{words.confirm(at.formats.money(amount))}</Submit>
            <a class="button" href={`${at.path}?purchase=${purchaseId}`}>
              {at.texts.frame.cancel}
            </a>
          </div>
        </ActionForm>
      </div>
    </Card>
  )
}

/** Which pieces of a line came back, and whether their money was paid back before. */
function Pieces({ at, purchase, lines }: { at: ViewContext; purchase: Purchase; lines: readonly ChosenLine[] }) {
  const t = at.texts.purchases
  const partly = lines.filter(({ line, quantity, left }) => quantity < left && line.depositOf === undefined)
  const paidBefore = purchase.refunds.filter(
    (refund) => isEffective(refund) && refund.lines === undefined && GOODS_UNKNOWN.has(refund.kind),
  )
  return (
    <>
      {purchase.securityTagMode === undefined
        ? null
        : partly.map(({ line }) => (
            <TextField
              form={at.form}
              name={`tags-${line.itemLineId}`}
              label={t.tags(line.name)}
              hint={t.tagsHint}
              maxlength={2_000}
            />
          ))}
      {paidBefore.length === 0 ? null : (
        <Select
          form={at.form}
          name="refundId"
          label={t.payment}
          choices={[
            { value: '', label: t.payNow },
            ...paidBefore.map((refund) => ({
              value: refund.refundId,
              label: t.paidBefore(
                at.formats.money(refund.amount),
                at.formats.moment(Date.parse(refund.completedAt ?? refund.createdAt)),
              ),
            })),
          ]}
        />
      )}
    </>
  )
}
