import { keyId, keyRing } from '../../policy/documents/keys.ts'
import { DOCUMENT_KINDS } from '../../policy/documents/kinds.ts'
import { openDocument } from '../../policy/documents/signed-document.ts'
import { KeySetClaims } from '../../policy/documents/store-documents.ts'
import { resumeTimeEpoch } from '../authority/key-counters.ts'
import { ROTATED_USES } from '../authority/rotate-key.ts'
import type { Tenant } from '../foundation/caller.ts'
import type { Call } from '../operations/operation.ts'

/**
 * A cloud that was put back to a backup has forgotten which of its keys were revoked since, and would sign with them what every
 * agent that had heard of it refuses. Agents bring the key sets that say so. The root has signed them: no agent is believed here.
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
  const told = keySets.flatMap((jws) => {
    const opened = openDocument<KeySetClaims>(jws, DOCUMENT_KINDS.keys, { keys: root, audience: tenant })
    const claims = opened.ok ? KeySetClaims.safeParse(opened.claims).data : undefined
    return claims ?? []
  })
  const revoked = told.flatMap(({ keys }) => keys.filter(({ state }) => state === 'revoked').map(({ kid }) => kid))
  // Of a key that this cloud no longer knows its epoch may be all that is left.
  const isResumed = await resumeTimeEpoch(call.db, Math.max(0, ...told.map(({ timeEpoch }) => timeEpoch ?? 0)))
  if (isResumed) call.afterCommit(() => agents.keysChanged())
  if (revoked.length === 0) return
  const forgotten = await call.db
    .selectFrom('signing_key')
    .select(['kid', 'iss', 'key_use'])
    .where('kid', 'in', [...new Set(revoked)])
    .where('state', '!=', 'revoked')
    .execute()
  for (const { kid, iss, key_use } of forgotten) {
    const use = ROTATED_USES.find((known) => known === key_use)
    if (!use) continue
    await authority.rotate(call.db, { iss, use, revoke: kid })
    call.afterCommit(() => log.warn({ kid, use }, 'a key was revoked again: the restored cloud had forgotten that'))
  }
  if (forgotten.length > 0) call.afterCommit(() => agents.keysChanged())
}
