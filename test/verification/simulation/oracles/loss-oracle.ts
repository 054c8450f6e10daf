import type { Database as Connection } from 'better-sqlite3'
import { worstCaseLoss } from '../../../../policy/decide-units.ts'
import type { AgentNode } from '../nodes/agent-node.ts'
import type { Core } from '../virtual/core.ts'
import type { LedgerOracle, LedgerRow } from './ledger-oracle.ts'

/**
 * Checks the limits of isolated agents (ADR trusted-time): what they release for receipts without staff, and the cloud has not
 * acknowledged, is never worth more than `worstCaseLoss`. The oracle finds these claims in the durable journals. It
 * compares their number of receipts with the counters of the agents and with `hardCount`.
 */
export interface LossOracle {
  /** Called after each durable commit of the agent's ledger, when the ledger oracle has checked this commit. */
  committed(node: AgentNode): void
}

export interface LossOracleParts {
  core: Core
  ledgers: ReadonlyMap<string, LedgerOracle>
  /** Read connection of the cloud database; undefined if there is none. */
  reading(): Connection | undefined
  /** False in a run in which a ledger or the cloud may lose its counts. Then the oracle checks nothing. */
  isSure: boolean
}

/** A unit that an isolated agent released. */
interface IsolatedUnit {
  /** Number of the last row that claims the unit. */
  seq: number
  cti: string
  priceCent: number
  /** `hardCount` and `worstCaseLoss` of the policy by which the agent decided. */
  receipts: number
  lossEur: number | null
}

const PRICE = `SELECT l.price_cent AS priceCent FROM purchase p JOIN purchase_unit u ON u.purchase_id = p.purchase_id
  JOIN purchase_line l ON l.line_id = u.line_id WHERE p.cti = ? AND u.receipt_index = ?`

/** Creates the oracle. */
export function lossOracle({ core, ledgers, reading, isSure }: LossOracleParts): LossOracle {
  /** Released units by ledger, and by receipt and number. */
  const released = new Map<string, Map<string, IsolatedUnit>>()
  /** Redemptions that the receipt home granted. */
  const delegated = new Set<string>()
  const seen = new Map<string, { rows: number; restarts: number }>()

  function note({ agent, identity, name }: AgentNode, { seq, body: { evidence, event } }: LedgerRow): void {
    if (evidence?.kind === 'delegated') delegated.add(evidence.redemptionId)
    const policy = agent?.trust.policy
    if (evidence?.kind !== 'claim' || evidence.source !== 'receipt' || evidence.operatorId !== undefined) return
    if (event?.type !== 'protection.device.offline' || delegated.has(evidence.redemptionId)) return
    if (!policy || policy.policy.home === identity.agentId) return
    const units = released.get(name) ?? new Map<string, IsolatedUnit>()
    released.set(name, units)
    const price = reading()?.prepare<[string, number], { priceCent: number }>(PRICE)
    for (const ordinal of evidence.ordinals)
      units.set(`${evidence.nonce}/${ordinal}`, {
        seq,
        cti: evidence.nonce,
        priceCent: price?.get(evidence.nonce, ordinal)?.priceCent ?? 0,
        receipts: policy.policy.offline.hardCount,
        lossEur: worstCaseLoss(policy.policy, policy.devices),
      })
  }

  function check({ name: changed, agent }: AgentNode): void {
    const open = [...released].flatMap(([name, units]) => {
      // The agent stores the number of acknowledged rows later than it forgets the counts of these rows.
      const known = name === changed ? agent?.ledger.journal.acked : undefined
      const acked = Math.max(ledgers.get(name)?.acked ?? 0, known ?? 0)
      return [...units.values()].flatMap((unit) => (unit.seq > acked ? [{ name, ...unit }] : []))
    })
    for (const name of new Set(open.map((unit) => unit.name))) {
      const own = open.filter((unit) => unit.name === name)
      const [receipts, limit] = [new Set(own.map(({ cti }) => cti)).size, Math.max(...own.map((unit) => unit.receipts))]
      if (receipts > limit)
        core.violate('rules', `${name} has honoured ${receipts} receipts while isolated, but hardCount is ${limit}`)
      const counted = name === changed ? agent?.ledger.claims.isolatedCount : undefined
      if (counted !== undefined && receipts > counted)
        core.violate('rules', `${name} has honoured ${receipts} receipts while isolated, but counts ${counted}`)
    }
    if (open.length === 0 || open.some(({ lossEur }) => lossEur === null)) return
    const lossEur = open.reduce((sum, { priceCent }) => sum + priceCent, 0) / 100
    const bound = Math.max(...open.map((unit) => unit.lossEur ?? 0))
    if (lossEur > bound)
      core.violate('rules', `isolated agents released ${lossEur} EUR, but worstCaseLoss is ${bound} EUR`)
  }

  return {
    committed(node) {
      if (!isSure) return
      const { rows = [], restarts = 0 } = ledgers.get(node.name) ?? {}
      const before = seen.get(node.name)
      // After a restart of the numbers, the rows that are left have new numbers.
      const isSame = before?.restarts === restarts
      if (!isSame) released.delete(node.name)
      for (const row of rows.slice(isSame ? before.rows : 0)) note(node, row)
      seen.set(node.name, { rows: rows.length, restarts })
      check(node)
    },
  }
}
