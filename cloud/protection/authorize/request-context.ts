import { z } from 'zod'
import type { DeviceFacts } from '../../../policy/devices.ts'
import { DEVICE_TYPES, SCAN_SOURCES } from '../../../policy/vocabulary.ts'
import { knownCaller, type KnownCaller } from '../../platform/foundation/caller.ts'
import { invalid, notFound } from '../../platform/foundation/failure.ts'
import { Id, text, Timestamp } from '../../platform/operations/fields.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { ownStore } from '../../platform/stores/own-store.ts'
import { findStore } from '../../platform/stores/queries.ts'
import { mayOperate } from '../operators/store-keys.ts'
import { deviceFacts, findDevice } from '../store-facts/device-queries.ts'
import { raiseException } from '../records/exceptions.ts'
import { revokeAuthorization, type LeaseView } from '../leases/leases.ts'

/** Optional device metadata of a request (specification). */
export const DeviceMetadata = {
  deviceType: z.enum(DEVICE_TYPES).optional(),
  storeId: Id.optional(),
  zoneId: text(128).optional(),
  gateId: text(128).optional(),
  laneId: text(128).optional(),
  operatorId: text(128).optional(),
  occurredAt: Timestamp.optional(),
  firmwareVersion: text(128).optional(),
  scanSource: z.enum(SCAN_SOURCES).optional(),
  explain: z.boolean().optional().describe('Adds `trace[]` with every check and its result.'),
}

export interface Metadata {
  deviceId?: string | undefined
  deviceType?: string | undefined
  storeId?: string | undefined
  zoneId?: string | undefined
  gateId?: string | undefined
  laneId?: string | undefined
  operatorId?: string | undefined
  occurredAt?: string | undefined
  firmwareVersion?: string | undefined
}

/** Caller, device, store and time of a request. */
export interface RequestContext {
  caller: KnownCaller
  /** null if the caller cannot see the device. */
  device: { row: Row<'device'>; facts: DeviceFacts } | null
  /** Store that the request names, else the store of the device; null if neither is known. */
  store: Row<'store'> | null
  occurredMs: number
  /**
   * True if the request is over five minutes old. The cloud then only records the request, and issues no token (ADR
   * releases).
   */
  isPast: boolean
  /** Time of the past request, ms; undefined for a live request. */
  pastMs: number | undefined
  operatorId: string | null
  warnings: string[]
}

const LIVE_MS = 5 * 60_000
const OLDEST_MS = 14 * 86_400_000

/** Reads caller, store, device and time. Throws `invalid_request` for a wrong device type or time. */
export async function readRequestContext(call: Call, metadata: Metadata): Promise<RequestContext> {
  const caller = knownCaller(call.caller)
  const occurredMs = occurredAt(metadata.occurredAt, call.nowMs)
  const namedStore = metadata.storeId === undefined ? null : await ownStore(call, metadata.storeId)
  const row = metadata.deviceId === undefined ? undefined : await findDevice(call.db, caller.tenant, metadata.deviceId)
  const visible = row && isVisible(caller, row) ? row : undefined
  const deviceStore =
    visible &&
    ((namedStore?.store_id === visible.store_id ? namedStore : await findStore(call.db, visible.store_id)) ?? null)
  const device = visible && deviceStore ? { row: visible, facts: deviceFacts(visible, deviceStore) } : null
  if (device && metadata.deviceType !== undefined && metadata.deviceType !== device.row.device_type) {
    throw invalid('deviceType', `the device is registered as ${device.row.device_type}`)
  }
  if (device) await noteFirmware(call, device.row, metadata.firmwareVersion)
  const isPast = occurredMs < call.nowMs - LIVE_MS
  const store = namedStore ?? deviceStore ?? null
  const { operatorId } = metadata
  const mayAct = isPast || operatorId === undefined || !store || (await mayOperate(call, operatorId, store.store_id))
  // An agent that has not heard of the removal yet gets the decision without the approval.
  if (!mayAct && caller.kind !== 'agent') throw notFound('operator')
  return {
    caller,
    device,
    store,
    occurredMs,
    isPast,
    pastMs: isPast ? occurredMs : undefined,
    operatorId: (mayAct && operatorId) || null,
    warnings: [
      ...(device ? placeDifferences(device.row, metadata) : []),
      ...(mayAct ? [] : ['operatorId was ignored: this operator is not registered in the store, or was removed']),
    ],
  }
}

function isVisible(caller: KnownCaller, device: Row<'device'>): boolean {
  // A token for a device of another agent would work there.
  if (caller.kind === 'agent')
    return device.store_id === caller.storeId && (device.agent_id ?? caller.agentId) === caller.agentId
  return caller.storeIds === null || caller.storeIds.includes(device.store_id)
}

function occurredAt(text: string | undefined, nowMs: number): number {
  if (text === undefined) return nowMs
  const ms = Date.parse(text)
  if (ms > nowMs + LIVE_MS) throw invalid('occurredAt', 'is over 5 minutes in the future: check the clock')
  if (ms < nowMs - OLDEST_MS) throw invalid('occurredAt', 'is over 14 days ago: older records are not accepted')
  return ms
}

async function noteFirmware({ db }: Call, device: Row<'device'>, firmwareVersion: string | undefined): Promise<void> {
  if (firmwareVersion === undefined || firmwareVersion === device.firmware_version) return
  await db
    .updateTable('device')
    .set({ firmware_version: firmwareVersion })
    .where('device_id', '=', device.device_id)
    .execute()
}

/** Warns if zone, lane or gate differ from the device registry. Events contain the values of the request. */
function placeDifferences(device: Row<'device'>, metadata: Metadata): string[] {
  const places = [
    ['zoneId', metadata.zoneId, device.zone_id],
    ['laneId', metadata.laneId, device.lane_id],
    ['gateId', metadata.gateId, device.gate_id],
  ] as const
  return places.flatMap(([field, sent, known]) =>
    sent !== undefined && known !== null && sent !== known ? [`${field} is ${known} in the registry, not ${sent}`] : [],
  )
}

/**
 * Lets an operator override the lease of an offline agent that has not answered the recall. The exception
 * `lease_overridden` records that the operator and the lease holder may both release the goods (ADR leases).
 */
export function applyOverride(call: Call, { device, operatorId, isPast }: RequestContext, lease: LeaseView): LeaseView {
  const { recallable } = lease
  if (lease.right !== 'leased_elsewhere' || !recallable?.agent_id || operatorId === null || isPast) return lease
  const isOutOfReach =
    recallable.agent_id !== device?.row.agent_id && !call.services.agents.isConnected(recallable.agent_id)
  return recallable.void_asked_ms !== null && isOutOfReach ? { right: 'free', overridden: recallable } : lease
}

/** Revokes the overridden lease and raises `lease_overridden`. */
export async function overrideLease(
  call: Call,
  row: Row<'protection_authorization'>,
  operatorId: string | null,
): Promise<void> {
  const { services, db, nowMs } = call
  await revokeAuthorization(call, row, 'an operator overrode it')
  await raiseException(
    { db, tenant: row.tenant, platform: services.platform, nowMs },
    {
      storeId: row.store_id,
      kind: 'lease_overridden',
      subject: row.nonce,
      detail: `${operatorId ?? 'an operator'} released goods for which an offline agent holds a token until ${new Date(row.exp * 1_000).toISOString()}`,
      deviceId: row.device_id,
      purchaseId: row.purchase_id ?? undefined,
      nonce: row.nonce,
    },
  )
}
