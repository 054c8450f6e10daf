/** The sales of an outage, which are known from their number. */

export const TILLS = 10
const LINES = 3

/** EPC of an item that is sold during the outage. */
export const epcOf = (item: number) => `E280${(item + 1).toString(16).toUpperCase().padStart(20, '0')}`

/** A sale as a till reports it, from 0. `epc`: the tag of its first line. */
export function saleOf(n: number, atMs: number, epc: string | undefined) {
  const lines = Array.from({ length: LINES }, (_, i) => ({
    name: `Ware ${i}`,
    quantity: 1 + (n % 3),
    priceUnit: 99 + ((n * 7 + i) % 900),
    vat: i === 0 ? 19 : 7,
    ...(i === 0 && epc !== undefined && { quantity: 1, epcs: [epc] }),
  }))
  return {
    saleId: String(n),
    tillId: `till-${n % TILLS}`,
    series: 'outage',
    occurredAt: new Date(atMs).toISOString(),
    totalCent: lines.reduce((sum, { quantity, priceUnit }) => sum + quantity * priceUnit, 0),
    lines,
  }
}

/** A purchase that the cloud made of a sale. */
export interface RecordedSale {
  readonly saleId: string
  readonly totalCent: number
}

export interface Audit {
  /** Acknowledged sales that the cloud lacks. */
  readonly lost: number
  /** Sales that the cloud recorded more than once. */
  readonly doubled: number
  /** Sales with another total, or which no till sent. */
  readonly wrong: number
}

/** Compares what the tills know with what the cloud has. `sold`: total of each acknowledged sale. */
export function auditSales(sold: ReadonlyMap<string, number>, recorded: readonly RecordedSale[]): Audit {
  const seen = new Map<string, number>()
  let wrong = 0
  for (const { saleId, totalCent } of recorded) {
    seen.set(saleId, (seen.get(saleId) ?? 0) + 1)
    if (sold.get(saleId) !== totalCent) wrong++
  }
  const doubled = [...seen.values()].filter((times) => times > 1).length
  const lost = [...sold.keys()].filter((saleId) => !seen.has(saleId)).length
  return { lost, doubled, wrong }
}
