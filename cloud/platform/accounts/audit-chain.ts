import type { Db } from '../persistence/database.ts'
import type { Row } from '../persistence/schema.ts'
import { PRUNE_OPERATION, pruneEntity } from './prune-audit.ts'
import { hash } from 'node:crypto'
import { canonicalJson } from '../operations/idempotency.ts'

/**
 * Previous hash of the first entry. The hash of entry n is the SHA-256 of [n, hash of entry n−1, entry n] in canonical
 * JSON. So changing, removing, adding or swapping a sealed entry changes all later hashes (ADR records).
 */
export const BEFORE_FIRST = ''

/** Hash of entry number `seq` of its tenant's chain, base64url. */
export function linkOf(
  seq: number,
  previous: string,
  { entry_id, tenant, at_ms, actor, operation, entity_id, request_id }: Row<'audit_entry'>,
): string {
  return hash(
    'sha256',
    canonicalJson([seq, previous, { entry_id, tenant, at_ms, actor, operation, entity_id, request_id }]),
    'base64url',
  )
}

/** Entries in memory at once. */
const AT_ONCE = 1_000

/** Result for one tenant's chain: intact, or the first broken entry. */
interface VerifiedChain {
  tenant: string
  /** Number of the last entry. */
  entries: number
  /** Number of the last entry that was deleted because of its age; 0 if none was. */
  pruned: number
  /** Hash of the last entry. To detect a rebuilt chain, compare this hash with a copy that is stored elsewhere. */
  hash: string
  broken?: { number: number; entryId: string | undefined; why: string }
}

export interface Verification {
  chains: VerifiedChain[]
  /** Number of entries that are not sealed yet. */
  unsealed: number
}

/** Verifies every chain from its first entry, or from the first entry that retention has kept. */
export async function verifyAudit(db: Db): Promise<Verification> {
  const heads = await db.selectFrom('audit_head').select('tenant').execute()
  const sealed = await db.selectFrom('audit_entry').select('tenant').distinct().where('seq', 'is not', null).execute()
  const tenants = [...new Set([...heads, ...sealed].map((row) => row.tenant))].toSorted()
  const chains: VerifiedChain[] = []
  for (const tenant of tenants) chains.push(await follow(db, tenant))
  const { count } = await db
    .selectFrom('audit_entry')
    .select((eb) => eb.fn.countAll().as('count'))
    .where('seq', 'is', null)
    .executeTakeFirstOrThrow()
  return { chains, unsealed: Number(count) }
}

async function follow(db: Db, tenant: string): Promise<VerifiedChain> {
  const start = await db.selectFrom('audit_head').selectAll().where('tenant', '=', tenant).executeTakeFirst()
  const pruned = start?.pruned_seq ?? 0
  let [entries, hash] = [pruned, pruned === 0 ? BEFORE_FIRST : (start?.pruned_hash ?? BEFORE_FIRST)]
  const broken = (entryId: string | undefined, why: string): VerifiedChain => ({
    tenant,
    entries,
    pruned,
    hash,
    broken: { number: entries + 1, entryId, why },
  })
  if (pruned > 0 && !(await hasRecordOfPruning(db, tenant, pruneEntity(pruned, hash))))
    return broken(undefined, `entries up to ${pruned} are missing, and no entry records that retention deleted them`)
  for (;;) {
    const rows = await db
      .selectFrom('audit_entry')
      .selectAll()
      .where('tenant', '=', tenant)
      .where('seq', '>', entries)
      .orderBy('seq')
      .limit(AT_ONCE)
      .execute()
    for (const row of rows) {
      const why = faultOf(row, entries + 1, hash)
      if (why !== undefined) return broken(row.seq === entries + 1 ? row.entry_id : undefined, why)
      entries++
      hash = row.hash ?? ''
    }
    if (rows.length > 0) continue
    // The head is read after the entries, because a running cloud may extend the chain meanwhile.
    const head = await db.selectFrom('audit_head').selectAll().where('tenant', '=', tenant).executeTakeFirst()
    const more = await db
      .selectFrom('audit_entry')
      .select('seq')
      .where('tenant', '=', tenant)
      .where('seq', '>', entries)
      .limit(1)
      .executeTakeFirst()
    if (more) continue
    if (!head || entries > head.seq || (entries === head.seq && hash !== head.hash))
      return broken(undefined, 'the chain and its head do not agree')
    return entries < head.seq ? broken(undefined, 'the entry is missing') : { tenant, entries, pruned, hash }
  }
}

async function hasRecordOfPruning(db: Db, tenant: string, entity: string): Promise<boolean> {
  const row = await db
    .selectFrom('audit_entry')
    .select('entry_id')
    .where('tenant', '=', tenant)
    .where('entity_id', '=', entity)
    .where('operation', '=', PRUNE_OPERATION)
    .executeTakeFirst()
  return row !== undefined
}

function faultOf(row: Row<'audit_entry'>, number: number, previous: string): string | undefined {
  if (row.seq !== number) return 'the entry is missing'
  if (row.prev_hash !== previous) return 'its previous hash is not the hash of the entry before it'
  if (row.hash !== linkOf(number, previous, row)) return 'it was changed after it was sealed'
  return undefined
}
