import type { ReceiptClaims, UnitFacts } from '../../policy/receipts/receipt-claims.ts'
import { openReceipt } from '../../policy/receipts/receipt-token.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { validationTime, type AgentClock } from '../trust/time/clock.ts'
import type { Trust } from '../trust/trust.ts'

export interface UnusedRights {
  readonly claims: ReceiptClaims
  /** Numbers of the units whose right is free in this ledger. */
  readonly unused: readonly number[]
}

export interface ReceiptParts {
  storeId: string
  ledger: Pick<Ledger, 'claims'>
  clock: AgentClock
  trust: Pick<Trust, 'keys'>
}

/** Returns the unused rights of a receipt. Undefined if the receipt is not genuine, has expired or was revoked. */
export function unusedRights(
  { storeId, ledger, clock, trust }: ReceiptParts,
  receipt: string,
  rightClass: 'release' | 'exit',
): UnusedRights | undefined {
  const { nowMs } = clock.now()
  const opened = openReceipt(receipt, { keys: trust.keys, storeId, ...validationTime(clock) })
  if (!opened.ok) return undefined
  const { claims } = opened
  const cti = Buffer.from(claims.cti).toString('hex')
  if (ledger.claims.isDenied(cti)) return undefined
  return {
    claims,
    unused: Array.from({ length: claims.units }, (_, n) => n).filter((n) =>
      ledger.claims.isFree(cti, rightClass, n, nowMs, false),
    ),
  }
}

/** Units of a receipt with the same facts. */
export interface Goods extends UnitFacts {
  readonly quantity: number
}

/** What people know about the unused units of a receipt, the most expensive first. Empty if the receipt has no facts. */
export function goodsOf({ claims, unused }: UnusedRights): Goods[] {
  const groups = new Map<string, Goods>()
  for (const facts of unused.flatMap((n) => claims.facts?.[n] ?? [])) {
    const key = JSON.stringify([facts.category, facts.brand, facts.priceCent])
    groups.set(key, { ...facts, quantity: (groups.get(key)?.quantity ?? 0) + 1 })
  }
  return [...groups.values()].toSorted((a, b) => b.priceCent - a.priceCent)
}
