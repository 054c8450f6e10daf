import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { assessItem } from '../../../../edge-agent/decisions/by-item.ts'
import { DeviceFacts } from '../../../../policy/devices.ts'
import { ProtectionPolicy } from '../../../../policy/store-policy.ts'
import { startTestCloud, type Json, type TestCloud } from '../../../support/cloud.ts'
import { liveStores } from '../../../support/live-store.ts'
import { newEpc } from '../../../support/shop.ts'

/**
 * Every action × item status × device × workflow × policy: the cloud through its HTTP API, and the rules of an agent.
 * The expected answers in `expected` were written from the API specification ("spec") and from the pages for merchants,
 * without a look at the code.
 */

const ACTIONS = [
  'deactivate_label',
  'detach_hard_tag',
  'suppress_alarm',
  'authorize_exit',
  'unlock_fixture',
  'verify_item_status',
] as const
type Action = (typeof ACTIONS)[number]

const WORKFLOWS = ['staff_assisted', 'self_service', 'automatic_exit', 'pos_integrated'] as const
type Workflow = (typeof WORKFLOWS)[number]

/** Spec, "Device registry record": what each type of device can do. All read UHF tags. */
const DEVICES = {
  pos_deactivator: { canDeactivateLabel: true },
  self_checkout_detacher: { canDetachHardTag: true },
  exit_gate: {},
  handheld_reader: { canReadReceiptQr: true },
  cabinet_unlocker: { canUnlockFixture: true },
} as const
type DeviceType = keyof typeof DEVICES

/** Spec, "itemStatus values", and a tag that is not registered. */
const STATUSES = [
  'sellable',
  'paid',
  'reserved_bopis',
  'picked_up',
  'returned',
  'transfer_in_transit',
  'cancelled',
  'exception_hold',
  'unregistered',
] as const
type Status = (typeof STATUSES)[number]

const ITEM = { price: 99.99, brand: 'Nordhof', category: 'Uhren' }
type Rules = Partial<Record<Action, readonly Workflow[]>>
const EVERYWHERE: Rules = Object.fromEntries(ACTIONS.map((action) => [action, WORKFLOWS]))
const only = (...workflows: Workflow[]): Rules => Object.fromEntries(ACTIONS.map((action) => [action, workflows]))

interface Policy {
  allowedActionsByCategory: Record<string, Rules>
  requiresManualOverrideAboveValue?: number
  requiresStaffForBrand?: string[]
}

/** The same item under each policy. `operator`: the request names a member of staff. */
const POLICIES: Record<string, { policy: Policy; operator?: boolean }> = {
  'no entry': { policy: { allowedActionsByCategory: {} } },
  'an entry of another category': { policy: { allowedActionsByCategory: { Schuhe: EVERYWHERE } } },
  'self service for the category': {
    policy: { allowedActionsByCategory: { '*': EVERYWHERE, ' uHREN': only('self_service') } },
  },
  'one action for the category': {
    policy: { allowedActionsByCategory: { '*': EVERYWHERE, Uhren: { detach_hard_tag: ['self_service'] } } },
  },
  'staff only for the category, operator': {
    policy: { allowedActionsByCategory: { '*': EVERYWHERE, Uhren: only('staff_assisted') } },
    operator: true,
  },
  'empty lists, operator': { policy: { allowedActionsByCategory: { '*': only() } }, operator: true },
  'price at the threshold': {
    policy: { allowedActionsByCategory: { '*': EVERYWHERE }, requiresManualOverrideAboveValue: 99.99 },
  },
  'price below the threshold': {
    policy: { allowedActionsByCategory: { '*': EVERYWHERE }, requiresManualOverrideAboveValue: 100 },
  },
  'brand needs staff': {
    policy: { allowedActionsByCategory: { '*': EVERYWHERE }, requiresStaffForBrand: ['NORDHOF '] },
  },
  'brand needs staff, operator': {
    policy: { allowedActionsByCategory: { '*': EVERYWHERE }, requiresStaffForBrand: ['NORDHOF '] },
    operator: true,
  },
}

interface Cell {
  action: Action
  status: Status
  deviceType: DeviceType
  workflow: Workflow
  policy: Policy
  operator: boolean
}

