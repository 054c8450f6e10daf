import { z } from 'zod'
import { completeCapabilities, DeviceCapabilities } from '../../../policy/devices.ts'
import { newId } from '../../../policy/ids.ts'
import { DEVICE_TYPES, PROTECTION_TECHNOLOGIES, WORKFLOW_TYPES } from '../../../policy/vocabulary.ts'
import { knownCaller, rolesFrom } from '../../platform/foundation/caller.ts'
import { invalid, notFound } from '../../platform/foundation/failure.ts'
import { deviceHealth, DeviceHealth, stateOf, type ReportingAgent } from '../agent-identity/agent-queries.ts'
import { Id, iso, Limit, Offset, definedFields, Success, text, Timestamp } from '../../platform/operations/fields.ts'
import { operation, type Call } from '../../platform/operations/operation.ts'
import { cursorField, pageAfter, pageLimits, readPageWithinText, type Page } from '../../platform/operations/paging.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { preparedForMany } from '../../platform/persistence/prepared.ts'
import type { SelectQueryBuilder } from 'kysely'
import type { Row, Schema } from '../../platform/persistence/schema.ts'
import {
  ALL_STORES,
  countRows,
  inScopes,
  ownScopes,
  ownStore,
  ownStoreOf,
  Total,
  TOTAL_LIMIT,
  type StoreScope,
} from '../../platform/stores/own-store.ts'
import { deviceFacts, findDevice } from '../store-facts/device-queries.ts'
import { adoptDevice, setDeviceAgent } from './move-device.ts'
import { revokeTokens } from '../leases/token-revocations.ts'
import { assertPolicyFits } from '../store-policy/policy-operations.ts'
import { storeDocumentChanged } from '../../platform/stores/parsed-policy.ts'

/**
 * Registry of devices. Agents receive the registry in the signed policy of their store. A registered device belongs to
 * the first agent that reports it (`reportDeviceHeartbeat`). `updateDevice` can move a device to another agent
 * (move-device.ts). `decommissionDevice` is final.
 */

/** Maximum number of devices per store; one signed policy contains them all. */
const DEVICES_LIMIT = 1_000
const DEFAULT_PAGE = 100

const Capabilities = DeviceCapabilities.shape

/** Device registry record (specification). */
export const Device = z.strictObject({
  deviceId: z.string(),
  deviceType: z.enum(DEVICE_TYPES),
  storeId: z.string(),
  name: z.string().optional(),
  zoneId: z.string().optional(),
  laneId: z.string().optional(),
  gateId: z.string().optional(),
  tillId: z.string().optional().describe('The till beside it: only its sales release here.'),
  agentId: z.string().optional(),
  movingToAgentId: z
    .string()
    .optional()
    .describe(
      'Agent to which the device moves. The move ends when the current agent has given up its tokens for the device.',
    ),
  firmwareVersion: z.string().optional(),
  ...Capabilities,
  supportedTechnologies: z.array(z.enum(PROTECTION_TECHNOLOGIES)),
  workflowType: z
    .enum(WORKFLOW_TYPES)
    .describe('Workflow type of the device, else of the store, else the default of the device type.'),
  registeredAt: z.string(),
  lastSeenAt: z.string().nullable(),
  decommissionedAt: z.string().optional(),
})

/** A device in a list, with its health. */
const ListedDevice = Device.extend({
  health: DeviceHealth.optional().describe(
    'As its agent reported it last; within 15 s after a change. Missing for a decommissioned device.',
  ),
})

/** Describes a device in the form of the API. */
export function toDevice(row: Row<'device'>, store: Pick<Row<'store'>, 'workflow_type'>): z.infer<typeof Device> {
  const facts = deviceFacts(row, store)
  return {
    deviceId: row.device_id,
    deviceType: facts.deviceType,
    storeId: row.store_id,
    ...definedFields({
      name: row.name,
      zoneId: row.zone_id,
      laneId: row.lane_id,
      gateId: row.gate_id,
      tillId: row.till_id,
      agentId: row.agent_id,
      movingToAgentId: row.moving_to,
      firmwareVersion: row.firmware_version,
      decommissionedAt: row.revoked_ms === null ? null : iso(row.revoked_ms),
    }),
    ...facts.capabilities,
    supportedTechnologies: facts.supportedTechnologies,
    workflowType: facts.workflowType,
    registeredAt: iso(row.registered_ms),
    lastSeenAt: row.last_seen_ms === null ? null : iso(row.last_seen_ms),
  }
}

