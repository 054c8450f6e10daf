import { afterAll, beforeAll, expect, it } from 'vitest'
import type { TillEvidence } from '../../../../policy/journal.ts'
import { saleTagHash, keptReturn, keptSale, type TillReturn, type TillSale } from '../../../../policy/till-sale.ts'
import { movablePlatform } from '../../../support/movable-platform.ts'
import { IS_FULL_SIZE } from '../../../support/full-size.ts'
import { newEpc, openShop, type Shop } from '../../../support/shop.ts'
import { enrolTestAgent, type TestAgent } from '../../../support/test-agent.ts'

/**
 * One piece is sold and comes back again and again, at two agents. Their reports reach the cloud in every order that
 * keeps the order of each agent. The cloud must end with what happened last, and with each return booked once.
 */
const { platform, forward } = movablePlatform()

interface Step {
  readonly kind: 'sale' | 'return'
  /** Number of the sale, from 0. */
  readonly sale: number
  readonly agent: 0 | 1
  /** Position in time. A copy of a sale has the position of its repeat. */
  readonly at: number
  readonly isCopy?: boolean
}
interface Case {
  readonly name: string
  readonly steps: readonly Step[]
  /** The agents tell each other what they recorded. */
  readonly isConnected: boolean
  /** What the returns name: the tag, their sale, or both. */
  readonly named: 'tag' | 'sale' | 'both'
  /** Time between two steps. The clocks of agents may differ by 60 s. */
  readonly stepMs: number
}

/** Sale, return, sale …: each step at agent 0 or 1. */
function histories(length: number): Step[][] {
  const all: Step[][] = []
  for (let bits = 0; bits < 1 << length; bits++)
    all.push(
      Array.from({ length }, (_, at) => ({
        kind: at % 2 === 0 ? 'sale' : 'return',
        sale: Math.floor(at / 2),
        agent: ((bits >> at) & 1) as 0 | 1,
        at,
      })),
    )
  return all
}

/** All orders that keep the order of each agent. */
function interleavings(steps: readonly Step[]): Step[][] {
  const merge = (a: readonly Step[], b: readonly Step[]): Step[][] => {
    const [x] = a
    const [y] = b
    if (!x || !y) return [[...a, ...b]]
    return [...merge(a.slice(1), b).map((rest) => [x, ...rest]), ...merge(a, b.slice(1)).map((rest) => [y, ...rest])]
  }
  return merge(
    steps.filter(({ agent }) => agent === 0),
    steps.filter(({ agent }) => agent === 1),
  )
}

const nameOf = ({ kind, sale, agent, isCopy }: Step) =>
  `${kind === 'sale' ? 'S' : 'R'}${sale + 1}${'AB'[agent]}${isCopy ? "'" : ''}`

/** The till repeats the last sale at the other agent, because it got no answer. */
function withCopy(steps: readonly Step[]): Step[] {
  const last = steps.findLast(({ kind }) => kind === 'sale') as Step
  const copy: Step = { ...last, agent: last.agent === 0 ? 1 : 0, at: last.at + 0.5, isCopy: true }
  return [...steps, copy].sort((a, b) => a.at - b.at)
}

/**
 * Within the difference of the clocks only agents that hear of each other, and returns that name their sale, tell the
 * order. A tag may be booked on a later sale until all reports are here.
 */
const VARIANTS = [
  { isConnected: true, stepMs: 120_000, named: 'tag' },
  { isConnected: true, stepMs: 120_000, named: 'sale' },
  { isConnected: true, stepMs: 20_000, named: 'sale' },
  { isConnected: true, stepMs: 20_000, named: 'both' },
  { isConnected: false, stepMs: 120_000, named: 'tag' },
  { isConnected: false, stepMs: 120_000, named: 'sale' },
  { isConnected: false, stepMs: 120_000, named: 'both' },
] as const

const CASES: Case[] = VARIANTS.flatMap((variant) =>
  [2, 3, 4, 5]
    .flatMap(histories)
    .flatMap((steps) => [steps, ...(steps.length > 2 ? [withCopy(steps)] : [])])
    .flatMap(interleavings)
    .map((steps) => ({ name: steps.map(nameOf).join(' '), steps, ...variant })),
).filter((_, n) => IS_FULL_SIZE || n % 17 === 0)

