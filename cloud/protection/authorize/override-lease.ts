import type { Call } from '../../platform/operations/operation.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import type { RequestContext } from './request-context.ts'
import { raiseException } from '../records/exceptions.ts'
import { revokeAuthorization, type LeaseView } from '../leases/leases.ts'

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
