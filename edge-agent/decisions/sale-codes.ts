import { hash } from 'node:crypto'
import type { SoldCode } from '../../policy/documents/till-notice.ts'
import { keyRing, type KeyRing, type Signer } from '../../policy/documents/keys.ts'
import { releasesByCode } from '../../policy/receipts/code-strength.ts'
import {
  extractReceiptToken,
  openReceipt,
  signSaleReceipt,
  type OpenedReceipt,
} from '../../policy/receipts/receipt-token.ts'
import { looksLikeReceiptCode, receiptCodeHash } from '../../policy/till-sale.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { CloudLink } from '../link/cloud-link.ts'
import { agentKeys } from '../peers/store-agents.ts'
import { validationTime, type AgentClock } from '../trust/time/clock.ts'
import type { Trust } from '../trust/trust.ts'
import type { FoundReceipt } from './pickup-code.ts'

/** A sale that a till reported to an agent of the store, and whose receipt the cloud has perhaps not signed yet. */
export type KnownSale = Pick<SoldCode, 'sale' | 'exp' | 'riskClass'> & {
  /** Undefined: its receipt has no room for them, and no agent announced them. */
  goods: string | undefined
}

interface MayRelease {
  /** False: the code opens a barrier, and is nothing to a deactivator (`tillSales.codes` of the policy). */
  readonly releases: boolean
}

/** `sale`: the cloud has no receipt for the code yet, or cannot be reached. `needs_staff`: two sales have the code. */
export type SoldByCode =
  | (Exclude<FoundReceipt, { kind: 'none' }> & MayRelease)
  | ({ kind: 'sale'; sale: KnownSale } & MayRelease)
  | { kind: 'none'; why: (FoundReceipt & { kind: 'none' })['why'] | 'needs_staff' }

interface SaleCodesParts {
  ledger: Pick<Ledger, 'till'>
  link: Pick<CloudLink, 'isOnline' | 'call'>
  trust: Pick<Trust, 'policy' | 'stage' | 'keys'>
  clock: Pick<AgentClock, 'now'>
  storeId: string
  agentId: string
  /** Stores what the receipt home knows about the hash of a code. Never throws. */
  fetchFromHome(code: string): Promise<void>
}

/**
 * Finds the sale of a code that a till printed on its receipt (ADR till-sales). Never throws.
 *
 *   online ─▶ the cloud: the receipt of the sale
 *   offline, or the cloud does not know it yet ─▶ what tills reported here, or other agents announced ─▶ the receipt home
 */
export async function saleOfCode(parts: SaleCodesParts, text: string): Promise<SoldByCode> {
  const { link, storeId } = parts
  if (!looksLikeReceiptCode(text)) return { kind: 'none', why: 'unknown_code' }
  const answer = link.isOnline ? await link.call('getReceiptFromCode', { storeId, code: text }) : undefined
  if (answer?.kind === 'answered' && typeof answer.body['token'] === 'string') {
    const token = answer.body['token']
    // Another till may have printed the code on a sale that the cloud does not have yet.
    return isOfOthers(parts, text, token)
      ? { kind: 'none', why: 'needs_staff' }
      : { kind: 'receipt', text: token, releases: answer.body['releases'] === true }
  }
  if (answer?.kind === 'refused' && answer.code === 'receipt_expired') return { kind: 'none', why: 'receipt_expired' }
  if (answer?.kind === 'refused' && answer.code === 'code_of_several_sales') return { kind: 'none', why: 'needs_staff' }
  const isUnknown = answer?.kind === 'refused' && answer.status === 404
  const known = knownHere(parts, text)
  if (known) return known
  await parts.fetchFromHome(receiptCodeHash(storeId, text))
  return knownHere(parts, text) ?? { kind: 'none', why: isUnknown ? 'unknown_code' : 'needs_connection' }
}

/** True if a sale that is known here, other than that of the receipt, has the code. */
function isOfOthers(parts: Omit<SaleCodesParts, 'fetchFromHome'>, text: string, receipt: string): boolean {
  const { trust, clock, storeId } = parts
  const sales = salesOfCode(parts, receiptCodeHash(storeId, text), clock.now().nowMs / 1_000)
  if (sales.length === 0) return false
  const opened = openReceipt(receipt, { keys: trust.keys, storeId })
  return !opened.ok || sales.some(({ sale }) => sale !== hex(opened.claims.cti))
}

