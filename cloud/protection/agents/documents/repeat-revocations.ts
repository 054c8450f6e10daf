import { keyId, keyRing } from '../../../../policy/documents/keys.ts'
import { DOCUMENT_KINDS } from '../../../../policy/documents/kinds.ts'
import { openDocument } from '../../../../policy/documents/signed-document.ts'
import { KeySetClaims } from '../../../../policy/documents/store-documents.ts'
import { resumeTimeEpoch } from '../../../platform/authority/key-counters.ts'
import { ROTATED_USES } from '../../../platform/authority/rotate-key.ts'
import type { Tenant } from '../../../platform/foundation/caller.ts'
import type { Call } from '../../../platform/operations/operation.ts'

/**
 * Repeats key revocations that a restored cloud lost. Otherwise the cloud would sign with keys that agents reject.
 * Agents send the key sets with these revocations. The root key signed the key sets, so the cloud need not trust an
 * agent.
 */
export async function repeatRevocations(
  call: Pick<Call, 'db' | 'services' | 'afterCommit'>,
  tenant: Tenant,
  keySets: readonly string[],
): Promise<void> {
  const { authority, agents, log } = call.services
  const root = keyRing([
    { kid: keyId(authority.rootX), alg: 'EdDSA', x: authority.rootX, use: 'root', iss: 'root', state: 'active' },
  ])
  const claimsList = keySets.flatMap((jws) => {
    const opened = openDocument<KeySetClaims>(jws, DOCUMENT_KINDS.keys, { keys: root, audience: tenant })
    const claims = opened.ok ? KeySetClaims.safeParse(opened.claims).data : undefined
    return claims ?? []
  })
  const revoked = claimsList.flatMap(({ keys }) =>
    keys.filter(({ state }) => state === 'revoked').map(({ kid }) => kid),
  )
  // If this cloud lacks the revoked key, the time epoch may be the only trace of the revocation.
  const isResumed = await resumeTimeEpoch(call.db, Math.max(0, ...claimsList.map(({ timeEpoch }) => timeEpoch ?? 0)))
  if (isResumed) call.afterCommit(() => agents.keysChanged())
  if (revoked.length === 0) return
  const forgottenKeys = await call.db
    .selectFrom('signing_key')
    .select(['kid', 'iss', 'key_use'])
    .where('kid', 'in', [...new Set(revoked)])
    .where('state', '!=', 'revoked')
    .execute()
  for (const { kid, iss, key_use } of forgottenKeys) {
    const use = ROTATED_USES.find((known) => known === key_use)
    if (!use) continue
    await authority.rotate(call.db, { iss, use, revoke: kid })
    call.afterCommit(() => log.warn({ kid, use }, 'repeated a key revocation that the restored cloud had lost'))
  }
  if (forgottenKeys.length > 0) call.afterCommit(() => agents.keysChanged())
}
