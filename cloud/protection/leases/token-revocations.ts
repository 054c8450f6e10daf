import { sql, type SqlBool } from 'kysely'
import { assert } from '../../../policy/assert.ts'
import { newId } from '../../../policy/ids.ts'
import { knownCaller } from '../../platform/foundation/caller.ts'
import { inTurns, runJobStep, type JobCall } from '../../platform/operations/job-steps.ts'
import type { Call, Services } from '../../platform/operations/operation.ts'
import type { Database, Db } from '../../platform/persistence/database.ts'
import { prepared, preparedForMany } from '../../platform/persistence/prepared.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { revokeAuthorization } from './leases.ts'

/**
 *   revokeTokens ─▶ first tokens, with the call ─▶ row of `token_revocation` ─▶ the others, by the job ─▶ row deleted
 *
 * Revokes the unused tokens of something that ended. Its tokens may be thousands, so an operation revokes only some of
 * them, and a row of `token_revocation` names the others. The row stops these at once: the cloud redeems and exchanges
 * no token that a row names.
 */

/** What tokens are for, or who approved them. */
type TokenScope =
  | { readonly kind: 'item'; readonly itemId: string }
  | { readonly kind: 'purchase'; readonly purchaseId: string }
  | { readonly kind: 'device'; readonly deviceId: string; readonly agentId?: string }
  /**
   * Tokens that open this locker. They name no goods: the goods of one order wait there, so the tokens end when the order
   * leaves the locker.
   */
  | { readonly kind: 'locker'; readonly deviceId: string }
  | { readonly kind: 'operator'; readonly storeId: string; readonly operatorId: string }
  /** Tokens of recalled items, of purchases with such goods, and of lockers with such orders. */
  | { readonly kind: 'recall'; readonly recallId: string }

/** Maximum difference of clocks, s: a device with a slow clock may still honour an expired token. */
const GUARD_SECONDS = 60
/** Tokens that one transaction looks at, and units of the tokens that it revokes. */
const AT_ONCE = { tokens: 100, units: 500 }
/** Accounts per read. Further accounts follow in the next run. */
const ACCOUNTS = 1_000

/** Revokes the unused tokens of this scope that were issued until now, and a minute longer while the job runs: some with the call, the others by the job. */
export async function revokeTokens(
  call: Call,
  scope: TokenScope,
  reason: string,
  coversRecalled?: CoversRecalled,
): Promise<void> {
  const row: Row<'token_revocation'> = {
    revocation_id: newId('trv', call.services.platform),
    tenant: knownCaller(call.caller).tenant,
    scope: JSON.stringify(scope),
    reason,
    // Another process may have issued a token meanwhile, by a clock that is ahead: this call waited for the database.
    until_s: Math.floor(call.nowMs / 1_000) + GUARD_SECONDS,
    after_exp: 0,
    after_nonce: '',
  }
  const rest = await revokeSome(call, row, coversRecalled)
  if (rest)
    await call.db
      .insertInto('token_revocation')
      .values({ ...row, ...rest })
      .execute()
}

const openTokens = preparedForMany((db, itemIds, p: { afterS: number }) =>
  db
    .selectFrom('protection_authorization')
    .select('item_id')
    .distinct()
    .where('item_id', 'in', itemIds)
    .where('revoked_ms', 'is', null)
    .where('exp', '>', p.afterS),
)

/** Those of these items for which there are tokens that `revokeTokens` revokes. */
export async function itemsWithTokens({ db, nowMs }: Call, itemIds: readonly string[]): Promise<string[]> {
  const rows = await openTokens(db, itemIds, { afterS: Math.floor(nowMs / 1_000) - GUARD_SECONDS })
  return rows.flatMap(({ item_id: itemId }) => itemId ?? [])
}

/** Revokes the tokens that the operations did not revoke. Several processes may run this at the same time. */
export function revokeDueTokens(
  database: Database,
  services: Services,
  coversRecalled: CoversRecalled,
): Promise<boolean> {
  return inTurns(database, services, {
    job: 'revocation of tokens',
    accounts: accountsWithRevocations,
    turn: (holder) =>
      runJobStep({ database, services, holder }, (call) => continueRevocation(call, holder, coversRecalled)),
  })
}

/** The accounts with tokens to revoke, the longest waiting first. */
async function accountsWithRevocations(db: Db): Promise<string[]> {
  const rows = await db
    .selectFrom('token_revocation')
    .select('tenant')
    .groupBy('tenant')
    .orderBy((eb) => eb.fn.min('revocation_id'))
    .limit(ACCOUNTS)
    .execute()
  return rows.map(({ tenant }) => tenant)
}

