import type { AgentNode } from '../nodes/agent-node.ts'
import type { Json } from '../nodes/merchant.ts'
import type { TillGood } from '../nodes/till-equipment.ts'
import type { Report } from '../oracles/till-book.ts'
import type { Chance } from '../virtual/chance.ts'

/** A till of the shop, and the agent to which it reports. */
export interface Till {
  readonly tillId: string
  readonly home: AgentNode
  number: number
  series: number
  /** Error of its clock, ms. */
  clockMs: number
}

/** What a till sends for goods whose tags it read, and perhaps other lines. */
export function saleBody(
  till: Till,
  goods: readonly TillGood[],
  nowMs: number,
  chance: Chance,
): Json & { lines: Json[] } {
  const lines: Json[] = goods.map(({ epc, ean, priceCent }) => ({
    ean,
    quantity: 1,
    priceUnit: priceCent,
    vat: 19,
    epcs: [epc],
  }))
  if (chance.happens(0.4)) lines.push({ name: 'Äpfel', quantity: 1.234, priceUnit: 297, vat: 7 })
  if (chance.happens(0.2)) lines.push({ name: 'Rabatt', quantity: 1, priceUnit: -150, vat: 19 })
  if (chance.happens(0.2)) lines.push({ name: 'Leergut', quantity: -2, priceUnit: 25, vat: 19 })
  return {
    saleId: String(till.number),
    tillId: till.tillId,
    series: `Z-${till.series}`,
    occurredAt: new Date(nowMs + till.clockMs).toISOString(),
    ...(chance.happens(0.5) && { totalCent: totalOf(lines) }),
    lines,
  }
}

/** The report of a sale for the book. */
export function saleReport(body: Json & { lines: Json[] }, goods: readonly TillGood[]): Report {
  const totalCent = totalOf(body.lines)
  return { kind: 'sale', sale: saleKey(body), epcs: goods.map(({ epc }) => epc), status: 'paid', totalCent }
}

/** Identity of a sale. */
export function saleKey({ tillId, series, saleId }: Json): string {
  return [tillId, series, saleId].join(' ')
}

/** The fields that name a sale. */
export function namesOf({ tillId, series, saleId }: Json): Json {
  return { tillId, series, saleId }
}

/** Total of a sale, cents: each line is rounded half up. */
function totalOf(lines: readonly Json[]): number {
  return lines.reduce((sum, { quantity, priceUnit }) => {
    const cent = Number(quantity) * Number(priceUnit)
    return sum + Math.sign(cent) * Math.round(Math.abs(cent))
  }, 0)
}