let shop: Shop
let agents: TestAgent[] = []
const epcs: string[] = []
beforeAll(async () => {
  shop = await openShop('sqlite', { platform })
  agents = [await enrolTestAgent(shop), await enrolTestAgent(shop)]
  const { policy } = await shop.ok('fetchProtectionPolicy', { storeId: shop.storeId })
  const tillSales = {
    ...policy.tillSales,
    agents: agents.map(({ agentId }) => agentId),
    salesPerHour: 100_000,
    valuePerHour: 10_000_000,
  }
  await shop.ok('updateProtectionPolicy', { storeId: shop.storeId, policy: { ...policy, tillSales } })
  for (let i = 0; i < CASES.length; i += 100) {
    const items = CASES.slice(i, i + 100).map(() => ({
      epc: newEpc(),
      ean: shop.products[0].ean,
      protectionTechnology: 'uhf_rfid',
    }))
    await shop.ok('registerProtectedItems', { storeId: shop.storeId, items })
    epcs.push(...items.map(({ epc }) => epc))
  }
  forward(3_600_000)
  for (const agent of agents) await agent.login()
})
afterAll(() => shop.stop())

const priceOf = (sale: number) => 1_000 * (sale + 1)

async function run({ steps, isConnected, named, stepMs }: Case, n: number): Promise<string[]> {
  const epc = epcs[n] ?? ''
  const now = platform.clock.wall()
  const evidenceOf = ({ kind, sale, agent, at, isCopy }: Step): TillEvidence => {
    if (kind === 'return') {
      const ofSale = named === 'tag' ? {} : { saleId: `s${sale}-${n}`, tillId: 'till-1' }
      const ofTag = named === 'sale' ? {} : { epcs: [epc] }
      const sent = { returnId: `r${sale}-${n}`, ...ofSale, ...ofTag, resellable: true }
      return { kind: 'sale_return', return: keptReturn(shop.storeId, sent as TillReturn) }
    }
    // What this agent knows of the piece: its last step, and that of the other agent if they are connected.
    const known = steps
      .filter((each) => each.at < at && (isConnected || each.agent === agent))
      .sort((a, b) => a.at - b.at)
      .at(-1)
    const sold: TillSale = {
      saleId: `s${sale}-${n}`,
      tillId: 'till-1',
      occurredAt: new Date(now - 1_800_000).toISOString(),
      lines: [{ ean: shop.products[0].ean, quantity: 1, priceUnit: priceOf(sale), vat: 19, epcs: [epc] }],
    }
    return {
      kind: 'sale',
      sale: keptSale(shop.storeId, sold),
      items: [0, 0],
      ...(known?.kind === 'return' && !isCopy && { resold: [saleTagHash({ kind: 'epc', id: epc, isValid: true })] }),
    } as TillEvidence
  }
  for (const step of steps) {
    const agent = agents[step.agent] as TestAgent
    const { body } = await agent.report([
      agent.row({ evidence: evidenceOf(step), atMs: now - 1_800_000 + step.at * stepMs }),
    ])
    if (body.accepted !== 1) return [`not accepted: ${JSON.stringify(body)}`]
  }
  const wrong: string[] = []
  const inTime = [...steps].sort((a, b) => a.at - b.at).filter(({ isCopy }) => !isCopy)
  const last = inTime.at(-1)
  const { itemStatus } = await shop.ok('fetchProtectedItem', { storeId: shop.storeId, epc })
  const expected = last?.kind === 'sale' ? 'paid' : 'sellable'
  if (itemStatus !== expected) wrong.push(`is ${itemStatus}, not ${expected}`)
  for (const { sale } of inTime.filter(({ kind }) => kind === 'sale')) {
    const { purchases } = await shop.ok('fetchPurchaseHistory', { storeId: shop.storeId, saleId: `s${sale}-${n}` })
    const isBack = inTime.some((step) => step.kind === 'return' && step.sale === sale)
    const refunded = purchases[0]?.refunded ?? 0
    if (refunded !== (isBack ? priceOf(sale) / 100 : 0)) wrong.push(`sale ${sale + 1} has ${refunded} back`)
  }
  return wrong
}

it('makes no difference', { timeout: 600_000 }, async () => {
  const failures: string[] = []
  for (const [n, each] of CASES.entries()) {
    const wrong = await run(each, n)
    const { isConnected, named, stepMs, name } = each
    const about = `${isConnected ? 'LAN' : 'apart'}, by ${named}, ${stepMs / 1_000} s`
    if (wrong.length > 0) failures.push(`${about}: ${name}: ${wrong.join(', ')}`)
  }
  expect(failures).toEqual([])
})
