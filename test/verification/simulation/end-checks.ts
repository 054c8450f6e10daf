import type { Database as Connection } from 'better-sqlite3'
import { RESYNC_MS } from '../../../cloud/protection/leases/authorizations.ts'
import type { AgentNode } from './nodes/agent-node.ts'
import type { CloudNode } from './nodes/cloud-node.ts'
import { checkConservation } from './oracles/conservation.ts'
import type { Core } from './virtual/core.ts'
import type { Customers } from './people/customers.ts'
import type { Shop } from './nodes/initial-shop.ts'
import type { LedgerOracle } from './oracles/ledger-oracle.ts'
import type { MoneyOracle } from './oracles/money-oracle.ts'
import type { TillBook } from './oracles/till-book.ts'
import type { TillOracle } from './oracles/till-oracle.ts'
import type { Receiver } from './nodes/receiver.ts'

/** The parts of a run that the final checks use. */
export interface EndParts {
  core: Core
  cloud: CloudNode
  agents: readonly AgentNode[]
  ledgers: ReadonlyMap<string, LedgerOracle>
  people: Pick<Customers, 'paid' | 'cancelled' | 'resold' | 'reportedEvents'>
  receiver: Receiver
  /** Undefined in a sandbox, in which no money moves. */
  money: MoneyOracle | undefined
  shop: Shop
  /** Undefined in a run without tills. */
  tills: { readonly oracle: Pick<TillOracle, 'checkEnd'>; readonly book: Pick<TillBook, 'lost'> } | undefined
}

/** Accepted delay of a webhook, ms. */
const LATE_MS = 60_000
/**
 * Accepted error of an agent's clock, ms. With a larger error, the issue times of new tokens would be in the future.
 */
const CLOCK_MS = 5_000

const PURCHASE_ID = /pur_\w+/g

/** Returns why the run has not settled, or undefined if it has. */
export function unsettledReason(parts: EndParts): string | undefined {
  const { core, cloud, agents, ledgers, shop } = parts
  const process = cloud.running?.process
  const db = cloud.disk.reading
  if (!process || !db) return 'the cloud is down'
  for (const { name, agent } of agents) {
    if (!agent) return `${name} is down`
    const { link, ledger, trust, clock } = agent
    if (!link.isOnline) return `${name} is offline`
    if (!link.hasBroker) return `${name} has no broker`
    if (ledger.journal.waiting > 0) return `${ledger.journal.waiting} rows of ${name} wait`
    const unsettled = ledgers.get(name)?.unsettled ?? []
    if (unsettled.length > 0) return `${name} has stored no outcome of ${unsettled.join(', ')}`
    if (ledger.homeRequests.dueReports().length > 0) return `${name} has unsent outcome reports`
    if (agent.notices.waiting > 0) return `${agent.notices.waiting} releases of ${name} have unsent notices`
    if (trust.isBehind) return `${name} is behind`
    if (trust.stage() !== 'fresh') return `the policy of ${name} is ${trust.stage()}`
    if (clock.now().trust !== 'signed') return `the clock of ${name} has the trust ${clock.now().trust}`
    if (Math.abs(clock.now().nowMs - core.scheduler.nowMs) > CLOCK_MS)
      return `the clock of ${name} is wrong by ${clock.now().nowMs - core.scheduler.nowMs} ms`
  }
  const version = db
    .prepare<[string], { v: number; d: number }>(
      'SELECT document_version AS v, deny_seq AS d FROM store WHERE store_id = ?',
    )
    .get(shop.storeId)
  for (const { name, agent } of agents) {
    const have = agent?.trust.heldVersions()
    if (agent?.ledger.metadata.document('policy')?.ver !== version?.v)
      return `${name} has not stored policy ${version?.v}`
    if (have?.deny?.[1] !== version?.d) return `${name} has denials up to ${have?.deny?.[1]} of ${version?.d}`
  }
  const unknown = failedSignIn(parts)
  if (unknown !== undefined) return unknown
  const wrong = staleItem(parts, db)
  if (wrong !== undefined) return wrong
  const nowMs = process.platform.clock.wall()
  const waits = db
    .prepare<[], { agentId: string; name: string }>(
      'SELECT agent_id AS agentId, name FROM agent WHERE resync IS NOT NULL AND revoked_ms IS NULL',
    )
    .all()
  const isAwaited = nowMs < (cloud.running?.cloud.services.authority.restoredMs ?? 0) + RESYNC_MS
  // Agents outside this run never report, so the cloud waits for them until the resync limit.
  const awaited = waits.find(({ agentId }) => isAwaited || agents.some(({ identity }) => identity.agentId === agentId))
  if (awaited) return `the restored cloud waits for ${awaited.name}`
  const money = parts.money?.unsettled(db, nowMs)
  if (money !== undefined) return money
  const unplanned =
    db
      .prepare<[number], { n: number }>('SELECT COUNT(*) AS n FROM outbox_event WHERE seq IS NULL AND at_ms < ?')
      .get(nowMs - LATE_MS)?.n ?? 0
  if (unplanned > 0) return `${unplanned} events have no planned delivery`
  const late =
    db
      .prepare<[number], { n: number }>(
        "SELECT COUNT(*) AS n FROM webhook_delivery WHERE status = 'pending' AND due_ms < ?",
      )
      .get(nowMs - LATE_MS)?.n ?? 0
  return late > 0 ? `${late} webhooks are overdue` : undefined
}

