import { z } from 'zod'
import { changeCapabilities } from '../../../policy/devices.ts'
import { PROTECTION_TECHNOLOGIES, WORKFLOW_TYPES } from '../../../policy/vocabulary.ts'
import { invalid, precondition } from '../../platform/foundation/failure.ts'
import { DeviceHealth } from '../agent-identity/agent-queries.ts'
import { Id, Success, text } from '../../platform/operations/fields.ts'
import { operation, type Services } from '../../platform/operations/operation.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { orderInLocker } from '../../shop/pickup-orders/queries.ts'
import { moveToAgent, endMoves } from './move-device.ts'
import { deviceFacts, deviceWorkflow } from '../store-facts/device-queries.ts'
import { assertPolicyFits } from '../store-policy/policy-operations.ts'
import { TillOfDevice, assertAgentOf, Device, optionalCapabilities, ownDevice, toDevice } from './device-operations.ts'
import { storeDocumentChanged } from '../../platform/stores/parsed-policy.ts'
import { rolesFrom, systemCaller, type Tenant } from '../../platform/foundation/caller.ts'
import { newId } from '../../../policy/ids.ts'
import { inTurns } from '../../platform/operations/job-steps.ts'
import { performTask } from '../../platform/operations/perform.ts'
import type { Database, Db } from '../../platform/persistence/database.ts'

/** Fields that only the system sets. Callers may send them back unchanged (ADR requests). */
const SYSTEM_FIELDS = [
  'storeId',
  'deviceType',
  'registeredAt',
  'lastSeenAt',
  'decommissionedAt',
  'movingToAgentId',
] as const
const systemFields = Object.fromEntries(SYSTEM_FIELDS.map((name) => [name, z.string().nullable().optional()])) as {
  [K in (typeof SYSTEM_FIELDS)[number]]: z.ZodOptional<z.ZodNullable<z.ZodString>>
}
const clearable = (length: number) => text(length).nullable().optional().describe('null clears it.')

