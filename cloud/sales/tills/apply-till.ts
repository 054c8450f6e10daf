import type { TillEvidence } from '../../../policy/journal.ts'
import { cancelledTags } from '../../../policy/cancelled-lines.ts'
import { saleKeyOf, tagsOf, takesBack, type KeptReturn } from '../../../policy/till-sale.ts'
import { Failure, precondition } from '../../platform/foundation/failure.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { findStore } from '../../platform/stores/queries.ts'
import { raiseForeignEvidence } from '../../protection/evidence/evidence-scope.ts'
import { policyOf } from '../../platform/stores/parsed-policy.ts'
import { itemsWith } from '../../protection/items/item-queries.ts'
import { raiseException } from '../../protection/records/exceptions.ts'
import { findAgent } from '../../protection/agent-identity/sessions.ts'
import { recordSale } from './record-sale.ts'
import { recordReturn } from './return-goods.ts'
import { keepReturned } from './returned-tags.ts'
import { EXCHANGE_KEY } from './piece-reports.ts'
import { bindSoldPiece } from './sold-piece.ts'
import { findSale } from './queries.ts'
import { meansAnother, voidSaleOf } from './void-sale.ts'

/** Agents that may have had the ledger before. */
const PREDECESSORS = 10

/** Time after which an agent without the cloud has no policy any more by which it takes sales, ms. */
const POLICY_KNOWN_MS = 80 * 3_600_000

/**
 * True if the policy names the agent, or the one whose ledger it continues, or did when it stored the row: those rows
 * were acknowledged. An agent refuses sales as soon as it knows that the policy names it no more.
 */
async function isNamed({ db }: Call, store: Row<'store'>, agentId: string, storedMs: number): Promise<boolean> {
  const { agents } = policyOf(store).tillSales
  let id = agentId
  for (let n = 0; n < PREDECESSORS; n++) {
    if (agents.includes(id)) return true
    const agent = await findAgent(db, id)
    const untilMs = agent?.till_until_ms ?? null
    if (untilMs !== null && storedMs <= untilMs + POLICY_KNOWN_MS) return true
    const former = agent?.replaces
    if (!former || (await findAgent(db, former))?.replaced_by !== id) return false
    id = former
  }
  return false
}

/** The till's own number of what it reported. */
function numberOf(evidence: Exclude<TillEvidence, { kind: 'sale_piece' }>): string {
  if (evidence.kind === 'sale_return') return evidence.return.returnId
  return evidence.kind === 'sale' ? evidence.sale.saleId : evidence.saleId
}

/**
 * Applies a sale, void or return that a till reported to an agent. The agent has answered the till, so nothing is
 * refused: what cannot be booked is an exception. Returns false if the row must be retried.
 */
export async function applyTill(
  call: Call,
  { agentId, storeId }: { agentId: string; storeId: string },
  evidence: TillEvidence,
  storedMs: number,
): Promise<boolean> {
  const store = await findStore(call.db, storeId)
  if (!store) return false
  const scope = { db: call.db, tenant: store.tenant, platform: call.services.platform, nowMs: call.nowMs }
  if (!(await isNamed(call, store, agentId, storedMs))) {
    const about = evidence.kind === 'sale_piece' ? evidence.epc : numberOf(evidence)
    const detail = 'an agent that the policy does not name in tillSales.agents reported a sale'
    await raiseForeignEvidence(scope, { agentId, storeId }, { kind: evidence.kind, about, detail })
    return false
  }
  if (evidence.kind === 'sale_piece') return bindSoldPiece(call, store, evidence, { storedMs, agentId })
  // Without trusted time the order is open. Then the return is the later one, so that goods on the shelf alarm.
  const atLeast = (ms: number, { untimed }: { untimed?: true | undefined }) => (untimed ? Math.max(ms, call.nowMs) : ms)
  const saleKey = evidence.kind === 'sale_return' ? keyOfSale(storeId, evidence) : undefined
  const known = saleKey === undefined ? undefined : await findSale(call.db, saleKey)
  const isOfAnother = await meansAnother(call, store, known, agentId)
  try {
    if (isOfAnother) throw precondition('sale_conflict', 'it is not booked, because another sale has its number')
    if (evidence.kind === 'sale')
      await recordSale(call, store, evidence.sale, {
        // A copy of a sale is as old as the first one, so that goods that came back meanwhile stay here.
        storedMs: Math.min(storedMs, evidence.announcedMs ?? storedMs),
        agent: { agentId, items: evidence.items, resold: evidence.resold },
        withoutReturns: evidence.withoutReturns,
        isUntimed: evidence.untimed === true && evidence.announcedMs === undefined,
        returnedMs: atLeast(storedMs, evidence),
      })
    else if (evidence.kind === 'sale_void')
      await voidSaleOf(call, store, evidence, { reason: evidence.reason, agentId, storedMs })
    else
      await recordReturn(call, store, evidence.return, {
        storedMs: atLeast(storedMs, evidence),
        agentId,
        saleKey: evidence.sale,
      })
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    // `recordSale` has raised `sale_conflict`.
    if (evidence.kind === 'sale') {
      await keepExchanged(call, store, evidence, { storedMs: atLeast(storedMs, evidence), agentId })
      return true
    }
    // A return by tag may have been booked on this sale first: then this one may be about the next sale.
    const isBooked = error.extras.reason !== 'already_refunded'
    if (evidence.kind === 'sale_return')
      await keepReturned(call, store, evidence.return, {
        storedMs: atLeast(storedMs, evidence),
        agentId,
        isBooked,
        saleKey: isOfAnother ? undefined : saleKey,
      })
    await raiseException(scope, {
      storeId,
      kind: 'return_unclear',
      subject: `${agentId}/${numberOf(evidence)}`,
      detail: `a till reported to an agent what does not fit its sale: ${error.message}`,
    })
  }
  return true
}

/** Takes goods back that came back with a sale that is not booked. */
async function keepExchanged(
  call: Call,
  store: Row<'store'>,
  { sale, withoutReturns }: Extract<TillEvidence, { kind: 'sale' }>,
  made: { storedMs: number; agentId: string },
): Promise<void> {
  if (withoutReturns) return
  const itemOf = await itemsWith(call.db, store.tenant, sale.lines)
  const isCancelled = cancelledTags(sale, ({ kind, id, isValid }) =>
    isValid ? itemOf({ [kind]: id })?.item_id : undefined,
  )
  const back = sale.lines.flatMap((line, i) =>
    takesBack(line) ? tagsOf(line).filter((tag) => !isCancelled(i, tag)) : [],
  )
  if (back.length === 0) return
  const idsOf = (of: string) => back.flatMap(({ kind, id }) => (kind === of ? [id] : []))
  const request: KeptReturn = {
    returnId: `${EXCHANGE_KEY}${sale.saleId} at ${made.agentId}`,
    epcs: idsOf('epc'),
    tagUids: idsOf('tagUid'),
    tagIds: idsOf('tagId'),
    codeHash: null,
  }
  await keepReturned(call, store, request, { ...made, isBooked: true, saleKey: undefined })
}

/** Identity of the sale that a return names: found by the agent, or by its number. */
function keyOfSale(
  storeId: string,
  { sale, return: request }: Extract<TillEvidence, { kind: 'sale_return' }>,
): string | undefined {
  const { saleId, tillId, series } = request
  return sale ?? (saleId === undefined ? undefined : saleKeyOf(storeId, { saleId, tillId, series }))
}