/** True if the cloud detected a fork that is not resolved. */
export function isForked({ disk }: CloudNode): boolean {
  return (
    disk.reading?.prepare('SELECT 1 FROM agent WHERE fork_ms IS NOT NULL AND revoked_ms IS NULL').get() !== undefined
  )
}

/** True if an agent may decide only online, because the cloud has detected a rollback of the agent's ledger. */
export function isAgentOnlineOnly({ disk }: CloudNode, nowMs: number): boolean {
  return (
    disk.reading
      ?.prepare<[number]>('SELECT 1 FROM agent WHERE online_only_until_ms > ? AND revoked_ms IS NULL')
      .get(nowMs) !== undefined
  )
}

/** Checks the invariants at the end of a settled run. */
export function checkEnd(parts: EndParts): void {
  const { core, cloud, agents, ledgers, people } = parts
  const db = cloud.disk.reading
  if (!db) return core.violate('liveness', 'the cloud is down')
  const event = db.prepare<[string], { n: number }>('SELECT COUNT(*) AS n FROM protection_event WHERE event_id = ?')
  for (const { name, identity } of agents) {
    const { rows = [], formerRows = [], generation = 1 } = ledgers.get(name) ?? {}
    const kept = db
      .prepare<[string, number], { seq: number; hash: string }>(
        'SELECT seq, hash FROM journal_row WHERE ledger_id = ? AND generation = ? ORDER BY seq',
      )
      .all(identity.ledgerId, generation)
    const bySeq = new Map(kept.map((row) => [row.seq, row.hash]))
    const lost = rows.find((row) => bySeq.get(row.seq) !== row.hash)
    if (lost)
      core.violate('I4', `row ${lost.seq} of ${name} is ${bySeq.has(lost.seq) ? 'different' : 'missing'} in the cloud`)
    const gap = kept.findIndex((row, i) => row.seq !== i + 1)
    if (gap >= 0) core.violate('I5', `the cloud has a hole in ${name} before row ${kept[gap]?.seq}`)
    for (const { body, seq } of [...formerRows, ...rows]) {
      if (body.event && event.get(body.event.eventId)?.n !== 1)
        core.violate('I4', `the event of row ${seq} of ${name} is not in the cloud`)
    }
  }
  for (const id of people.reportedEvents)
    if (event.get(id)?.n !== 1) core.violate('I4', `a customer received event ${id}, but the cloud does not have it`)
  const status = db.prepare<[string], { status: string }>('SELECT status FROM purchase WHERE purchase_id = ?')
  for (const id of people.paid) {
    const now = status.get(id)?.status
    if (now !== 'SUCCESS' && now !== 'UNLOADED' && now !== 'CANCELLED')
      core.violate('I4', `the cloud reported ${id} as paid, but it is ${now}`)
  }
  const bounced = db.prepare<[string]>(
    "SELECT 1 FROM protection_exception WHERE kind = 'refund_failed' AND purchase_id = ?",
  )
  for (const id of people.cancelled)
    if (status.get(id)?.status !== 'CANCELLED' && !bounced.get(id))
      core.violate('I4', `the cloud reported ${id} as cancelled, but it is ${status.get(id)?.status}`)
  checkResold(parts, db)
  const completed = new Map<string, number>()
  for (const { data } of db
    .prepare<[], { data: string }>("SELECT data FROM outbox_event WHERE type = 'checkout.completed'")
    .iterate()) {
    for (const id of new Set(data.match(PURCHASE_ID))) completed.set(id, (completed.get(id) ?? 0) + 1)
  }
  for (const id of people.paid)
    if (completed.get(id) !== 1) core.violate('I4', `the payment of ${id} has ${completed.get(id) ?? 0} events`)
  const known = db.prepare<[string], { n: number }>('SELECT COUNT(*) AS n FROM outbox_event WHERE event_id = ?')
  for (const id of parts.receiver.posted)
    if (known.get(id)?.n !== 1) core.violate('I12', `${id} was posted but is no event`)
  // Each session has one purchase, despite retries.
  const doubled = db
    .prepare<[], { session_id: string; n: number }>(
      "SELECT session_id, COUNT(*) AS n FROM purchase WHERE status <> 'CANCELLED' AND session_id IS NOT NULL GROUP BY session_id HAVING COUNT(*) > 1",
    )
    .all()
  for (const { session_id: session, n } of doubled)
    core.violate('I10', `one checkout of session ${session} made ${n} purchases`)
  parts.money?.check(db)
  parts.tills?.oracle.checkEnd(db)
  checkConservation(parts, db)
}

