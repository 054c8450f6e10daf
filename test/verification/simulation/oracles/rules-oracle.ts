import type { Database as Connection } from 'better-sqlite3'
import type { AuthorizeAnswer, AuthorizeRequest } from '../../../../edge-agent/decisions/request.ts'
import { decide, type Decision } from '../../../../policy/decide.ts'
import type { DeviceFacts } from '../../../../policy/devices.ts'
import { extractReceiptToken } from '../../../../policy/receipts/receipt-token.ts'
import type { ProtectionPolicy } from '../../../../policy/store-policy.ts'
import { rightClassOf, type DenyReason, type ItemStatus } from '../../../../policy/vocabulary.ts'
import type { Core } from '../virtual/core.ts'

/**
 * Compares every offline answer to a receipt with the decision of the policy. The oracle reads the purchased goods
 * from the cloud database.
 */
export interface RulesOracle {
  /** Statuses of the units that the request is about, by the agent's copy of the items. */
  statusesAt(request: AuthorizeRequest, statusOf: (epc: string) => ItemStatus | undefined): (ItemStatus | undefined)[]
  /** Called for each answer. `rules`: policy, devices and version that the agent used for this answer. */
  answered(request: AuthorizeRequest, answer: AuthorizeAnswer, rules: RulesAtAgent): void
  /** Number of offline answers to receipts that were compared. */
  readonly compared: number
  /** Number of these answers that were stricter than the policy, but only because the agent did not know a fact. */
  readonly stricter: number
}

export interface RulesAtAgent {
  readonly policy: ProtectionPolicy
  readonly devices: readonly DeviceFacts[]
  readonly ver: number
  /** Statuses of the receipt's units at the agent, before the request and after the answer. */
  readonly statuses: readonly (readonly (ItemStatus | undefined)[])[]
}

/** Statuses in which the table of ADR releases lets goods of a receipt leave, by right class. Written from the ADR. */
const MAY_LEAVE: Record<string, readonly ItemStatus[]> = {
  release: ['sellable', 'paid', 'picked_up'],
  exit: ['sellable', 'paid', 'picked_up', 'transfer_in_transit'],
  open: ['sellable', 'paid', 'picked_up'],
}

export interface RulesOracleParts {
  core: Core
  /** Read connection of the cloud database; undefined if there is none. */
  reading(): Connection | undefined
  /**
   * True if the receipt home never moves, and all ledgers are trusted and never restored. In such a run,
   * `manual_assistance_required` must come from a rule of the policy.
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
    COALESCE(i.brand, p.brand, l.brand, '') AS brand, 
    MAX(l.price_cent, COALESCE(l.list_price_cent, 0)) AS priceCent
  FROM purchase b JOIN purchase_unit u ON u.purchase_id = b.purchase_id JOIN purchase_line l ON l.line_id = u.line_id
    LEFT JOIN protected_item i ON i.item_id = u.item_id LEFT JOIN product p ON p.product_id = COALESCE(i.product_id, l.product_id)
  WHERE b.receipt_token = ?`

const BY_RULE: readonly DenyReason[] = ['action_not_allowed', 'workflow_not_allowed']

/**
 * True if all goods of the request must stay. A receipt without a tag may release its other units, so a unit of unknown
 * status is enough to make this false.
 */
function mustStay({ action }: AuthorizeRequest, statuses: readonly (ItemStatus | undefined)[]): boolean {
  const allowed = MAY_LEAVE[rightClassOf(action) ?? ''] ?? []
  return statuses.length > 0 && statuses.every((status) => status !== undefined && !allowed.includes(status))
}

/** Decision of the policy about a paid unit. */
function truthOf(
  { category, brand, priceCent }: TrueUnit,
  { action, operatorId }: AuthorizeRequest,
  device: DeviceFacts,
  policy: ProtectionPolicy,
): Decision {
  const item = { status: 'paid', category, brand, priceCent } as const
  const facts = { action, storeId: device.storeId, device, clockTrusted: true, stage: 'fresh', item } as const
  return decide({ ...facts, identifiedBy: [], right: 'free', hasOperator: operatorId !== undefined }, policy)
}

/** Creates the oracle. */
export function rulesOracle({ core, reading, isCalm }: RulesOracleParts): RulesOracle {
  const known = new Map<string, TrueUnit[]>()
  /** Number of releases without an operator, by receipt, device and policy version. */
  const released = new Map<string, number>()
  const byRule = new Set<DenyReason | undefined>(isCalm ? [...BY_RULE, 'manual_assistance_required'] : BY_RULE)
  let compared = 0
  let stricter = 0

  function unitsAt({ receipt = '', identifiers: { epc } }: AuthorizeRequest): TrueUnit[] {
    return unitsOf(receipt).filter((unit) => epc === undefined || unit.epc === epc)
  }

  function unitsOf(receipt: string): TrueUnit[] {
    const token = extractReceiptToken(receipt) ?? ''
    const units = known.get(token) ?? reading()?.prepare<[string], TrueUnit>(UNITS).all(token) ?? []
    if (units.length > 0) known.set(token, units)
    return units
  }

  /**
   * Checks that at most as many units are released as the policy allows. Does nothing if `isCalm` is false, because a
   * restored ledger may repeat a release.
   */
  function count(request: AuthorizeRequest, answer: AuthorizeAnswer, truths: readonly Decision[], ver: number): void {
    if (!isCalm) return
    const isOne = rightClassOf(request.action) !== 'exit' && answer.outcome === 'confirmed'
    if (!isOne || request.operatorId !== undefined || request.identifiers.epc !== undefined) return
    const key = [extractReceiptToken(request.receipt ?? ''), request.deviceId, ver].join(' ')
    const times = (released.get(key) ?? 0) + 1
    released.set(key, times)
    const allowed = truths.filter((truth) => truth.allowed).length
    if (times > allowed)
      core.violate('rules', `${times} units of a receipt are released offline, but the policy allows ${allowed}`)
  }

  return {
    statusesAt: (request, statusOf) => unitsAt(request).map(({ epc }) => (epc === null ? undefined : statusOf(epc))),
    answered(request, answer, { policy, devices, ver, statuses }) {
      const device = devices.find(({ deviceId }) => deviceId === request.deviceId)
      if (!answer.offline || !device || request.receipt === undefined || request.token !== undefined) return
      const truths = unitsAt(request).map((unit) => truthOf(unit, request, device, policy))
      const [first] = truths
      if (!first) return
      compared++
      if (answer.authorized) {
        if (statuses.every((known) => mustStay(request, known)))
          core.violate('rules', `${request.action} is granted offline for goods that the agent knows to be on hold`)
        if (truths.every((truth) => !truth.allowed))
          core.violate(
            'rules',
            `${request.action} is granted offline, against the policy: ${first.trace.at(-1)?.detail}`,
          )
        return count(request, answer, truths, ver)
      }
      if (!byRule.has(answer.reason) || truths.some((truth) => !truth.allowed)) return
      if (answer.unknownFacts) stricter++
      else core.violate('rules', `${request.action} is refused offline (${answer.reason}), but no rule requires it`)
    },
    get compared() {
      return compared
    },
    get stricter() {
      return stricter
    },
  }
}
