import { resolveWorkflow, type DeviceCapabilities, type DeviceFacts } from '../../../policy/devices.ts'
import type { DeviceType, ProtectionTechnology, WorkflowType } from '../../../policy/vocabulary.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { prepared, preparedRow, preparedRows } from '../../platform/persistence/prepared.ts'
import type { Row } from '../../platform/persistence/schema.ts'

/** Device of the tenant, even if decommissioned. */
export const findDevice = preparedRow((db, tenant: string, deviceId: string) =>
  db.selectFrom('device').selectAll().where('device_id', '=', deviceId).where('tenant', '=', tenant),
)

/** Devices of a store, oldest first. */
export const listDevices = preparedRows((db, storeId: string) =>
  db.selectFrom('device').selectAll().where('store_id', '=', storeId).orderBy('device_id'),
)

/**
 * Maximum number of decommissioned devices in a policy. Agents do not know devices that were decommissioned earlier,
 * and reject requests of these devices.
 */
const DECOMMISSIONED_LIMIT = 50

const inService = prepared((db, p: { storeId: string }) =>
  db
    .selectFrom('device')
    .selectAll()
    .where('store_id', '=', p.storeId)
    .where('revoked_ms', 'is', null)
    .orderBy('device_id'),
)
const decommissioned = prepared((db, p: { storeId: string; limit: number }) =>
  db
    .selectFrom('device')
    .selectAll()
    .where('store_id', '=', p.storeId)
    .where('revoked_ms', 'is not', null)
    .orderBy('revoked_ms', 'desc')
    .orderBy('device_id')
    .limit(p.limit),
)

/**
 * Devices for the store's signed policy, oldest first. Leaves out old decommissioned devices to keep the policy small.
 */
export async function publishedDevices(db: Db, storeId: string): Promise<Row<'device'>[]> {
  const devices = [
    ...(await inService(db, { storeId })),
    ...(await decommissioned(db, { storeId, limit: DECOMMISSIONED_LIMIT })),
  ]
  return devices.sort((a, b) => (a.device_id < b.device_id ? -1 : 1))
}

/** Workflow of a device: its own, or the default of its store or type. */
export function deviceWorkflow(
  row: Row<'device'>,
  store: Pick<Row<'store'>, 'workflow_type'> | undefined,
): WorkflowType {
  return resolveWorkflow(
    row.device_type as DeviceType,
    row.workflow_type as WorkflowType | null,
    (store?.workflow_type ?? null) as WorkflowType | null,
  )
}

/** Facts about a device for decisions. */
export function deviceFacts(row: Row<'device'>, store: Pick<Row<'store'>, 'workflow_type'>): DeviceFacts {
  return {
    deviceId: row.device_id,
    storeId: row.store_id,
    deviceType: row.device_type as DeviceType,
    workflowType: deviceWorkflow(row, store),
    capabilities: JSON.parse(row.capabilities) as DeviceCapabilities,
    supportedTechnologies: JSON.parse(row.technologies) as ProtectionTechnology[],
    agentId: row.agent_id,
    ...(row.till_id !== null && { tillId: row.till_id }),
    revoked: row.revoked_ms !== null,
  }
}