export const updateDevice = operation({
  name: 'updateDevice',
  area: 'protection',
  minimumPackage: 'GROW',
  roles: rolesFrom('manager'),
  summary: 'Changes a device.',
  description:
    'Missing fields stay unchanged. `agentId` assigns the device to the agent that drives it. If another agent has the device, the cloud revokes its tokens ' +
    'and issues no more. The device moves when that agent has given up the tokens, or a minute after the last one expired. Until then `movingToAgentId` ' +
    'names the new agent. To cancel the move, send the current agent. The receipt home does not move (see moveReceiptHome).',
  refusals: ['device_revoked', 'locker_in_use', 'policy_too_large'],
  changes: true,
  request: z.strictObject({
    deviceId: Id,
    name: clearable(120),
    zoneId: clearable(128),
    laneId: clearable(128),
    gateId: clearable(128),
    tillId: TillOfDevice.nullable().optional(),
    firmwareVersion: clearable(128),
    ...optionalCapabilities,
    supportedTechnologies: z.array(z.enum(PROTECTION_TECHNOLOGIES)).max(5).optional(),
    workflowType: z
      .enum(WORKFLOW_TYPES)
      .nullable()
      .optional()
      .describe('null resets it to the workflow type of the store, else to the default of the device type.'),
    agentId: Id.optional(),
    health: DeviceHealth.optional().describe('Set by the system, and ignored.'),
    ...systemFields,
  }),
  response: Device.extend(Success),
  example: { deviceId: 'dev_01KANX6Y7C3V9Q2M8R5T4W6Z1B', name: 'Ausgang Nord', gateId: 'gate-north' },
  async run(
    call,
    {
      deviceId,
      name,
      zoneId,
      laneId,
      gateId,
      tillId,
      firmwareVersion,
      workflowType,
      agentId,
      storeId,
      deviceType,
      registeredAt,
      lastSeenAt,
      decommissionedAt,
      movingToAgentId,
      ...others
    },
  ) {
    const { health: _health, ...stated } = others
    const { row, store } = await ownDevice(call, deviceId)
    const shown = toDevice(row, store)
    for (const [field, value] of Object.entries({
      storeId,
      deviceType,
      registeredAt,
      lastSeenAt,
      decommissionedAt,
      movingToAgentId,
    })) {
      if (value !== undefined && value !== (shown[field as keyof typeof shown] ?? null))
        throw invalid(field, 'is set by the system and cannot be changed', 'system_field')
    }
    if (row.revoked_ms !== null)
      throw precondition('device_revoked', 'the device is out of service: register a new one')
    const facts = deviceFacts(row, store)
    // A cabinet of this workflow opens for any paid receipt. Without a workflow of its own, the store's applies.
    const nextWorkflow = deviceWorkflow({ ...row, workflow_type: workflowType ?? null }, store)
    if (
      workflowType !== undefined &&
      nextWorkflow === 'self_service' &&
      facts.workflowType !== nextWorkflow &&
      (await orderInLocker(call.db, deviceId))
    )
      throw precondition('locker_in_use', 'an order waits in this locker: hand it over first')
    const { capabilities, supportedTechnologies } = changeCapabilities(facts, stated)
    const set: Partial<Row<'device'>> = {
      ...(name !== undefined && { name }),
      ...(zoneId !== undefined && { zone_id: zoneId }),
      ...(laneId !== undefined && { lane_id: laneId }),
      ...(gateId !== undefined && { gate_id: gateId }),
      ...(tillId !== undefined && { till_id: tillId }),
      ...(firmwareVersion !== undefined && { firmware_version: firmwareVersion }),
      // A client may send back the workflow type that the store sets. Such a value must not become the device's own
      // setting.
      ...(workflowType !== undefined && workflowType !== facts.workflowType && { workflow_type: workflowType }),
      capabilities: JSON.stringify(capabilities),
      technologies: JSON.stringify(supportedTechnologies),
    }
    await call.db.updateTable('device').set(set).where('device_id', '=', deviceId).execute()
    if (Buffer.byteLength(set.name ?? '') > Buffer.byteLength(row.name ?? ''))
      await assertPolicyFits(call, row.store_id)
    // A client that sends the current state back unchanged does not cancel a move.
    const isAgentChange = agentId !== undefined && !(agentId === row.agent_id && movingToAgentId === row.moving_to)
    if (isAgentChange && agentId !== row.agent_id) await assertAgentOf(call, row.store_id, agentId)
    const assignment = isAgentChange ? await moveToAgent(call, row, store, agentId) : {}
    await storeDocumentChanged(call, row.store_id)
    call.changed(deviceId)
    return { success: true as const, ...toDevice({ ...row, ...set, ...assignment }, store) }
  },
})

/** Accounts per read. Further accounts follow in the next run. */
const ACCOUNTS = 1_000

/** Ends device moves whose former agent did not answer, after the tokens of the device have expired. */
export function endDueMoves(database: Database, services: Services): Promise<boolean> {
  const moving = (db: Db) => db.selectFrom('device').where('moving_to', 'is not', null)
  return inTurns<string>(database, services, {
    job: 'moving devices',
    async accounts(db) {
      const rows = await moving(db).select('tenant').distinct().limit(ACCOUNTS).execute()
      return rows.map(({ tenant }) => tenant)
    },
    async turn(tenant, after = '') {
      const stores = moving(database.reads).select('store_id').where('tenant', '=', tenant)
      const next = await stores.where('store_id', '>', after).orderBy('store_id').limit(1).executeTakeFirst()
      if (!next) return undefined
      const { store_id: storeId } = next
      const who = {
        operation: updateDevice,
        caller: systemCaller(tenant as Tenant, 'moving devices'),
        requestId: newId('req', services.platform),
      }
      await performTask(who, database, services, async (call) => {
        if ((await endMoves(call, storeId)) > 0) call.changed(storeId)
      })
      return storeId
    },
  })
}
