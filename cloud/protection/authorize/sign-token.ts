import { itemHash, signAuthorization, type AuthorizationClaims } from '../../../policy/documents/authorization.ts'
import type { IdentifierKind } from '../../../policy/item-identifiers.ts'
import type { ProtectionAction } from '../../../policy/vocabulary.ts'
import type { Tenant } from '../../platform/foundation/caller.ts'
import type { Services } from '../../platform/operations/operation.ts'
import type { ProtectionAuthorizationRow } from '../../platform/persistence/tables/protection.ts'

/** Signs the token of an authorization. Ed25519 is deterministic, so the same row always has the same token. */
export function signToken(row: ProtectionAuthorizationRow, { authority }: Services): string {
  const tenant = row.tenant as Tenant
  const claims: AuthorizationClaims = {
    iss: tenant,
    aud: row.device_id,
    iat: row.iat,
    exp: row.exp,
    jti: row.nonce,
    led: row.ledger,
    act: row.action as ProtectionAction,
    cnt: row.count,
    ...(row.ith_kind &&
      row.ith_id && { ith: itemHash(row.device_id, row.nonce, row.ith_kind as IdentifierKind, row.ith_id) }),
    eid: row.event_id,
    rc: row.risk_class,
    pv: row.policy_version,
    kv: row.key_version,
  }
  return signAuthorization(claims, authority.keysOf(tenant).token)
}
