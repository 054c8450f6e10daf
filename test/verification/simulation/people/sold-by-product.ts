import type { AgentNode } from '../nodes/agent-node.ts'
import type { TillGood } from '../nodes/till-equipment.ts'
import { CLOUD, type TillBook, type TrackedReport } from '../oracles/till-book.ts'
import type { Chance } from '../virtual/chance.ts'
import type { Core } from '../virtual/core.ts'
import type { TillGates } from './till-gates.ts'

interface SoldByProductParts {
  core: Core
  agents: readonly AgentNode[]
  book: TillBook
  gates: TillGates
  chance: Chance
  /** Tagged goods of one product, which no other shopper takes. */
  goods: readonly TillGood[]
  /** Pieces that the till sells. */
  pieces: number
  /** True if the policy lets tags pass for them. */
  isByProduct: boolean
  /** Their sale. */
  report: TrackedReport
  linger(): Promise<void>
  /** Staff put one of the goods on hold. */
  hold(good: TillGood): Promise<void>
  sell(): Promise<void>
  /** The till voids the sale, or takes a piece back. */
  end(): Promise<TrackedReport>
}

/** Tags that shoppers carry out between the sale and its end. */
const WALKS = 5

/**
 * A till sells pieces without naming their tags, and shoppers carry tags of the product through the gates
 * (`tillSales.passByProduct`). At each agent at most as many tags pass as were sold: none before the sale or after its end,
 * and never goods that the agent knows to be on hold. The same holds if the receipt of the sale releases labels, too. Agents that do not reach each other may each let so many pass.
 */
export async function soldByProduct(parts: SoldByProductParts): Promise<void> {
  const { agents, chance, gates, goods, report, linger, hold, sell, end } = parts
  const watch = new PieceWatch(parts)
  const walk = async () => {
    // The receipt of the sale gives no goods beside the pieces.
    if (chance.happens(0.15)) await gates.release(chance.one(agents), report)
    if (chance.happens(0.15)) await gates.present(report, chance)
    await watch.carry(chance.one(agents), chance.one(goods))
  }
  const [first] = goods
  if (first && chance.happens(0.3)) await hold(first)
  await walk()
  await sell()
  for (let n = 0; n < WALKS; n++) await walk()
  await linger()
  if (chance.happens(0.7)) watch.ended = await end()
  for (let n = 0; n < WALKS; n++) await walk()
}

/** Why goods leave that a till sold by product. */
const LEAVES_FOR: ReadonlySet<string> = new Set(['sold_piece', 'released', 'receipt'])

class PieceWatch {
  /** What ended the sale. */
  ended: TrackedReport | undefined
  readonly #parts: SoldByProductParts
  /** Tags that passed for a piece, by agent. */
  readonly #passed = new Map<string, Set<string>>()
  /** Runs of each agent. A crash may lose one use that was not on the disk. */
  readonly #runs = new Map<string, Set<unknown>>()

  constructor(parts: SoldByProductParts) {
    this.#parts = parts
  }

  /** Carries a tag out, and compares what the gate does with what was sold. */
  async carry(node: AgentNode, { epc }: TillGood): Promise<void> {
    const { book, core, gates, pieces, isByProduct, report } = this.#parts
    const { name, agent } = node
    const isHeld = agent?.items.find('epc', epc)?.status === 'exception_hold'
    const isOver = this.ended?.acks.has(name) === true
    const isVoid = book.isVoidAt(name, report)
    const isSold = [...report.posted.keys()].some((place) => place !== CLOUD)
    const runs = setOf(this.#runs, name).add(agent)
    const left = (await gates.carry(node, [epc])).get(epc)
    if (left === undefined || !LEAVES_FOR.has(left.reason) || left.severity !== 'pass' || book.restoredPlaces.has(name))
      return
    const passed = setOf(this.#passed, name).add(epc)
    core.trace.add(name, `${epc} passes for ${report.sale}: ${left.reason}`)
    if (left.reason === 'sold_piece' && !isByProduct) core.violate('alarms', `${epc} passes ${name} for a piece`)
    if (isHeld) core.violate('alarms', `${epc}, which is on hold, passes the gate of ${name} for a piece`)
    // A return by a line does not tell which piece came back, so a label that was released stays silent.
    if (left.reason === 'sold_piece' ? isOver : left.reason === 'released' && isVoid)
      core.violate('alarms', `${epc} passes the gate of ${name} for ${report.sale}, whose end it has`)
    if (!isSold || passed.size > pieces + runs.size - 1)
      core.violate('alarms', `${passed.size} tags passed the gate of ${name} for ${pieces} pieces of ${report.sale}`)
  }
}

function setOf<T>(sets: Map<string, Set<T>>, name: string): Set<T> {
  const set = sets.get(name) ?? new Set<T>()
  sets.set(name, set)
  return set
}
