import { resolveWorkflow, type DeviceCapabilities, type DeviceFacts } from '../../policy/devices.ts'
import type { DeviceType, ProtectionTechnology, WorkflowType } from '../../policy/vocabulary.ts'
import type { Db } from '../persistence/database.ts'
import { prepared } from '../persistence/prepared.ts'
import type { DeviceRow } from '../persistence/tables/agents.ts'
import type { StoreRow } from '../persistence/tables/stores.ts'

const byId = prepared((db, p: { tenant: string; deviceId: string }) =>
  db.selectFrom('device').selectAll().where('device_id', '=', p.deviceId).where('tenant', '=', p.tenant),
)

/** The tenant's device, decommissioned ones too. */
export async function findDevice(db: Db, tenant: string, deviceId: string): Promise<DeviceRow | undefined> {
  const [row] = await byId(db, { tenant, deviceId })
  return row
}

const ofStore = prepared((db, p: { storeId: string }) => db.selectFrom('device').selectAll().where('store_id', '=', p.storeId).orderBy('device_id'))

/** Devices of a store, the oldest first. */
export function listDevices(db: Db, storeId: string): Promise<DeviceRow[]> {
  return ofStore(db, { storeId })
}

/** A device as decisions see it. */
export function deviceFacts(row: DeviceRow, store: Pick<StoreRow, 'workflow_type'>): DeviceFacts {
  const deviceType = row.device_type as DeviceType
  return {
    deviceId: row.device_id,
    storeId: row.store_id,
    deviceType,
    workflowType: resolveWorkflow(deviceType, row.workflow_type as WorkflowType | null, store.workflow_type as WorkflowType | null),
    capabilities: JSON.parse(row.capabilities) as DeviceCapabilities,
    supportedTechnologies: JSON.parse(row.technologies) as ProtectionTechnology[],
    agentId: row.agent_id,
    revoked: row.revoked_ms !== null,
  }
}