/** Schema with every capability as an optional field. */
export const optionalCapabilities = Object.fromEntries(
  Object.keys(Capabilities).map((name) => [name, z.boolean().optional()]),
) as {
  [K in keyof typeof Capabilities]: z.ZodOptional<z.ZodBoolean>
}

/** The till beside a device. */
export const TillOfDevice = text(64).describe(
  'The till beside a deactivator or detacher: only what this till sold is released here (docs/guides/connect-your-till.md).',
)

/** Fields of a new device, apart from its store. */
const NEW_DEVICE = {
  deviceType: z.enum(DEVICE_TYPES),
  name: text(120).optional(),
  zoneId: text(128).optional(),
  laneId: text(128).optional(),
  gateId: text(128).optional(),
  tillId: TillOfDevice.optional(),
  firmwareVersion: text(128).optional(),
  ...optionalCapabilities,
  supportedTechnologies: z.array(z.enum(PROTECTION_TECHNOLOGIES)).max(5).optional(),
  workflowType: z.enum(WORKFLOW_TYPES).optional(),
  agentId: Id.optional(),
}

export const registerDevice = operation({
  name: 'registerDevice',
  area: 'protection',
  minimumPackage: 'GROW',
  roles: rolesFrom('manager'),
  summary: 'Registers a device in a store and returns its deviceId.',
  description:
    'Missing fields get the defaults of the device type. The technologies determine what the device can read.',
  refusals: ['policy_too_large'],
  changes: true,
  request: z.strictObject({ storeId: Id, ...NEW_DEVICE }),
  response: Device.extend(Success),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B', deviceType: 'self_checkout_detacher', name: 'Selbstablöser 2' },
  async run(call, { storeId, ...input }) {
    const store = await ownStore(call, storeId)
    return { success: true as const, ...(await addDevice(call, store, input)) }
  },
})

/** Registers a device in a store, for one of its agents or for the first agent that reports it. */
export async function addDevice(
  call: Call,
  store: Row<'store'>,
  input: z.infer<z.ZodObject<typeof NEW_DEVICE>>,
): Promise<z.infer<typeof Device>> {
  const { deviceType, name, zoneId, laneId, gateId, tillId, firmwareVersion, workflowType, agentId, ...stated } = input
  const { store_id: storeId } = store
  await assertRoom(call, storeId)
  if (agentId !== undefined) await assertAgentOf(call, storeId, agentId)
  const { capabilities, supportedTechnologies } = completeCapabilities(deviceType, stated)
  const row: Row<'device'> = {
    device_id: newId('dev', call.services.platform),
    tenant: store.tenant,
    store_id: storeId,
    agent_id: null,
    device_type: deviceType,
    name: name ?? null,
    zone_id: zoneId ?? null,
    lane_id: laneId ?? null,
    gate_id: gateId ?? null,
    till_id: tillId ?? null,
    firmware_version: firmwareVersion ?? null,
    capabilities: JSON.stringify(capabilities),
    technologies: JSON.stringify(supportedTechnologies),
    workflow_type: workflowType ?? null,
    registered_ms: call.nowMs,
    last_seen_ms: null,
    revoked_ms: null,
    moving_to: null,
  }
  await call.db.insertInto('device').values(row).execute()
  if (agentId === undefined) await storeDocumentChanged(call, storeId)
  else await setDeviceAgent(call, row, store, agentId)
  await assertPolicyFits(call, storeId)
  call.changed(row.device_id)
  return toDevice({ ...row, agent_id: agentId ?? null }, store)
}

async function assertRoom({ db }: Call, storeId: string): Promise<void> {
  const { count } = await db
    .selectFrom('device')
    .select((eb) => eb.fn.countAll().as('count'))
    .where('store_id', '=', storeId)
    .where('revoked_ms', 'is', null)
    .executeTakeFirstOrThrow()
  if (Number(count) >= DEVICES_LIMIT)
    throw invalid(
      'storeId',
      `has ${DEVICES_LIMIT} devices, which is the maximum: decommission unused ones`,
      'too_many_devices',
    )
}

