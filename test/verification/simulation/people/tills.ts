import { hashSecret, newSecret } from '../../../../edge-agent/identity/identity.ts'
import type { TillRight } from '../../../../edge-agent/ledger/pairings.ts'
import type { AgentNode } from '../nodes/agent-node.ts'
import type { Actuators } from '../nodes/actuators.ts'
import type { Shop } from '../nodes/initial-shop.ts'
import type { Json, Merchant } from '../nodes/merchant.ts'
import type { TillEquipment, TillGood } from '../nodes/till-equipment.ts'
import { CLOUD, TillBook, type TrackedReport } from '../oracles/till-book.ts'
import { watchTillNotices } from '../oracles/till-notice-watch.ts'
import { tillOracle, type TillOracle } from '../oracles/till-oracle.ts'
import type { Chance } from '../virtual/chance.ts'
import type { Core } from '../virtual/core.ts'
import type { Lan } from '../virtual/lan.ts'
import type { Pace } from '../virtual/pace.ts'
import { newWire, type Wire } from '../virtual/wire.ts'
import type { OwnedPurchase } from './device-visits.ts'
import { namesOf, saleBody, saleKey, saleReport, type Till } from './sales-of-tills.ts'
import { soldByProduct } from './sold-by-product.ts'
import { TillGates } from './till-gates.ts'
import { TillPosts, type Message } from './till-posts.ts'

/**
 * The shop's own tills. Each has an agent to which it reports, and other agents and the cloud to which it sends again
 * after a lost answer. Its shoppers carry the goods through gates, bring them back, and buy what others brought back.
 */
export interface Tills {
  readonly wire: Wire
  readonly oracle: TillOracle
  readonly book: TillBook
  /** Replaces the supervisor of the agents: their gates have readers. */
  readonly supervisor: Actuators['supervisor']
  /** Names agents in the policy and pairs the tills. */
  begin(): Promise<void>
  /** Serves one shopper. Resolves when the shopper has left. */
  visit(name: string): Promise<void>
  /** A fault of one till: its clock jumps, its numbers start again, or its pairing is revoked. */
  disturb(): void
}

export interface TillsParts {
  core: Core
  shop: Shop
  equipment: TillEquipment
  /** The agents of the run, which are installed after the tills. */
  agents: readonly AgentNode[]
  /** Their number. */
  count: number
  merchant: Merchant
  lan: Lan
  devices: Actuators
  pace: Pace
  isClockSure: boolean
  /** True if all messages between the agents arrive at once. */
  isLanSure: boolean
  /** A shopper shows the receipt of a till's sale at a device. */
  showReceipt(bought: OwnedPurchase): Promise<void>
}

interface SoldGoods {
  readonly report: TrackedReport
  readonly message: Message
  readonly till: Till
}

const MINUTE_MS = 60_000
/** Sales of a till in an hour, in runs with a low limit. */
const LOW_LIMIT = 1
const NO_LIMIT = 1_000
/** Time after which the clocks of agent and cloud order two changes, ms. */
const CLOCKS_MS = 3_000
const POLICY_WITHIN_MS = 15_000
const NAMED_EVERY_MS = 10_000

/** Creates the tills of a run. */
export function tills(parts: TillsParts): Tills {
  return new ShopTills(parts)
}

class ShopTills implements Tills {
  readonly wire: Wire
  readonly book: TillBook
  readonly oracle: TillOracle
  readonly supervisor: Actuators['supervisor']
  readonly #parts: TillsParts
  readonly #core: Core
  readonly #chance: Chance
  readonly #posts: TillPosts
  readonly #tills: Till[] = []
  readonly #gates: TillGates
  readonly #stock: TillGood[]
  /** Agents that the policy names. */
  #named: readonly AgentNode[] = []
  readonly #ids = new Set<string>()
  /** Credential by agent and till; pairing ends by `#pair`. */
  readonly #credentials = new Map<string, string>()
  readonly #salesPerHour: number
  /** Of `tillSales` in the policy. */
  readonly #limits: { readonly salesPerHour: number; readonly passByProduct: number }
  readonly #byProduct: (readonly TillGood[])[]
  #returns = 0