/** Describes the first agent that rejects the shop's operator. Returns undefined if all accept the sign-in. */
function failedSignIn({ agents, shop }: EndParts): string | undefined {
  for (const { name, agent } of agents) {
    const opened = agent?.operators.signIn({ badge: shop.badge }, 'the end of the world')
    if (!opened?.ok) return `the operator cannot sign in at ${name}: ${opened?.reason}`
    agent?.operators.close(opened.session)
  }
  return undefined
}

/** Describes the first item whose status differs between an agent and the cloud. */
function staleItem({ agents, shop, tills }: EndParts, db: Connection): string | undefined {
  const items = db
    .prepare<[string], { epc: string; status: string }>(
      // A recalled item counts as on hold.
      `SELECT epc, CASE WHEN EXISTS (SELECT 1 FROM product_recall r WHERE r.product_id = i.product_id AND r.lot = i.lot AND r.ended_ms IS NULL)
         THEN 'exception_hold' ELSE item_status END AS status FROM protected_item i WHERE store_id = ? AND epc IS NOT NULL`,
    )
    .all(shop.storeId)
  for (const { name, agent } of agents) {
    // An agent keeps what another announced before the disk of that one was restored.
    const isLost = (epc: string) => tills?.book.lost.has(epc) === true
    const wrong = items.find(({ epc, status }) => agent?.items.find('epc', epc)?.status !== status && !isLost(epc))
    if (wrong)
      return `${name} has the item ${wrong.epc} as ${agent?.items.find('epc', wrong.epc)?.status ?? 'unknown'}, but it is ${wrong.status}`
  }
  return undefined
}

/** Checks that a resold item stays with the new purchase. */
function checkResold({ core, people }: EndParts, db: Connection): void {
  const item = db.prepare<[string], { purchaseId: string | null; status: string; purchase: string | null }>(
    'SELECT i.purchase_id AS purchaseId, item_status AS status, p.status AS purchase FROM protected_item i LEFT JOIN purchase p ON p.purchase_id = i.purchase_id WHERE epc = ?',
  )
  for (const each of people.resold) {
    const [epc = '', purchaseId = ''] = each.split(' ')
    const now = item.get(epc)
    if (now?.purchaseId !== purchaseId)
      core.violate(
        'I15',
        `${epc} was resold with ${purchaseId}, but in the cloud it belongs to ${now?.purchaseId ?? 'nobody'}`,
      )
    else if (now.status !== 'paid' && now.purchase !== 'CANCELLED')
      core.violate(
        'I15',
        `${epc} was resold with ${purchaseId}, which is ${now.purchase}, but the item is ${now.status}`,
      )
  }
}
