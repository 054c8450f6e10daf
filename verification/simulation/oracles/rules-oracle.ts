import type { Database as Connection } from 'better-sqlite3'
import type { AuthorizeAnswer, AuthorizeRequest } from '../../../edge-agent/decisions/request.ts'
import { decide, type Decision } from '../../../policy/decide.ts'
import type { DeviceFacts } from '../../../policy/devices.ts'
import { extractReceiptToken } from '../../../policy/receipts/receipt-token.ts'
import type { ProtectionPolicy } from '../../../policy/store-policy.ts'
import { rightClassOf, type DenyReason } from '../../../policy/vocabulary.ts'
import type { Core } from '../virtual/core.ts'

/**
 *   receipt ─ cloud's database ─▶ true facts of its units ─ policy of the agent ─▶ what should be released
 *                                                                                   = what the agent released offline?
 *
 * Compares every offline answer to a receipt with the policy's decision about what was really bought.
 */
export interface RulesOracle {
  /** An agent has answered; `rules` are those by which it decided. */
  answered(request: AuthorizeRequest, answer: AuthorizeAnswer, rules: RulesAtAgent): void
  /** Offline answers to a receipt. */
  readonly compared: number
  /** Of these: refused only because a fact was unknown. */
  readonly stricter: number
}

export interface RulesAtAgent {
  readonly policy: ProtectionPolicy
  readonly devices: readonly DeviceFacts[]
  readonly ver: number
}

export interface RulesOracleParts {
  core: Core
  /** The cloud's database; undefined while there is none. */
  reading(): Connection | undefined
  /**
   * True if no ledger is restored or untrusted and no home moves. Then only a rule can cause
   * `manual_assistance_required`.
   */
  isCalm: boolean
}

interface TrueUnit {
  epc: string | null
  category: string
  brand: string
  priceCent: number
}

const UNITS = `SELECT i.epc, COALESCE(i.category, p.category, l.category, '') AS category,
    COALESCE(i.brand, p.brand, l.brand, '') AS brand, l.price_cent AS priceCent
  FROM purchase b JOIN purchase_unit u ON u.purchase_id = b.purchase_id JOIN purchase_line l ON l.line_id = u.line_id
    LEFT JOIN protected_item i ON i.item_id = u.item_id LEFT JOIN product p ON p.product_id = COALESCE(i.product_id, l.product_id)
  WHERE b.receipt_token = ?`

const BY_RULE: readonly DenyReason[] = ['action_not_allowed', 'workflow_not_allowed']

/** Nothing was answered yet. */
export function rulesOracle({ core, reading, isCalm }: RulesOracleParts): RulesOracle {
  const known = new Map<string, TrueUnit[]>()
  /** Releases without an operator, by receipt, device and version of the policy. */
  const released = new Map<string, number>()
  const byRule = new Set<DenyReason | undefined>(isCalm ? [...BY_RULE, 'manual_assistance_required'] : BY_RULE)
  let compared = 0
  let stricter = 0

  function unitsOf(receipt: string): TrueUnit[] {
    const token = extractReceiptToken(receipt) ?? ''
    const units = known.get(token) ?? reading()?.prepare<[string], TrueUnit>(UNITS).all(token) ?? []
    if (units.length > 0) known.set(token, units)
    return units
  }

  function truthOf(
    unit: TrueUnit,
    { action, operatorId }: AuthorizeRequest,
    device: DeviceFacts,
    policy: ProtectionPolicy,
  ) {
    const { category, brand, priceCent } = unit
    const item = { status: 'paid', paidBy: 'purchase', category, brand, priceCent } as const
    const facts = { action, storeId: device.storeId, device, clockTrusted: true, stage: 'fresh', item } as const
    return decide({ ...facts, identifiedBy: [], right: 'free', hasOperator: operatorId !== undefined }, policy)
  }

  /** No more is released here than the rules allow; a ledger that was restored may release a unit again. */
  function count(request: AuthorizeRequest, answer: AuthorizeAnswer, truths: readonly Decision[], ver: number): void {
    if (!isCalm) return
    const isOne = rightClassOf(request.action) === 'release' && answer.outcome === 'confirmed'
    if (!isOne || request.operatorId !== undefined || request.identifiers.epc !== undefined) return
    const key = [extractReceiptToken(request.receipt ?? ''), request.deviceId, ver].join(' ')
    const times = (released.get(key) ?? 0) + 1
    released.set(key, times)
    const allowed = truths.filter((truth) => truth.allowed).length
    if (times > allowed)
      core.violate('rules', `${times} units of a receipt are released offline, of which the policy allows ${allowed}`)
  }

  return {
    answered(request, answer, { policy, devices, ver }) {
      const device = devices.find(({ deviceId }) => deviceId === request.deviceId)
      if (!answer.offline || !device || request.receipt === undefined || request.token !== undefined) return
      const { epc } = request.identifiers
      const units = unitsOf(request.receipt).filter((unit) => epc === undefined || unit.epc === epc)
      const truths = units.map((unit) => truthOf(unit, request, device, policy))
      const [first] = truths
      if (!first) return
      compared++
      if (answer.authorized) {
        if (truths.every((truth) => !truth.allowed))
          core.violate('rules', `${request.action} is done offline: ${first.trace.at(-1)?.detail}`)
        return count(request, answer, truths, ver)
      }
      if (!byRule.has(answer.reason) || truths.some((truth) => !truth.allowed)) return
      if (answer.unknownFacts) stricter++
      else core.violate('rules', `${request.action} is refused offline (${answer.reason}), and no rule says so`)
    },
    get compared() {
      return compared
    },
    get stricter() {
      return stricter
    },
  }
}