  constructor(parts: TillsParts) {
    const { core, count, equipment, lan, merchant, shop } = parts
    this.#parts = parts
    this.#core = core
    this.#chance = core.chance.fork('tills')
    this.wire = newWire('tills', core)
    this.book = new TillBook(() => core.scheduler.nowMs)
    this.#stock = [...equipment.goods]
    this.#byProduct = [...equipment.byProduct]
    this.#salesPerHour = this.#chance.happens(0.2) ? LOW_LIMIT : NO_LIMIT
    this.#limits = { salesPerHour: this.#salesPerHour, passByProduct: this.#chance.happens(0.6) ? 5 : 0 }
    this.oracle = tillOracle({ ...parts, book: this.book, salesPerHour: this.#salesPerHour })
    this.#gates = new TillGates({ ...parts, names: agentNames(count), book: this.book, oracle: this.oracle })
    this.supervisor = this.#gates.supervisor
    this.#posts = new TillPosts({
      core,
      lan,
      merchant,
      wire: this.wire,
      book: this.book,
      storeId: shop.storeId,
      credentialOf: (till, node) => this.#credentials.get(`${node.name} ${till}`) ?? 'untag_pair_of_nobody_0000000000',
      onUnpaired: (till, node) => this.#pair(till, node),
      isNamed: (node) => this.#named.includes(node),
    })
  }

