import { tenantOf, type Mode } from '../foundation/caller.ts'
import { notFound } from '../foundation/failure.ts'
import type { Db } from '../persistence/database.ts'
import { INSTALLATION } from './key-loader.ts'
import type { RotatedUse } from './rotate-key.ts'

export interface KeyOwner {
  use: RotatedUse
  accountId: string
  /** Both modes if omitted. */
  mode?: Mode | undefined
}

/**
 * Issuers of the keys: the installation for policy and freshness, else the account, live side first. A kid in
 * `revoke` selects its issuer. Throws 404 for an unknown account or kid.
 */
export async function issuersOf(
  db: Db,
  { use, accountId, mode }: KeyOwner,
  revoke: boolean | string,
): Promise<string[]> {
  const issuers = use === 'policy' || use === 'freshness' ? [INSTALLATION] : await sidesOf(db, accountId, mode)
  if (typeof revoke !== 'string') return issuers
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