/** Spec, "itemStatus values and gate behaviour": for which statuses an action may be granted. */
const MAY: Record<Exclude<Action, 'verify_item_status'>, readonly Status[]> = {
  // "paid: no alarm; action authorised". "reserved_bopis: alarm until pick-up confirmed", so picked_up is like paid.
  deactivate_label: ['paid', 'picked_up'],
  detach_hard_tag: ['paid', 'picked_up'],
  // "paid: no alarm", "picked_up: no alarm", "transfer_in_transit: alarm suppressed".
  suppress_alarm: ['paid', 'picked_up', 'transfer_in_transit'],
  authorize_exit: ['paid', 'picked_up', 'transfer_in_transit'],
  // lanes.md, "Cabinets": staff open it for goods that are for sale. "paid: action authorised".
  unlock_fixture: ['sellable', 'reserved_bopis', 'paid', 'picked_up'],
}

/** The reason of the denial, or `granted`. Reasons in the order of errors.md, "Reasons of a denial". */
function expected({ action, status, deviceType, workflow, policy, operator }: Cell): string {
  // Spec, "Policy rule": "when the device can detach hard tags", and likewise for the other capabilities.
  const capabilities: { [capability: string]: boolean } = DEVICES[deviceType]
  const can: Record<Action, boolean> = {
    deactivate_label: capabilities['canDeactivateLabel'] === true,
    detach_hard_tag: capabilities['canDetachHardTag'] === true,
    unlock_fixture: capabilities['canUnlockFixture'] === true,
    suppress_alarm: deviceType === 'exit_gate',
    authorize_exit: deviceType === 'exit_gate',
    verify_item_status: true,
  }
  if (!can[action]) return 'device_not_capable'
  if (status === 'unregistered') return 'item_unknown'
  // ADR releases, table of actions: "any; it uses no right and creates no token".
  if (action === 'verify_item_status') return 'granted'
  if (!MAY[action].includes(status)) return 'item_not_paid'
  const isForSale = status === 'sellable' || status === 'reserved_bopis'
  // ADR releases: "At a `self_service` fixture shoppers pay first; unpaid goods are `item_not_paid` there."
  if (action === 'unlock_fixture' && isForSale && !operator && workflow === 'self_service') return 'item_not_paid'
  const workflows = workflowsOf(action, policy)
  // errors.md: "The policy forbids this action, also for staff."
  if (workflows.length === 0) return 'action_not_allowed'
  // lanes.md, "Cabinets": "either a signed-in operator or a policy that allows self service".
  const isOpenedByStaff = action === 'unlock_fixture' && operator
  if (!workflows.includes(workflow) && !isOpenedByStaff) return 'workflow_not_allowed'
  // ADR releases: "Staff are required for […] fixtures without `self_service`."
  if (action === 'unlock_fixture' && workflow !== 'self_service' && !operator) return 'manual_assistance_required'
  // Spec, "Policy rule": "Deny with reason `manual_assistance_required` when the item price is at or above the store's
  // override threshold or the brand requires staff." errors.md: "Sign in an operator".
  // Spec, table of statuses: "paid: no alarm; action authorised". The rule speaks of releases, so paid goods may leave.
  const isExit = action === 'authorize_exit' || action === 'suppress_alarm'
  const folded = (text: string) => text.trim().toLowerCase()
  const needsStaff =
    ITEM.price >= (policy.requiresManualOverrideAboveValue ?? Infinity) ||
    (policy.requiresStaffForBrand ?? []).some((brand) => folded(brand) === folded(ITEM.brand))
  return needsStaff && !isExit && !operator ? 'manual_assistance_required' : 'granted'
}

/** OpenAPI, `allowedActionsByCategory`: "for each action the workflows in which it is allowed". */
function workflowsOf(action: Action, { allowedActionsByCategory: entries }: Policy): readonly Workflow[] {
  // "The entry of a category replaces "*". Case, Unicode form and the width of blanks do not matter."
  const own = Object.keys(entries).find((name) => name.trim().toLowerCase() === ITEM.category.toLowerCase())
  const entry = entries[own ?? '*']
  // ADR releases: "Without any entry, all workflows except `self_service` are allowed."
  return entry ? (entry[action] ?? []) : WORKFLOWS.filter((workflow) => workflow !== 'self_service')
}

/** Statuses by hand, spec "itemStatus values"; the first is the status of the registration. */
const WAY: Record<Exclude<Status, 'unregistered'>, readonly [string, ...string[]]> = {
  sellable: ['sellable'],
  paid: ['sellable', 'paid'],
  reserved_bopis: ['sellable', 'reserved_bopis'],
  picked_up: ['sellable', 'reserved_bopis', 'picked_up'],
  returned: ['returned'],
  transfer_in_transit: ['transfer_in_transit'],
  cancelled: ['sellable', 'paid', 'cancelled'],
  exception_hold: ['exception_hold'],
}