  async begin(): Promise<void> {
    const { agents } = this.#parts
    const isOneUnnamed = agents.length > 1 && this.#chance.happens(0.25)
    this.#named = isOneUnnamed ? agents.slice(0, -1) : agents
    for (const [n, home] of this.#named.entries())
      this.#tills.push({ tillId: `till-${n + 1}`, home, number: 100, series: 1, clockMs: 0 })
    await this.#nameAgents()
    for (const { tillId } of this.#tills) for (const node of agents) await this.#pair(tillId, node)
    const { scheduler } = this.#core
    const hasPolicy = ({ agent, identity }: AgentNode) =>
      agent?.trust.policy?.policy.tillSales.agents.includes(identity.agentId) === true
    for (
      const untilMs = scheduler.nowMs + POLICY_WITHIN_MS;
      scheduler.nowMs < untilMs && !this.#named.every(hasPolicy);
    )
      await scheduler.pause(500)
    // An agent may get another id.
    const nameLater = () => scheduler.after(NAMED_EVERY_MS, () => void this.#nameAgents().finally(nameLater))
    nameLater()
    watchTillNotices({ ...this.#parts, book: this.book, oracle: this.oracle, named: this.#named })
  }

  disturb(): void {
    const till = this.#chance.one(this.#tills)
    const what = this.#chance.one(['clock', 'numbers', 'revoke', 'wire'] as const)
    this.#core.trace.add('fault', `${till.tillId}: ${what}`)
    // With a low limit, the hours of sales must be certain.
    if (what === 'clock' && this.#salesPerHour !== LOW_LIMIT)
      till.clockMs = this.#chance.one([0, -20 * MINUTE_MS, 20 * MINUTE_MS, -2 * 1_440 * MINUTE_MS])
    if (what === 'numbers') [till.number, till.series] = [100, till.series + 1]
    if (what === 'revoke') this.#revoke(till.tillId, this.#chance.one(this.#named))
    if (what === 'wire') {
      this.wire.cut()
      this.#core.scheduler.after(this.#chance.between(500, 10_000), () => this.wire.restore())
    }
  }

  async visit(name: string): Promise<void> {
    const chance = this.#chance.fork(name)
    if (chance.happens(0.3)) return this.#visitByProduct(chance)
    const goods = this.#stock.splice(0, chance.between(1, 3))
    if (goods.length === 0) return
    await this.#nameAgents()
    await this.#linger(chance)
    const kind = chance.next()
    if (kind < 0.1) return this.#gates.pass(goods, chance)
    const till = chance.one(this.#tills)
    if (chance.happens(0.1)) await this.#sellWithoutRight(till, chance)
    if (kind < 0.15) return this.#sellHeld(till, goods, chance)
    if (kind < 0.25) return this.#sellAfterItsEnd(till, goods, chance)
    const sold = await this.#sell(till, goods, chance)
    if (!sold) return
    if (chance.happens(0.7)) await this.#gates.pass(goods, chance)
    if (chance.happens(0.25)) await this.#showReceipt(name, sold, goods, chance)
    if (chance.happens(0.4)) await this.#gates.present(sold.report, chance)
    if (chance.happens(0.1)) await this.#sellWithSameNumber(sold, chance)
    await this.#linger(chance)
    if (kind < 0.4) await this.#void(sold, chance)
    else if (kind < 0.6) await this.#takeBack(sold, goods, chance)
    else if (kind < 0.8) await this.#resell(sold, goods, chance)
    else if (kind < 0.9) await this.#changeByStaff(goods, chance)
    if (chance.happens(0.8)) await this.#gates.pass(goods, chance)
    if (chance.happens(0.5)) await this.#gates.present(sold.report, chance)
    await this.#linger(chance)
    if (chance.happens(0.5)) await this.#gates.pass(goods, chance)
  }

  /** A shopper buys goods at a till that reads no tags. */
  async #visitByProduct(chance: Chance): Promise<void> {
    const goods = this.#byProduct.shift()
    if (!goods) return
    await this.#nameAgents()
    const till = chance.one(this.#tills)
    const [{ ean, priceCent } = { ean: '', priceCent: 0 }] = goods
    const pieces = chance.between(1, 2)
    till.number++
    const body = this.#bodyOf(till, [], chance)
    body.lines.push({ ean, quantity: pieces, priceUnit: priceCent, vat: 19 })
    delete body['totalCent']
    const report = this.book.add(saleReport(body, []))
    const sold: SoldGoods = { report, message: { path: 'sales', body }, till }
    await soldByProduct({
      core: this.#core,
      agents: this.#parts.agents,
      book: this.book,
      gates: this.#gates,
      chance,
      goods,
      pieces,
      isByProduct: this.#limits.passByProduct > 0,
      report,
      linger: () => this.#linger(chance),
      hold: (good) => this.#changeByStaff([good], chance, ['exception_hold']),
      sell: async () => void (await this.#postSale(sold, [], chance)),
      end: async () => {
        if (chance.happens(0.5)) return this.#void(sold, chance)
        const lines = [{ lineId: String(body.lines.length), quantity: 1 }]
        const back = { returnId: this.#returnId(), ...namesOf(body), lines }
        const ended = this.book.add({ kind: 'return', sale: undefined, epcs: [], status: 'returned' })
        const places = chance.happens(0.5) ? this.#placesOf(till) : chanceOrder(this.#placesOf(till), chance)
        await this.#posts.deliver(till.tillId, ended, { path: 'returns', body: back }, { places, chance })
        return ended
      },
    })
  }

  #linger(chance: Chance): Promise<void> {
    return this.#core.scheduler.pause(chance.between(1, this.#parts.pace.longestPauseMs * 2))
  }

  /** Lets the policy name the agents, by their present ids. */
  async #nameAgents(): Promise<void> {
    const ids = this.#named.map(({ identity }) => identity.agentId)
    if (ids.every((id) => this.#ids.has(id))) return
    const { merchant, shop } = this.#parts
    const { storeId } = shop
    const now = await merchant.call('fetchProtectionPolicy', { storeId })
    if (!now?.ok) return
    const former = now.body['policy'] as Json & { tillSales: { agents: string[] } }
    const agents = [...new Set([...former.tillSales.agents, ...ids])]
    const tillSales = { ...former.tillSales, agents, ...this.#limits }
    const done = await merchant.call('updateProtectionPolicy', { storeId, policy: { ...former, tillSales } })
    if (done?.ok) for (const id of ids) this.#ids.add(id)
  }

  /** Pairs a till with an agent, as `untag edge pair` does. */
  async #pair(tillId: string, node: AgentNode, rights: readonly TillRight[] = ['sales', 'returns']): Promise<void> {
    const { agent } = node
    const { process } = node.machine
    if (!agent || !process?.isAlive) return
    const credential = newSecret('pair', this.#chance)
    const add = () =>
      agent.ledger.pairings.addProgram(hashSecret(credential), tillId, this.#core.scheduler.nowMs, rights)
    await new Promise<void>((resolve) => {
      const forget = process.onEnd(resolve)
      agent.ledger.commits.durably(add).then(
        () => {
          this.#credentials.set(`${node.name} ${tillId}`, credential)
          forget()
          resolve()
        },
        () => {
          forget()
          resolve()
        },
      )
    })
  }

  /** Revokes the pairing of a till, and tries its credential once more. */
  #revoke(tillId: string, node: AgentNode): void {
    const { agent } = node
    const credential = this.#credentials.get(`${node.name} ${tillId}`)
    const good = this.#stock.shift()
    if (!agent || !node.machine.isUp || credential === undefined || !good) return
    const known = agent.ledger.pairings.list().filter(({ name }) => name === tillId)
    const revoke = () => known.every(({ id }) => agent.ledger.pairings.revoke(id))
    agent.ledger.commits
      .durably(revoke)
      .then(async () => {
        const body = this.#bodyOf({ tillId, series: 0, number: 0, clockMs: 0, home: node }, [good], this.#chance)
        const answer = await this.#posts.request(node, 'sales', body, credential)
        if (answer !== undefined && answer !== 'undelivered' && answer.status === 200)
          this.#core.violate('tills', `${node.name} records a sale of ${tillId}, whose pairing was revoked`)
      })
      .catch((error: unknown) => this.#core.trace.add(node.name, `revokes nothing: ${(error as Error).name}`))
  }

  #bodyOf(till: Till, goods: readonly TillGood[], chance: Chance) {
    return saleBody(till, goods, this.#core.scheduler.nowMs, chance)
  }

  /** Begins a sale with the next number of the till. */
  #beginSale(till: Till, goods: readonly TillGood[], chance: Chance): SoldGoods {
    till.number++
    const body = this.#bodyOf(till, goods, chance)
    const report = this.book.add(saleReport(body, goods))
    return { report, message: { path: 'sales', body }, till }
  }

  async #sell(till: Till, goods: readonly TillGood[], chance: Chance): Promise<SoldGoods | undefined> {
    const sale = this.#beginSale(till, goods, chance)
    return (await this.#postSale(sale, goods, chance)) ? sale : undefined
  }

  async #postSale(sale: SoldGoods, goods: readonly TillGood[], chance: Chance): Promise<boolean> {
    const { report, message, till } = sale
    const places = this.#placesOf(till)
    const fresh = goods.filter(({ epc }) => till.home.agent?.items.find('epc', epc)?.status === 'sellable')
    const done = await this.#posts.deliver(till.tillId, report, message, { places, chance })
    if (!done) return false
    if (done.place !== CLOUD) this.#gates.noteReceipt(report, done.answer['receiptToken'])
    // The agent that knew these goods as for sale must not doubt them.
    const warned = done.place === till.home ? report.acks.get(till.home.name)?.warned : undefined
    const wrong = fresh.find(({ epc }) => warned?.has(epc) && this.book.certain(epc)?.length === 1)
    if (wrong && !this.book.byStaff.has(wrong.epc))
      this.#core.violate('sales', `${till.home.name} doubts the sale of ${wrong.epc}, which it knew as for sale`)
    // The server of the shop sends the day again, or the till prints again.
    if (chance.happens(0.2)) await this.#posts.once(till.tillId, report, message, chance.one(places))
    return true
  }

  #placesOf({ home }: Till): (AgentNode | typeof CLOUD)[] {
    return [home, ...this.#parts.agents.filter((node) => node !== home), CLOUD]
  }

  /** The void or return of a sale arrives before the sale. */
  async #sellAfterItsEnd(till: Till, goods: readonly TillGood[], chance: Chance): Promise<void> {
    till.number++
    const body = this.#bodyOf(till, goods, chance)
    const names = namesOf(body)
    const isVoid = chance.happens(0.5)
    const end = isVoid
      ? { path: 'sales/void' as const, body: names }
      : { path: 'returns' as const, body: { returnId: this.#returnId(), ...names } }
    const ended = this.book.add({
      kind: isVoid ? 'void' : 'return',
      sale: saleKey(body),
      epcs: goods.map(({ epc }) => epc),
      status: isVoid ? 'cancelled' : 'returned',
    })
    const places = this.#placesOf(till)
    if (!(await this.#posts.deliver(till.tillId, ended, end, { places, chance }))) return
    await this.#linger(chance)
    const sale: SoldGoods = { report: this.book.add(saleReport(body, goods)), message: { path: 'sales', body }, till }
    if (await this.#postSale(sale, goods, chance)) await this.#gates.pass(goods, chance)
  }

  /** Staff put goods on hold, and a till whose agent knows it sells them nevertheless: they must stay. */
  async #sellHeld(till: Till, goods: readonly TillGood[], chance: Chance): Promise<void> {
    const { home } = till
    await this.#changeByStaff(goods, chance, ['exception_hold'])
    for (let n = 0; n < 10 && home.agent?.items.find('epc', goods[0]?.epc ?? '')?.status !== 'exception_hold'; n++)
      await this.#core.scheduler.pause(1_000)
    const isKnown = (epc: string) => home.agent?.items.find('epc', epc)?.status === 'exception_hold'
    const held = goods.filter(({ epc }) => isKnown(epc))
    if (held.length === 0 || held.length < goods.length) return
    const { report, message } = this.#beginSale(till, goods, chance)
    const isCut = chance.happens(0.5)
    if (isCut) home.wire.cut()
    await this.#posts.once(till.tillId, report, message, home)
    const warned = report.acks.get(home.name)?.warned
    const missed = warned && held.find(({ epc }) => !warned.has(epc))
    if (missed) this.#core.violate('alarms', `${home.name} sells ${missed.epc}, which is on hold, without a warning`)
    await this.#gates.pass(held, chance, home)
    if (isCut) home.wire.restore()
  }

  /** A program with the right to sell must not void. */
  async #sellWithoutRight(till: Till, chance: Chance): Promise<void> {
    const name = `${till.tillId}-sells-only`
    await this.#pair(name, till.home, ['sales'])
    const credential = this.#credentials.get(`${till.home.name} ${name}`)
    if (credential === undefined) return
    const body = { saleId: `void-${chance.between(1, 1_000_000)}`, tillId: till.tillId }
    const answer = await this.#posts.request(till.home, 'sales/void', body, credential)
    if (answer !== undefined && answer !== 'undelivered' && answer.status === 200)
      this.#core.violate('tills', `${till.home.name} voids a sale for a program without the right`)
  }

  /** A till whose numbers started again without `series`, at another place. */
  async #sellWithSameNumber({ report: first, message, till }: SoldGoods, chance: Chance): Promise<void> {
    const goods = this.#stock.splice(0, 1)
    if (goods.length === 0) return
    const body = { ...this.#bodyOf(till, goods, chance), ...namesOf(message.body) }
    const report = this.book.add({ ...saleReport(body, goods), isConflict: true })
    // Which of both gives rights depends on which comes first.
    this.book.doubt(report.epcs)
    this.book.doubt(this.book.reports.filter(({ sale }) => sale === report.sale).flatMap(({ epcs }) => epcs))
    const place = chance.one(this.#placesOf(till))
    await this.#posts.once(till.tillId, report, { path: 'sales', body }, place)
    const name = place === CLOUD ? CLOUD : place.name
    // A place that has a sale with these names sees that this is another one.
    if (first.acks.has(name) && !first.unsure.has(name) && report.acks.has(name))
      this.#core.violate('sales', `${name} records two different sales ${report.sale}`)
  }

  async #void({ report, message, till }: SoldGoods, chance: Chance): Promise<TrackedReport> {
    const ended = this.book.add({ kind: 'void', sale: report.sale, epcs: report.epcs, status: 'cancelled' })
    // The till at which the shopper asks may report to another agent than the one that sold.
    const first = chance.happens(0.4) ? [chance.one(this.#named)] : []
    const places = [...first, ...this.#placesOf(till)]
    const end = { path: 'sales/void' as const, body: namesOf(message.body) }
    await this.#posts.deliver(till.tillId, ended, end, { places, chance })
    return ended
  }

  async #takeBack(sold: SoldGoods, goods: readonly TillGood[], chance: Chance, isForSale = chance.happens(0.4)) {
    const { report, message, till } = sold
    const back = goods.slice(0, chance.between(1, goods.length))
    const epcs = back.map(({ epc }) => epc)
    const isBySale = chance.happens(0.4)
    // By sale: all of it, or the tags of its lines.
    const isWhole = isBySale && back.length === goods.length && chance.happens(0.5)
    const body: Json = {
      returnId: this.#returnId(),
      ...(isBySale && namesOf(message.body)),
      ...(!isWhole && { epcs }),
      ...(isForSale && { resellable: true }),
    }
    const ended = this.book.add({
      kind: 'return',
      sale: isWhole ? report.sale : undefined,
      epcs,
      status: isForSale ? 'sellable' : 'returned',
    })
    const places = chance.happens(0.6) ? this.#placesOf(till) : chanceOrder(this.#placesOf(till), chance)
    await this.#posts.deliver(till.tillId, ended, { path: 'returns', body }, { places, chance })
    return back
  }

  /** The goods come back, another shopper buys them, and perhaps the first sale is voided then. */
  async #resell(sold: SoldGoods, goods: readonly TillGood[], chance: Chance): Promise<void> {
    const back = await this.#takeBack(sold, goods, chance, true)
    if (chance.happens(0.5)) await this.#gates.pass(back, chance)
    await this.#linger(chance)
    const till = chance.happens(0.7) ? sold.till : chance.one(this.#tills)
    if (!(await this.#sell(till, back, chance))) return
    if (chance.happens(0.5)) await this.#void(sold, chance)
  }

  /** Staff set another status in the cloud, perhaps before the sale arrives there. */
  async #changeByStaff(goods: readonly TillGood[], chance: Chance, to?: readonly string[]): Promise<void> {
    const { merchant, shop } = this.#parts
    const { storeId } = shop
    await this.#core.scheduler.pause(CLOCKS_MS)
    for (const { epc } of goods) {
      const statuses = to ?? (chance.happens(0.5) ? ['exception_hold'] : ['exception_hold', 'sellable'])
      for (const itemStatus of statuses) {
        this.book.staffSet(epc, itemStatus)
        const moved = await merchant.call('updateItemStatus', { storeId, epc, itemStatus })
        if (!moved?.ok) this.book.doubt([epc])
      }
    }
  }

  async #showReceipt(name: string, sold: SoldGoods, goods: readonly TillGood[], chance: Chance): Promise<void> {
    const { merchant, showReceipt } = this.#parts
    const answer = await this.#posts.once(sold.till.tillId, sold.report, sold.message, CLOUD)
    const purchaseId = answer === undefined || answer === 'refused' ? undefined : answer['purchaseId']
    if (typeof purchaseId !== 'string') return
    const receipt = await merchant.call('generateReceiptQR', { purchaseId })
    if (!receipt?.ok) return
    await showReceipt({
      name: `${name}-receipt`,
      purchaseId,
      receipt: String(receipt.body['url']),
      ean: goods[0]?.ean ?? '',
      epcs: goods.map(({ epc }) => epc),
      units: goods.length,
      chance: chance.fork('receipt'),
    })
  }

  #returnId(): string {
    return `R-${++this.#returns}`
  }
}

function agentNames(count: number): string[] {
  return Array.from({ length: count }, (_, n) => `agent-${n + 1}`)
}

function chanceOrder<T>(list: readonly T[], chance: Chance): T[] {
  const left = [...list]
  const order: T[] = []
  while (left.length > 0) order.push(...left.splice(chance.between(0, left.length - 1), 1))
  return order
}
