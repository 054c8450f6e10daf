import { resolveWorkflow, type DeviceCapabilities, type DeviceFacts } from '../../../policy/devices.ts'
import type { DeviceType, ProtectionTechnology, WorkflowType } from '../../../policy/vocabulary.ts'
import type { Db } from '../../persistence/database.ts'
import { prepared } from '../../persistence/prepared.ts'
import type { DeviceRow } from '../../persistence/tables/agents.ts'
import type { StoreRow } from '../../persistence/tables/stores.ts'

const byId = prepared((db, p: { tenant: string; deviceId: string }) =>
  db.selectFrom('device').selectAll().where('device_id', '=', p.deviceId).where('tenant', '=', p.tenant),
)

/** The tenant's device, decommissioned ones too. */
export async function findDevice(db: Db, tenant: string, deviceId: string): Promise<DeviceRow | undefined> {
  const [row] = await byId(db, { tenant, deviceId })
  return row
}

const ofStore = prepared((db, p: { storeId: string }) =>
  db.selectFrom('device').selectAll().where('store_id', '=', p.storeId).orderBy('device_id'),
)

/** Devices of a store, the oldest first. */
export function listDevices(db: Db, storeId: string): Promise<DeviceRow[]> {
  return ofStore(db, { storeId })
}

/** Decommissioned devices that agents are told of, the last ones: any other is unknown to them, and refused for that. */
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

/** The devices of a store that its agents are told of, the oldest first: those of years would fill their policy. */
export async function publishedDevices(db: Db, storeId: string): Promise<DeviceRow[]> {
  const told = [
    ...(await inService(db, { storeId })),
    ...(await decommissioned(db, { storeId, limit: DECOMMISSIONED_LIMIT })),
  ]
  return told.sort((a, b) => (a.device_id < b.device_id ? -1 : 1))
}

/** A device as decisions see it. */
export function deviceFacts(row: DeviceRow, store: Pick<StoreRow, 'workflow_type'>): DeviceFacts {
  const deviceType = row.device_type as DeviceType
  return {
    deviceId: row.device_id,
    storeId: row.store_id,
    deviceType,
    workflowType: resolveWorkflow(
      deviceType,
      row.workflow_type as WorkflowType | null,
      store.workflow_type as WorkflowType | null,
    ),
    capabilities: JSON.parse(row.capabilities) as DeviceCapabilities,
    supportedTechnologies: JSON.parse(row.technologies) as ProtectionTechnology[],
    agentId: row.agent_id,
    revoked: row.revoked_ms !== null,
  }
}