/** Throws 404 if the agent is revoked or belongs to another store. */
export async function assertAgentOf({ db }: Call, storeId: string, agentId: string): Promise<void> {
  const agent = await db
    .selectFrom('agent')
    .select(['store_id', 'revoked_ms'])
    .where('agent_id', '=', agentId)
    .executeTakeFirst()
  if (agent?.store_id !== storeId || agent.revoked_ms !== null) throw notFound('agent')
}

export const fetchDevices = operation({
  name: 'fetchDevices',
  area: 'protection',
  minimumPackage: 'GROW',
  roles: rolesFrom('viewer'),
  summary: 'Lists the devices of a store or account.',
  description: ALL_STORES,
  changes: false,
  request: z.strictObject({
    storeId: Id.optional(),
    deviceId: Id.optional().describe('Only this device.'),
    deviceType: z.enum(DEVICE_TYPES).optional(),
    limit: Limit.optional(),
    offset: Offset.optional(),
    cursor: cursorField('dev').optional(),
  }),
  response: z.strictObject({
    ...Success,
    devices: z.array(ListedDevice),
    total: Total,
    nextCursor: z.string().optional(),
  }),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B' },
  async run(call, input) {
    const scopes = await ownScopes(call, input.storeId)
    if (scopes.length === 0) return { success: true as const, devices: [], total: 0 }
    const wanted = devicesOf(call.db, scopes, input)
    const { items, nextCursor: more } = await pageOfDevices(call.db, wanted, pageLimits(input, DEFAULT_PAGE))
    const agents = await reportingAgents(call, items)
    const stores = await workflowsOf(call.db, [...new Set(items.map((row) => row.store_id))])
    return {
      success: true as const,
      devices: items.flatMap((row) => {
        const store = stores.get(row.store_id)
        const isInUse = row.revoked_ms === null
        const health = deviceHealth(row.device_id, agents.get(row.agent_id ?? ''), call.nowMs)
        return store ? [{ ...toDevice(row, store), ...(isInUse && { health }) }] : []
      }),
      total: await countRows(call.db, wanted.select('device_id').limit(TOTAL_LIMIT)),
      ...(more && { nextCursor: more }),
    }
  },
})

/** Characters of the stored states of these agents' devices. */
const stateLengths = preparedForMany((db, agentIds) =>
  db
    .selectFrom('agent')
    .select(['agent_id', (eb) => eb.fn<number | null>('length', ['device_states']).as('length')])
    .where('agent_id', 'in', agentIds),
)

/** Workflow types of stores, by id. */
async function workflowsOf(db: Db, storeIds: readonly string[]) {
  if (storeIds.length === 0) return new Map<string, never>()
  const rows = await db
    .selectFrom('store')
    .select(['store_id', 'workflow_type'])
    .where('store_id', 'in', storeIds)
    .execute()
  return new Map(rows.map((row) => [row.store_id, row]))
}

type Devices = SelectQueryBuilder<Schema, 'device', object>

function devicesOf(
  db: Db,
  scopes: readonly StoreScope[],
  { deviceId, deviceType }: { deviceId?: string | undefined; deviceType?: string | undefined },
): Devices {
  let devices: Devices = db.selectFrom('device').where(inScopes('device', scopes))
  if (deviceId !== undefined) devices = devices.where('device_id', '=', deviceId)
  if (deviceType !== undefined) devices = devices.where('device_type', '=', deviceType)
  return devices
}

/** A page of devices. It ends early if their agents have long states, which the answer reads. */
function pageOfDevices(db: Db, wanted: Devices, page: Page) {
  const lengths = new Map<string, number>()
  return readPageWithinText(
    async (limit, last: Row<'device'> | undefined) => {
      const { after, offset } = pageAfter(page, last?.device_id)
      const query = wanted.selectAll().orderBy('device_id').limit(limit)
      const rows = await (after === undefined ? query.offset(offset) : query.where('device_id', '>', after)).execute()
      const agentIds = new Set(rows.flatMap(({ agent_id: id }) => (id === null || lengths.has(id) ? [] : [id])))
      for (const { agent_id: id, length } of await stateLengths(db, agentIds)) lengths.set(id, length ?? 0)
      return rows
    },
    (row) => row.device_id,
    ({ agent_id: id }) => {
      const length = id === null ? 0 : (lengths.get(id) ?? 0)
      // The state of an agent is read once.
      if (id !== null) lengths.set(id, 0)
      return length
    },
    page,
  )
}