/** Revokes the next tokens of the account's first revocation. Returns undefined if no revocation is left. */
async function continueRevocation(
  call: JobCall,
  tenant: string,
  coversRecalled: CoversRecalled,
): Promise<true | undefined> {
  const { db } = call
  const first = db
    .selectFrom('token_revocation')
    .select('revocation_id')
    .where('tenant', '=', tenant)
    .orderBy('revocation_id')
    .limit(1)
  // The update locks the row, so that two processes do not revoke the same tokens.
  const row = await db
    .updateTable('token_revocation')
    .set((eb) => ({ after_exp: eb.ref('after_exp') }))
    .where('revocation_id', '=', first)
    .returningAll()
    .executeTakeFirst()
  if (!row) return undefined
  const rest = await revokeSome(call, row, coversRecalled)
  const { revocation_id: id } = row
  if (rest) await db.updateTable('token_revocation').set(rest).where('revocation_id', '=', id).execute()
  else await db.deleteFrom('token_revocation').where('revocation_id', '=', id).execute()
  return true
}

type Rest = Pick<Row<'token_revocation'>, 'after_exp' | 'after_nonce'>

/** Revokes the next tokens. Returns where the next step goes on; undefined after the last token. */
async function revokeSome(
  call: JobCall,
  row: Row<'token_revocation'>,
  coversRecalled: CoversRecalled | undefined,
): Promise<Rest | undefined> {
  const { db, nowMs } = call
  const tokens = await tokensOf(db, row, nowMs)
    .where(sql<SqlBool>`(exp > ${row.after_exp} OR (exp = ${row.after_exp} AND nonce > ${row.after_nonce}))`)
    .orderBy('exp')
    .orderBy('nonce')
    .limit(AT_ONCE.tokens)
    .execute()
  let units = 0
  for (const [n, { used, ...token }] of tokens.entries()) {
    if (Number(used) < token.count && (await covers(db, row, token, coversRecalled))) {
      await revokeAuthorization(call, token, row.reason)
      units += token.count
    }
    const isFull = units >= AT_ONCE.units || n + 1 === AT_ONCE.tokens
    if (isFull) return { after_exp: token.exp, after_nonce: token.nonce }
  }
  return undefined
}

/** The tokens that a revocation looks at: issued before it, not revoked, and perhaps still honoured. */
function tokensOf(db: Db, { tenant, scope, until_s }: Row<'token_revocation'>, nowMs: number) {
  const tokens = db
    .selectFrom('protection_authorization as a')
    .selectAll('a')
    .select(sql<number>`(SELECT COUNT(*) FROM redemption r WHERE r.nonce = a.nonce)`.as('used'))
    .where('revoked_ms', 'is', null)
    .where('iat', '<=', until_s)
    .where('exp', '>', Math.floor(nowMs / 1_000) - GUARD_SECONDS)
  const named = JSON.parse(scope) as TokenScope
  switch (named.kind) {
    case 'item':
      return tokens.where('item_id', '=', named.itemId)
    case 'purchase':
      return tokens.where('purchase_id', '=', named.purchaseId)
    case 'device': {
      const ofDevice = tokens.where('device_id', '=', named.deviceId)
      return named.agentId === undefined ? ofDevice : ofDevice.where('agent_id', '=', named.agentId)
    }
    case 'locker':
      return tokens
        .where('device_id', '=', named.deviceId)
        .where('item_id', 'is', null)
        .where('purchase_id', 'is', null)
    case 'operator':
      return tokens.where('store_id', '=', named.storeId).where('operator_id', '=', named.operatorId)
    case 'recall':
      return tokens.where('tenant', '=', tenant)
  }
}

/** True if a recall stops goods of the token (../recalls/publish-recalls.ts). */
type CoversRecalled = (
  db: Db,
  recall: { tenant: string; recallId: string },
  token: Row<'protection_authorization'>,
) => Promise<boolean>

/** True if a token of `tokensOf` must be revoked. */
function covers(
  db: Db,
  { tenant, scope }: Row<'token_revocation'>,
  token: Row<'protection_authorization'>,
  coversRecalled: CoversRecalled | undefined,
): boolean | Promise<boolean> {
  const named = JSON.parse(scope) as TokenScope
  if (named.kind !== 'recall') return true
  assert(coversRecalled, 'the revocation for a recall knows no recalls')
  return coversRecalled(db, { tenant, recallId: named.recallId }, token)
}

const dueOfTenant = prepared((db, p: { tenant: string }) =>
  db.selectFrom('token_revocation').selectAll().where('tenant', '=', p.tenant),
)

/** True if a revocation names this token that has not come to it yet. */
export async function isBeingRevoked(
  db: Db,
  token: Row<'protection_authorization'>,
  nowMs: number,
  coversRecalled: CoversRecalled,
): Promise<boolean> {
  for (const row of await dueOfTenant(db, token)) {
    const [found] = await tokensOf(db, row, nowMs).where('nonce', '=', token.nonce).execute()
    if (found && (await covers(db, row, token, coversRecalled))) return true
  }
  return false
}
