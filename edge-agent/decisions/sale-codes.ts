import type { SoldCode } from '../../policy/documents/till-notice.ts'
import { looksLikeReceiptCode, receiptCodeHash } from '../../policy/till-sale.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { CloudLink } from '../link/cloud-link.ts'
import type { AgentClock } from '../trust/time/clock.ts'
import type { Trust } from '../trust/trust.ts'
import type { FoundReceipt } from './pickup-code.ts'

/** A sale that a till reported to an agent of the store, and whose receipt the cloud has perhaps not signed yet. */
export type KnownSale = Pick<SoldCode, 'sale' | 'exp' | 'riskClass' | 'goods'>

/** `sale`: the cloud has no receipt for the code yet, or cannot be reached. `needs_staff`: two sales have the code. */
export type SoldByCode =
  | Exclude<FoundReceipt, { kind: 'none' }>
  | { kind: 'sale'; sale: KnownSale }
  | { kind: 'none'; why: (FoundReceipt & { kind: 'none' })['why'] | 'needs_staff' }

interface SaleCodesParts {
  ledger: Pick<Ledger, 'till'>
  link: Pick<CloudLink, 'isOnline' | 'call'>
  trust: Pick<Trust, 'policy'>
  clock: Pick<AgentClock, 'now'>
  storeId: string
  agentId: string
}

/**
 * Finds the sale of a code that a till printed on its receipt (ADR till-sales). Never throws.
 *
 *   online ─▶ the cloud: the receipt of the sale
 *   offline, or the cloud does not know it yet ─▶ what tills reported here, or other agents announced
 */
export async function saleOfCode(parts: SaleCodesParts, text: string): Promise<SoldByCode> {
  const { link, storeId } = parts
  if (!looksLikeReceiptCode(text)) return { kind: 'none', why: 'unknown_code' }
  const answer = link.isOnline ? await link.call('getReceiptFromCode', { storeId, code: text }) : undefined
  if (answer?.kind === 'answered' && typeof answer.body['token'] === 'string')
    return { kind: 'receipt', text: answer.body['token'] }
  if (answer?.kind === 'refused' && answer.code === 'receipt_expired') return { kind: 'none', why: 'receipt_expired' }
  if (answer?.kind === 'refused' && answer.code === 'code_of_several_sales') return { kind: 'none', why: 'needs_staff' }
  const isUnknown = answer?.kind === 'refused' && answer.status === 404
  return knownHere(parts, text) ?? { kind: 'none', why: isUnknown ? 'unknown_code' : 'needs_connection' }
}

function knownHere({ ledger, trust, clock, storeId, agentId }: SaleCodesParts, text: string): SoldByCode | undefined {
  const agents = trust.policy?.policy.tillSales.agents ?? []
  const [sale, another] = ledger.till
    .salesWithCode(receiptCodeHash(storeId, text), Math.floor(clock.now().nowMs / 1_000))
    .filter(({ sender }) => agents.includes(sender === '' ? agentId : sender))
  if (another) return { kind: 'none', why: 'needs_staff' }
  return (
    sale && {
      kind: 'sale',
      sale: { sale: sale.sale, exp: sale.exp, riskClass: sale.riskClass, goods: sale.goods },
    }
  )
}
