import { tenantOf, type Mode } from '../foundation/caller.ts'
import { notFound } from '../foundation/failure.ts'
import type { Db } from '../persistence/database.ts'
import { INSTALLATION } from './key-loader.ts'
import type { RotatedUse } from './rotate-key.ts'

interface KeyOwner {
  use: RotatedUse
  accountId: string
  /** If omitted, the keys of both modes rotate. */
  mode?: Mode | undefined
}

/**
 * Issuers of the keys to rotate. Policy and freshness keys belong to the installation. Other keys belong to the live
 * and the test tenant of the account. If `revoke` is a kid, returns only the issuer of this key. Throws 404 for an
 * unknown account or kid.
 */
export async function issuersOf(
  db: Db,
  { use, accountId, mode }: KeyOwner,
  revoke: boolean | string,
): Promise<string[]> {
  const issuers = use === 'policy' || use === 'freshness' ? [INSTALLATION] : await sidesOf(db, accountId, mode)
  if (typeof revoke !== 'string' || revoke === 'all') return issuers
  const key = await db.selectFrom('signing_key').select('iss').where('kid', '=', revoke).executeTakeFirst()
  const holding = issuers.filter((iss) => iss === key?.iss)
  if (holding.length === 0) throw notFound('signing key')
  return holding
}

async function sidesOf(db: Db, accountId: string, mode: Mode | undefined): Promise<string[]> {
  const account = await db
    .selectFrom('account')
    .select('account_id')
    .where('account_id', '=', accountId)
    .executeTakeFirst()
  if (!account) throw notFound('account')
  return (['live', 'test'] as const)
    .filter((side) => mode === undefined || side === mode)
    .map((side) => tenantOf(accountId, side))
}