describe('the matrix of decisions', () => {
  let cloud: TestCloud
  let key: string
  let storeId: string
  let operatorId: string
  /** One item for each device, action and status: no right is shared between cells of one policy. */
  const cells: (Omit<Cell, 'policy' | 'operator'> & { device: DeviceFacts; epc: string })[] = []
  const ok = (operation: string, body: Json) => cloud.ok(key, operation, { storeId, ...body })

  beforeAll(async () => {
    cloud = await startTestCloud('sqlite')
    key = await cloud.key('secret', 'live')
    storeId = (await liveStores(cloud, key))[0] ?? ''
    await ok('updateStore', { securityTagMode: 'rfid' })
    operatorId = (await ok('registerOperator', { name: 'A. Klein' })).operatorId
    for (const deviceType of Object.keys(DEVICES) as DeviceType[])
      for (const workflow of WORKFLOWS) {
        const capabilities = {
          canDeactivateLabel: false,
          canDetachHardTag: false,
          canReadReceiptQr: false,
          canReadUhfRfid: true,
          canReadHfNfc: false,
          canUnlockFixture: false,
          supportsOfflineAuth: false,
          ...DEVICES[deviceType],
        }
        const device = { deviceType, workflowType: workflow, supportedTechnologies: ['uhf_rfid'] }
        const { deviceId } = await ok('registerDevice', { ...device, ...capabilities })
        const facts = DeviceFacts.parse({ ...device, deviceId, storeId, capabilities, agentId: null, revoked: false })
        for (const action of ACTIONS)
          for (const status of STATUSES)
            cells.push({ action, status, deviceType, workflow, device: facts, epc: newEpc() })
      }
    await register()
  })
  afterAll(() => cloud.stop())

  async function register(): Promise<void> {
    const rows = cells.flatMap(({ status, epc }) =>
      status === 'unregistered' ? [] : [{ epc, protectionTechnology: 'uhf_rfid', ...ITEM, itemStatus: WAY[status][0] }],
    )
    for (let i = 0; i < rows.length; i += 500)
      expect((await ok('registerProtectedItems', { items: rows.slice(i, i + 500) })).errors).toEqual([])
    await inParts(cells, async ({ status, epc }) => {
      if (status === 'unregistered') return
      for (const itemStatus of WAY[status].slice(1)) await ok('updateItemStatus', { epc, itemStatus })
    })
  }

  /** SQLite stores the requests of one part together. */
  async function inParts<T, R>(rows: readonly T[], work: (row: T) => Promise<R>): Promise<R[]> {
    const results: R[] = []
    for (let i = 0; i < rows.length; i += 200) results.push(...(await Promise.all(rows.slice(i, i + 200).map(work))))
    return results
  }

  async function askCloud({ action, device, epc }: (typeof cells)[0], operator: boolean): Promise<string> {
    const who = operator ? { operatorId } : {}
    const body = { deviceId: device.deviceId, protectionAction: action, epc, ...who }
    const { authorized, reason } = await cloud.ok(key, 'verifyProtectedItem', body)
    return authorized ? 'granted' : reason
  }

  /** The rules that an offline agent applies to a named item in its copy of the items. */
  function askAgent({ action, status, device, epc }: (typeof cells)[0], policy: Policy, operator: boolean): string {
    const { price, ...known } = ITEM
    const item = { status, priceCent: Math.round(price * 100), technology: 'uhf_rfid', paying: false, ...known }
    const trust = { policy: { policy: ProtectionPolicy.parse(policy) }, stage: () => 'fresh' }
    const clock = { now: () => ({ nowMs: 0, trust: 'signed' }) }
    const items = { find: () => (status === 'unregistered' ? undefined : item), confirmedMs: 0 }
    const request = { deviceId: device.deviceId, action, identifiers: { epc }, ...(operator && { operatorId }) }
    return assessItem({ trust, clock } as never, items as never, { request, device }).refusal ?? 'granted'
  }

  it('has at least 4,800 cells', () => {
    expect(cells.length * Object.keys(POLICIES).length).toBeGreaterThanOrEqual(4_800)
  })

  it.each(Object.entries(POLICIES))('%s', async (_, { policy, operator = false }) => {
    await ok('updateProtectionPolicy', { policy: { ...policy, operatorOverridesPerHour: 1_000 } })
    const wrong = await inParts(cells, async (cell) => {
      const wanted = expected({ ...cell, policy, operator })
      const answers = [await askCloud(cell, operator), askAgent(cell, policy, operator)]
      const { action, status, deviceType, workflow } = cell
      const where = `${action} of ${status} at ${deviceType}, ${workflow}`
      return answers.every((answer) => answer === wanted)
        ? []
        : [`${where}: ${answers.join(' | ')}, expected ${wanted}`]
    })
    expect(wrong.flat()).toEqual([])
  })
})
