import { hashSecret, newSecret } from '../../../../edge-agent/identity/identity.ts'
import type { AgentNode } from '../nodes/agent-node.ts'
import type { Merchant } from '../nodes/merchant.ts'
import { TillBook } from '../oracles/till-book.ts'
import { tillOracle, type TillOracle } from '../oracles/till-oracle.ts'
import { TillPosts } from '../people/till-posts.ts'
import type { Chance } from '../virtual/chance.ts'
import type { Core } from '../virtual/core.ts'
import type { Lan } from '../virtual/lan.ts'
import { newWire } from '../virtual/wire.ts'
import type { Good } from './goods.ts'

/** Tills of the day. They report their sales to the agent of the station, or to no one. */
export interface DayTills {
  readonly book: TillBook
  readonly oracle: TillOracle
  /** Pairs the tills with the station. */
  open(): Promise<void>
  sell(goods: readonly Good[], chance: Chance): Promise<void>
  /** The goods come back, and go on sale again. */
  takeBack(goods: readonly Good[], chance: Chance): Promise<void>
}

export interface DayTillsParts {
  core: Core
  lan: Lan
  merchant: Merchant
  station: AgentNode
  storeId: string
  /** False: the tills report nothing. */
  isReporting: boolean
}

/** A till sells less than its limit in each hour. */
const TILLS = 4

/** Creates the tills. */
export function dayTills(parts: DayTillsParts): DayTills {
  const { core, station, isReporting } = parts
  const chance = core.chance.fork('tills')
  const credential = newSecret('pair', chance)
  const book = new TillBook(() => core.scheduler.nowMs)
  const oracle = tillOracle({ core, book, isClockSure: true, isLanSure: true, salesPerHour: Number.POSITIVE_INFINITY })
  const wire = newWire('tills', core)
  const posts = new TillPosts({
    ...parts,
    book,
    wire,
    credentialOf: () => credential,
    onUnpaired: () => Promise.resolve(),
    isNamed: (node) => node === station,
  })
  let sales = 0
  let returns = 0
  return {
    book,
    oracle,
    async open() {
      const { agent } = station
      if (!isReporting || !agent) return
      await agent.ledger.commits.durably(() =>
        agent.ledger.pairings.addProgram(hashSecret(credential), 'tills', core.scheduler.nowMs, ['sales', 'returns']),
      )
    },
    async sell(goods, by) {
      if (!isReporting) return
      const tillId = `till-${(++sales % TILLS) + 1}`
      const lines = goods.map(({ ean, epc, price }) => ({
        ean,
        quantity: 1,
        priceUnit: Math.round(price * 100),
        vat: 19,
        epcs: [epc],
      }))
      const totalCent = lines.reduce((sum, { priceUnit }) => sum + priceUnit, 0)
      const occurredAt = new Date(core.scheduler.nowMs).toISOString()
      const names = { saleId: String(sales), tillId, series: 'Z-1' }
      const report = book.add({
        kind: 'sale',
        sale: `${tillId} Z-1 ${sales}`,
        epcs: goods.map(({ epc }) => epc),
        status: 'paid',
        totalCent,
      })
      const message = { path: 'sales', body: { ...names, occurredAt, totalCent, lines } } as const
      if (!(await posts.deliver(tillId, report, message, { places: [station], chance: by })))
        core.violate('liveness', `the station does not take the sale ${names.saleId}`)
    },
    async takeBack(goods, by) {
      if (!isReporting) return
      const epcs = goods.map(({ epc }) => epc)
      const report = book.add({ kind: 'return', sale: undefined, epcs, status: 'sellable' })
      const message = { path: 'returns', body: { returnId: `R-${++returns}`, epcs, resellable: true } } as const
      if (!(await posts.deliver('till-1', report, message, { places: [station], chance: by })))
        core.violate('liveness', `the station does not take the return ${returns}`)
    },
  }
}
