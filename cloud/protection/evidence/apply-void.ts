import { findAuthorization, updateAuthorization } from '../leases/authorizations.ts'
import { freeLeases } from './end-lease.ts'
import type { EvidenceScope, EvidenceSource } from './evidence-scope.ts'
import { raiseForeignEvidence } from './foreign-evidence.ts'
import { raiseAuthorizationExceptions } from './raise-authorization-exceptions.ts'

/** Applies a void: the agent will never honour this token, so the lease ends. */
export async function applyVoid(scope: EvidenceScope, source: EvidenceSource, nonce: string): Promise<boolean> {
  const row = await findAuthorization(scope.db, nonce)
  if (row?.tenant !== scope.tenant) return false
  if (!(await scope.facts.isOwn(row.agent_id, source))) {
    const detail = `a token was voided that is not this agent's`
    await raiseForeignEvidence(scope, source, { kind: 'void', about: nonce, detail })
    return true
  }
  // Stores the earliest void, because voids may arrive in any order.
  const voidedMs = Math.min(row.voided_ms ?? source.atMs, source.atMs)
  if (voidedMs === row.voided_ms) return true
  const voided = await updateAuthorization(scope.db, row, {
    voided_ms: voidedMs,
    revoked_ms: Math.min(row.revoked_ms ?? voidedMs, voidedMs),
  })
  await raiseAuthorizationExceptions(scope, voided)
  await freeLeases(scope, voided)
  return true
}