/** The agents of these devices, by id. */
async function reportingAgents(
  { db, services }: Call,
  devices: readonly Row<'device'>[],
): Promise<Map<string, ReportingAgent>> {
  const agentIds = [...new Set(devices.flatMap(({ agent_id }) => agent_id ?? []))]
  if (agentIds.length === 0) return new Map()
  const rows = await db
    .selectFrom('agent')
    .select(['agent_id', 'state', 'device_states', 'last_seen_ms'])
    .where('agent_id', 'in', agentIds)
    .where('revoked_ms', 'is', null)
    .execute()
  return new Map(
    rows.map(({ agent_id: id, last_seen_ms, ...row }) => [
      id,
      { state: stateOf(row), lastSeenMs: services.lastSeen.lastSeenMs(id) ?? last_seen_ms },
    ]),
  )
}

/** Reads a device with its store. Throws 404 if the device is unknown or the caller may not see its store. */
export async function ownDevice(call: Call, deviceId: string): Promise<{ row: Row<'device'>; store: Row<'store'> }> {
  const row = await findDevice(call.db, knownCaller(call.caller).tenant, deviceId)
  if (!row) throw notFound('device')
  return { row, store: await ownStoreOf(call, row.store_id, 'device') }
}

export const decommissionDevice = operation({
  name: 'decommissionDevice',
  area: 'protection',
  minimumPackage: 'GROW',
  roles: rolesFrom('manager'),
  summary: 'Takes a device out of service. The cloud revokes its authorizations and issues no more.',
  changes: true,
  request: z.strictObject({ deviceId: Id }),
  response: Device.extend(Success),
  example: { deviceId: 'dev_01KANX6Y7C3V9Q2M8R5T4W6Z1B' },
  async run(call, { deviceId }) {
    const { row, store } = await ownDevice(call, deviceId)
    const revokedMs = row.revoked_ms ?? call.nowMs
    if (row.revoked_ms === null) {
      await call.db.updateTable('device').set({ revoked_ms: revokedMs }).where('device_id', '=', deviceId).execute()
      await revokeTokens(call, { kind: 'device', deviceId }, 'the device was decommissioned')
      await storeDocumentChanged(call, store.store_id)
    }
    call.changed(deviceId)
    return { success: true as const, ...toDevice({ ...row, revoked_ms: revokedMs }, store) }
  },
})

export const reportDeviceHeartbeat = operation({
  name: 'reportDeviceHeartbeat',
  area: 'protection',
  minimumPackage: 'GROW',
  roles: [],
  summary: 'Reports that a device is alive. If an agent calls it, it also adopts the device.',
  description:
    'A device belongs to the first agent of its store that reports it. The first agent that reports an exit gate becomes the store’s receipt home.',
  callers: ['secret', 'agent'],
  refusals: ['device_of_another_agent'],
  changes: true,
  audited: false,
  request: z.strictObject({ deviceId: Id, firmwareVersion: text(128).optional(), occurredAt: Timestamp.optional() }),
  response: z.strictObject({ ...Success, lastSeenAt: z.string() }),
  example: { deviceId: 'dev_01KANX6Y7C3V9Q2M8R5T4W6Z1B' },
  async run(call, { deviceId, firmwareVersion, occurredAt }) {
    const { row, store } = await ownDevice(call, deviceId)
    const seenMs = Math.max(
      row.last_seen_ms ?? 0,
      Math.min(occurredAt === undefined ? call.nowMs : Date.parse(occurredAt), call.nowMs),
    )
    await call.db
      .updateTable('device')
      .set({ last_seen_ms: seenMs, ...(firmwareVersion !== undefined && { firmware_version: firmwareVersion }) })
      .where('device_id', '=', deviceId)
      .execute()
    if (call.caller.kind === 'agent') await adoptDevice(call, row, store, call.caller.agentId)
    return { success: true as const, lastSeenAt: iso(seenMs) }
  },
})
