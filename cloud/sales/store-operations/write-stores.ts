import { z } from 'zod'
import { pendingAnswer, RegistrationPending, assertUnbound, registerStore } from '../registrations/registrations.ts'
import { keyCaller, rolesFrom, isAtLeast, type Package } from '../../platform/foundation/caller.ts'
import { Success, Id } from '../../platform/operations/fields.ts'
import { operation } from '../../platform/operations/operation.ts'
import { makeStore } from '../../platform/stores/make-store.ts'
import { Store, toStore, toMasterData } from '../../platform/stores/schema.ts'
import {
  AnyCasePackage,
  newStoreFields,
  STORE_INPUT_SHAPE,
  storeFieldsOf,
  type StoreFields,
} from '../../platform/stores/store-input.ts'
import { invalid, precondition } from '../../platform/foundation/failure.ts'
import { packageMissing } from '../../platform/operations/perform.ts'
import type { Db } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { deviceWorkflow } from '../../protection/store-facts/device-queries.ts'
import { storeDocumentChanged } from '../../platform/stores/parsed-policy.ts'
import { ownStore } from '../../platform/stores/own-store.ts'
import { countReceipts, updateStoreRow } from '../../platform/stores/queries.ts'

export const insertStore = operation({
  name: 'insertStore',
  area: 'stores',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('admin'),
  summary: 'Adds a store: a demo store at once with a test key, a registration for review with a live key.',
  description:
    'Required: both names (`name` or `companyName` and `tradingName`), the whole address (either spelling) and ' +
    'a phone number. With a test key the response is the store, with a live key `{registrationId, status: ' +
    '"pending"}`. The reviewer decides the package; `package` is a request.',
  refusals: ['too_many_registrations', 'too_many_stores'],
  changes: true,
  request: z
    .strictObject({ ...STORE_INPUT_SHAPE, package: AnyCasePackage.optional() })
    .transform((input, faults) => ({ fields: newStoreFields(input, faults, ['phone']), package: input.package })),
  response: z.union([Store.extend(Success), RegistrationPending]),
  example: {
    name: { legal: 'Hafenkante Handels GmbH', trading: 'Hafenkante Bremen' },
    address: { street: 'Schlachte 8', city: 'Bremen', postalCode: '28195', countryCode: 'DE' },
    phone: '+49421555010300',
  },
  async run(call, { fields, package: requestedPackage }) {
    const caller = keyCaller(call.caller)
    assertUnbound(caller)
    if (caller.mode === 'live')
      return pendingAnswer(await registerStore(call, caller, { fields, package: requestedPackage }))
    const store = await makeStore(call, caller.tenant, fields, requestedPackage ?? caller.package)
    call.changed(store.store_id)
    return { success: true as const, ...toStore(store) }
  },
})

/** Fields that the system sets. The operation ignores them if they are unchanged. */
const SYSTEM_SET_SHAPE = {
  success: z.literal(true).optional(),
  id: Id.optional().describe('The same as storeId.'),
  package: z.string().max(16).optional(),
  mode: z.enum(['demo', 'live']).optional(),
  rating: z.number().optional(),
  receiptCount: z.int().optional(),
}
type SystemSet = z.output<z.ZodObject<typeof SYSTEM_SET_SHAPE>>

/** Columns that the signed policy document contains or depends on. */
const PUBLISHED_TO_AGENTS = [
  'trading_name',
  'in_store_codes',
  'security_tag_mode',
  'protection_technology',
  'device_type',
  'workflow_type',
] as const

export const updateStore = operation({
  name: 'updateStore',
  area: 'stores',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('manager'),
  summary: 'Changes a store.',
  description:
    'Accepts the fields of both forms, as fetchStore returns them. Omitted fields keep their values; `null` ' +
    'clears optional fields. Fields that the system sets are ignored if unchanged, else rejected. Agents ' +
    'receive a new policy if names or tag settings change.',
  refusals: ['locker_in_use'],
  changes: true,
  request: z.strictObject({ storeId: Id, ...STORE_INPUT_SHAPE, ...SYSTEM_SET_SHAPE }).transform((input, faults) => ({
    storeId: input.storeId,
    fields: storeFieldsOf(input, faults),
    systemSet: input as SystemSet,
  })),
  response: Store.extend(Success),
  example: {
    storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B',
    tradingName: 'Hafenkante Hamburg',
    openingHours: { monday: '09:00-18:30' },
  },
  async run(call, { storeId, fields, systemSet }) {
    const store = await ownStore(call, storeId)
    await assertUnchanged(call.db, store, systemSet)
    assertPackageHas(store, fields)
    const next = { ...store, ...fields }
    await assertNoOpenLocker(call.db, store, next)
    if (Object.keys(fields).length > 0) await updateStoreRow(call.db, storeId, fields)
    if (PUBLISHED_TO_AGENTS.some((column) => next[column] !== store[column])) await storeDocumentChanged(call, storeId)
    call.changed(storeId)
    return { success: true as const, ...toStore(next) }
  },
})

/** Throws 409 if lockers in which orders wait would open for any paid receipt, because the store's workflow is theirs. */
async function assertNoOpenLocker(db: Db, store: Row<'store'>, next: Row<'store'>): Promise<void> {
  if (next.workflow_type === store.workflow_type) return
  const devices = await db
    .selectFrom('device')
    .innerJoin('pickup_order', 'pickup_order.locker_device_id', 'device.device_id')
    .selectAll('device')
    .where('device.store_id', '=', store.store_id)
    .where('device.workflow_type', 'is', null)
    .where('pickup_order.status', '=', 'ready')
    .execute()
  const opens = (device: Row<'device'>) =>
    deviceWorkflow(device, next) === 'self_service' && deviceWorkflow(device, store) !== 'self_service'
  if (devices.some(opens))
    throw precondition('locker_in_use', 'an order waits in a locker that follows the store: hand it over first')
}

async function assertUnchanged(db: Db, store: Row<'store'>, sent: SystemSet): Promise<void> {
  const receipts = await countReceipts(db, [store.store_id])
  const { id, mode, rating, receiptCount } = toMasterData(store, receipts.get(store.store_id) ?? 0)
  const refuse = (path: string) => invalid(path, 'is set by the system')
  if (sent.id !== undefined && sent.id !== id) throw invalid('id', 'differs from storeId')
  if (sent.mode !== undefined && sent.mode !== mode) throw refuse('mode')
  if (sent.rating !== undefined && sent.rating !== rating) throw refuse('rating')
  if (sent.package !== undefined && sent.package.toUpperCase() !== store.package)
    throw invalid('package', 'is set by an administrator with setStorePackage')
  // Accepts a lower count, because the count may have grown since the client read it.
  if (sent.receiptCount !== undefined && (sent.receiptCount < 0 || sent.receiptCount > receiptCount))
    throw refuse('receiptCount')
}

/** Throws 403 if a field switches on a feature that the package of a live store lacks. */
function assertPackageHas(store: Row<'store'>, fields: StoreFields): void {
  const inSandbox = store.tenant.endsWith('.test')
  const have = store.package as Package
  if (fields.has_scan_and_go === 1 && store.has_scan_and_go === 0 && !inSandbox && !isAtLeast(have, 'GROW'))
    throw packageMissing('hasScanAndGo', 'GROW', have, 'store')
  if (fields.has_offers === 1 && store.has_offers === 0 && !isAtLeast(have, 'GO'))
    throw packageMissing('hasOffers', 'GO', have, 'store')
}
