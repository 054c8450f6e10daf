import { hash } from 'node:crypto'
import { z } from 'zod'
import { crockford } from '../../../policy/base32.ts'
import { normaliseEnrolmentCode } from '../../../policy/documents/agent-messages.ts'
import { DEVICE_TYPES } from '../../../policy/vocabulary.ts'
import { notFound, precondition, type Failure } from '../../platform/foundation/failure.ts'
import { keyCaller, rolesFrom } from '../../platform/foundation/caller.ts'
import { iso, Success, Id, scanned, text } from '../../platform/operations/fields.ts'
import { operation, type Call } from '../../platform/operations/operation.ts'
import { changedRows } from '../../platform/persistence/database.ts'
import { ownStore } from '../../platform/stores/own-store.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { mayStillManage } from '../../platform/users/user-queries.ts'
import { storeDocumentChanged } from '../../platform/stores/parsed-policy.ts'
import { assertPolicyFits } from '../store-policy/policy-operations.ts'
import { findDevice } from '../store-facts/device-queries.ts'
import { addDevice, Device, toDevice } from './device-operations.ts'

/**
 *   manager ─ createSetupCode ─▶ code ─▶ technician at the agent ─ registerDeviceWithCode ─▶ device of this agent
 *
 * An agent has no right to register devices. With the one-time code of a manager it registers one device, for itself
 * and in its own store. A store has one code at a time, and only its hash is stored.
 */

/** Life of a code, ms. */
const CODE_MS = 15 * 60_000
/** Random characters of a code; each has 5 bits. */
const CHARACTERS = 12

function hashOf(code: string): string {
  return hash('sha256', `untag/setup/1\0${normaliseEnrolmentCode(code)}`, 'base64url')
}

export const createSetupCode = operation({
  name: 'createSetupCode',
  area: 'agents',
  minimumPackage: 'GROW',
  summary: 'Creates a code with which an agent of the store registers one device.',
  description:
    'Valid for 15 minutes and one device. A new code replaces the former code of the store. The person at the agent enters it on the set-up page.',
  roles: rolesFrom('manager'),
  changes: true,
  secretResponse: true,
  request: z.strictObject({ storeId: Id }),
  response: z.strictObject({ ...Success, code: z.string(), expiresAt: z.string() }),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B' },
  async run(call, { storeId }) {
    const store = await ownStore(call, storeId)
    const text = crockford.encode(call.services.platform.random.bytes(8)).slice(0, CHARACTERS)
    const code = text.replace(/(.{4})(?=.)/g, '$1-')
    const made_by = keyCaller(call.caller).keyId
    const change = { code_hash: hashOf(code), made_by, expires_ms: call.nowMs + CODE_MS, device_id: null }
    await call.db
      .insertInto('setup_code')
      .values({ store_id: store.store_id, tenant: store.tenant, ...change })
      .onConflict((c) => c.column('store_id').doUpdateSet(change))
      .execute()
    call.changed(storeId)
    return { success: true as const, code, expiresAt: iso(change.expires_ms) }
  },
})

export const registerDeviceWithCode = operation({
  name: 'registerDeviceWithCode',
  area: 'agents',
  minimumPackage: 'GROW',
  summary: 'Registers a device for the calling agent, with a code of createSetupCode.',
  description:
    'The device belongs to this agent and its store. If the same agent repeats the call with the same code within 15 minutes, it gets the same device again; another `name` renames it.',
  callers: ['agent'],
  roles: [],
  refusals: ['policy_too_large', 'setup_code_expired', 'setup_code_used'],
  changes: true,
  request: z.strictObject({ code: scanned(60), deviceType: z.enum(DEVICE_TYPES), name: text(120).optional() }),
  response: Device.extend(Success),
  example: { code: 'K7QX-2M9T-4WZ1', deviceType: 'exit_gate', name: 'Ausgang Nord' },
  async run(call, { code, deviceType, name }) {
    if (call.caller.kind !== 'agent') throw notFound('set-up code')
    const { agentId, storeId, tenant } = call.caller
    const store = await ownStore(call, storeId)
    const row = await call.db
      .selectFrom('setup_code')
      .selectAll()
      .where('store_id', '=', storeId)
      .where('code_hash', '=', hashOf(code))
      .executeTakeFirst()
    if (!row || !(await mayStillManage(call.db, row.made_by, row, call.nowMs)))
      throw notFound('set-up code of this store')
    if (row.expires_ms <= call.nowMs)
      throw precondition('setup_code_expired', 'this set-up code is over 15 minutes old: create a new one')
    if (row.device_id !== null) {
      const device = await findDevice(call.db, tenant, row.device_id)
      if (device?.agent_id !== agentId) throw alreadyUsed()
      const isRenamed = name !== undefined && name !== device.name && device.revoked_ms === null
      const shown = isRenamed ? await renameDevice(call, device, name) : device
      return { success: true as const, ...toDevice(shown, store) }
    }
    const device = await addDevice(call, store, { deviceType, name, agentId })
    await useUp(call, storeId, row.code_hash, device.deviceId)
    return { success: true as const, ...device }
  },
})

/** The technician who has registered the device may name it until the code ends. */
async function renameDevice(call: Call, device: Row<'device'>, name: string): Promise<Row<'device'>> {
  await call.db.updateTable('device').set({ name }).where('device_id', '=', device.device_id).execute()
  await assertPolicyFits(call, device.store_id)
  await storeDocumentChanged(call, device.store_id)
  call.changed(device.device_id)
  return { ...device, name }
}

/** Marks a code as used. Of two concurrent calls with one code, the second one fails. */
async function useUp({ db }: Call, storeId: string, codeHash: string, deviceId: string): Promise<void> {
  const update = db
    .updateTable('setup_code')
    .set({ device_id: deviceId })
    .where('store_id', '=', storeId)
    .where('code_hash', '=', codeHash)
    .where('device_id', 'is', null)
  if ((await changedRows(db, update)) === 0) throw alreadyUsed()
}

function alreadyUsed(): Failure {
  return precondition('setup_code_used', 'this set-up code was used already: create a new one')
}