function salesOfCode(
  { ledger, trust, agentId }: Pick<SaleCodesParts, 'ledger' | 'agentId'> & { trust: Pick<Trust, 'policy'> },
  code: string,
  nowS: number,
) {
  const agents = trust.policy?.policy.tillSales.agents ?? []
  const sales = ledger.till.salesWithCode(code, Math.floor(nowS))
  return sales.filter(({ sender }) => agents.includes(sender === '' ? agentId : sender))
}

function knownHere(parts: Omit<SaleCodesParts, 'fetchFromHome'>, text: string): SoldByCode | undefined {
  const code = receiptCodeHash(parts.storeId, text)
  const [sale, another] = salesOfCode(parts, code, parts.clock.now().nowMs / 1_000)
  if (another) return { kind: 'none', why: 'needs_staff' }
  return (
    sale && {
      kind: 'sale',
      releases: releasesByCode(parts.trust.policy?.policy.tillSales.codes ?? 'barrier', text),
      sale: { sale: sale.sale, exp: sale.exp, riskClass: sale.riskClass, goods: sale.goods },
    }
  )
}

/** Keys of the agents that may record sales, and whose receipts count. A revoked agent is not in the policy. */
function sellerKeys(trust: Pick<Trust, 'policy'>): KeyRing {
  const agents = trust.policy?.policy.tillSales.agents ?? []
  return keyRing(agents.flatMap((agentId) => [...agentKeys(trust, agentId).values()]))
}

/** Verifies a receipt that an agent of the store signed for a sale of a till. Checks the expiry only if `at` is given. */
export function openSellerReceipt(
  trust: Pick<Trust, 'policy'>,
  scanned: string,
  storeId: string,
  at?: { now: number; nowIsLowerBound: boolean },
): OpenedReceipt {
  return openReceipt(scanned, { keys: new Map(), agents: sellerKeys(trust), storeId, ...at })
}

/**
 * What a receipt that an agent signed stands for: online the receipt that the cloud signed for the sale, else the sale
 * by its goods, as for a code. Undefined for any other text, and if the cloud has revoked the agent. Never throws.
 */
export async function saleOfSellerReceipt(
  parts: Pick<SaleCodesParts, 'ledger' | 'link' | 'clock' | 'storeId' | 'agentId'> & { trust: Pick<Trust, 'policy'> },
  scanned: string,
): Promise<{ receipt: string } | { sale: KnownSale } | undefined> {
  const { link, trust, clock, storeId } = parts
  const opened = openSellerReceipt(trust, scanned, storeId, validationTime(clock))
  if (!opened.ok) return undefined
  const code = extractReceiptToken(scanned)
  const answer = link.isOnline ? await link.call('getReceiptFromCode', { storeId, code }) : undefined
  if (answer?.kind === 'answered' && typeof answer.body['token'] === 'string') return { receipt: answer.body['token'] }
  if (answer?.kind === 'refused' && answer.status !== 404) return undefined
  const { cti, exp, riskClass, entries } = opened.claims
  const sale = hex(cti)
  const [announced] = salesOfCode(parts, goodsCode(sale), 0)
  return { sale: { sale, exp, riskClass, goods: entries ? entries.map(hex).join('') : announced?.goods } }
}

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')

/** Under this code agents announce the goods of a sale whose receipt has no room for them. No till can print it. */
export function goodsCode(saleKey: string): string {
  return hash('sha256', `untag/sale-goods/1\0${saleKey}`, 'hex').slice(0, 32)
}

/**
 * Signs the receipt of a sale that a till reported here. Undefined without trusted time or a current policy: then the
 * sale needs staff.
 */
export function signSellerReceipt(
  { trust, clock, storeId, signer }: Pick<SaleCodesParts, 'trust' | 'clock' | 'storeId'> & { signer(): Signer },
  { sale, exp, riskClass, goods }: KnownSale,
): string | undefined {
  const { policy } = trust
  if (!policy || trust.stage() === 'expired' || clock.now().trust === 'none') return undefined
  const cti = Buffer.from(sale, 'hex')
  const entries = (goods?.match(/.{8}/g) ?? []).map((entry) => Buffer.from(entry, 'hex'))
  return signSaleReceipt({ storeId, exp, cti, riskClass, policyVersion: policy.ver }, entries, signer())
}
