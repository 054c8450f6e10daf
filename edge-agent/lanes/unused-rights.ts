import { decide } from '../../policy/decide.ts'
import type { DeviceFacts } from '../../policy/devices.ts'
import { foldText } from '../../policy/fold-text.ts'
import { readUnitFacts } from '../../policy/receipts/policy-names.ts'
import { receiptEntry, type ReceiptClaims, type UnitFacts } from '../../policy/receipts/receipt-claims.ts'
import { openReceipt } from '../../policy/receipts/receipt-token.ts'
import type { ProtectionPolicy } from '../../policy/store-policy.ts'
import type { ProtectionAction } from '../../policy/vocabulary.ts'
import type { KnownProduct } from '../items/item-file.ts'
import { passedUnits, reportedGoods } from '../decisions/sale-goods.ts'
import type { Replica } from '../items/replica.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { validationTime, type AgentClock } from '../trust/time/clock.ts'
import type { Trust } from '../trust/trust.ts'

export interface UnusedRights {
  readonly claims: ReceiptClaims
  /** Numbers of the units whose right is free in this ledger, which did not come back, and which no recall stops. */
  readonly unused: readonly number[]
  /** The live policy, which has the names of the goods. */
  readonly policy: ProtectionPolicy | undefined
  /** The last release of its labels at this agent. */
  readonly used: UsedReceipt | undefined
}

/** When and where the labels of a receipt were released. `at`: ISO 8601. */
export interface UsedReceipt {
  readonly at: string
  /** Name of the device; absent if it has none. */
  readonly deviceName?: string
}

export interface ReceiptParts {
  storeId: string
  ledger: Pick<Ledger, 'claims' | 'till'>
  clock: AgentClock
  trust: Pick<Trust, 'keys' | 'policy'>
}

/** Returns the unused rights of a receipt. Undefined if the receipt is not genuine, has expired, or its sale is over. */
export function unusedRights(
  parts: ReceiptParts,
  receipt: string,
  rightClass: 'release' | 'exit',
): UnusedRights | undefined {
  const { storeId, ledger, clock, trust } = parts
  const { nowMs } = clock.now()
  const opened = openReceipt(receipt, { keys: trust.keys, storeId, ...validationTime(clock) })
  if (!opened.ok) return undefined
  const { claims } = opened
  const { key, units, isOver } = reportedGoods(parts, claims)
  if (isOver) return undefined
  const passed = passedUnits(parts, claims)
  const left = [...units.keys()].filter((n) => !units[n]?.cameBack && !units[n]?.isRecalled && !passed.includes(n))
  return {
    claims,
    policy: trust.policy?.policy,
    used: usedReceipt({ ledger, trust }, key, rightClass),
    unused: ledger.claims.freeOf(key, rightClass, left, nowMs, false),
  }
}

function usedReceipt(
  { ledger, trust }: Pick<ReceiptParts, 'ledger' | 'trust'>,
  cti: string,
  rightClass: 'release' | 'exit',
): UsedReceipt | undefined {
  const use = ledger.claims.lastUseOf(cti, rightClass)
  if (!use) return undefined
  const name = trust.policy?.devices.find(({ deviceId }) => deviceId === use.deviceId)?.name ?? undefined
  return { at: new Date(use.atMs).toISOString(), ...(name !== undefined && { deviceName: name }) }
}

/** What names goods. */
export type ProductNames = Pick<Replica, 'onlyProductOf' | 'namesByGtin'>

/** Units of a receipt with the same facts. `name`: name of the product, if it is the only one with these facts. */
export interface Goods extends UnitFacts {
  readonly name?: string
  readonly quantity: number
}

/**
 * What people know about the unused units of a receipt, in the order in which a device without a tag reader releases
 * them: by their numbers. Empty if the receipt has no facts. A
 * long receipt has only the categories and brands that the policy names.
 */
export function goodsOf({ claims, unused, policy }: UnusedRights, items: ProductNames): Goods[] {
  const names = namesOfUnits(claims, items)
  const groups = new Map<string, Goods>()
  for (const n of unused) {
    const { category = '', brand = '', priceCent } = readUnitFacts(claims, n, policy)
    if (priceCent === undefined) continue
    const facts = { category, brand, priceCent }
    const name = names(n)
    const key = JSON.stringify([foldText(facts.category), foldText(facts.brand), facts.priceCent, name])
    const quantity = (groups.get(key)?.quantity ?? 0) + 1
    groups.set(key, { ...facts, ...(name !== undefined && { name }), quantity })
  }
  return [...groups.values()].map((goods) => {
    const name = goods.name ?? items.onlyProductOf(goods)?.name
    return name === undefined ? goods : { ...goods, name }
  })
}

/**
 * Names of the units of a long receipt, which has no categories and brands: by the GTIN in their entries. Undefined for a
 * unit that is bound to a tag, and for other receipts.
 */
function namesOfUnits(
  { cti, entries, namesDigest }: ReceiptClaims,
  items: ProductNames,
): (n: number) => string | undefined {
  if (!entries || !namesDigest) return () => undefined
  const hexOf = (entry: Uint8Array) => Buffer.from(entry).toString('hex')
  const wanted = new Set(entries.map(hexOf))
  const names = new Map<string, string>()
  for (const [gtin, name] of items.namesByGtin()) {
    const entry = hexOf(receiptEntry(cti, 'gtin', gtin))
    if (wanted.has(entry)) names.set(entry, name)
  }
  return (n) => {
    const entry = entries[n]
    return entry && names.get(hexOf(entry))
  }
}

/**
 * Number of unused units that the policy does not let a shopper release at this device. `itemCount` and `remaining` of an
 * answer do not count them, so a page would say that all labels are off. Units whose price is unknown do not count: this
 * agent cannot tell them from those that other agents released.
 */
export function unitsForStaff(
  { claims, unused, policy }: UnusedRights,
  device: DeviceFacts,
  action: ProtectionAction,
): number {
  if (!policy) return 0
  return unused.filter((n) => {
    const facts = readUnitFacts(claims, n, policy)
    const asked = {
      action,
      storeId: device.storeId,
      device,
      clockTrusted: true,
      stage: 'fresh',
      item: { status: null, paidBy: 'purchase', ...facts },
      identifiedBy: [],
      right: 'free',
      hasOperator: false,
    } as const
    return facts.priceCent !== undefined && !decide(asked, policy).allowed
  }).length
}

/** The goods whose rights were used between two looks at a receipt; undefined if they are unknown or of several kinds. */
export function releasedProduct(
  before: UnusedRights,
  after: UnusedRights,
  items: ProductNames,
): KnownProduct | undefined {
  const unused = before.unused.filter((n) => !after.unused.includes(n))
  const [goods, other] = goodsOf({ ...before, unused }, items)
  if (!goods || other) return undefined
  const name = [goods.brand, goods.category].filter((part) => part !== '').join(' ')
  return (
    items.onlyProductOf(goods) ??
    (goods.name === undefined ? undefined : { name: goods.name }) ??
    (name === '' ? undefined : { name })
  )
}
