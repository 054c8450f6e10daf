import type { Db, Database } from '../persistence/database.ts'
import type { Row } from '../persistence/schema.ts'
import { hash } from 'node:crypto'
import { canonicalJson } from '../operations/idempotency.ts'
import { yieldToEventLoop } from '../operations/job-steps.ts'
import { prepared } from '../persistence/prepared.ts'
import { newId } from '../../../policy/ids.ts'
import type { Platform } from '../../../policy/platform.ts'

/**
 * Previous hash of the first entry. The hash of entry n is the SHA-256 of [n, hash of entry n−1, entry n] in canonical
 * JSON. So changing, removing, adding or swapping a sealed entry changes all later hashes (ADR records).
 */
const BEFORE_FIRST = ''

/** Hash of entry number `seq` of its tenant's chain, base64url. */
function linkOf(
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

/**
 * A job seals the entries some seconds after their commit. If each change extended its tenant's chain itself, all
 * changes of a tenant would conflict.
 */

/**
 * Age at which entries are sealed, ms: slow transactions have committed by then. If an entry commits even later, it
 * gets a later number in the chain.
 */
const SETTLED_MS = 5_000
/** Entries sealed in one transaction. */
const SEALED_AT_ONCE = 200

const seal = prepared((db, p: { entryId: string; seq: number; previous: string; hash: string }) =>
  db
    .updateTable('audit_entry')
    .set({ seq: p.seq, prev_hash: p.previous, hash: p.hash })
    .where('entry_id', '=', p.entryId),
)

/**
 * Seals all entries older than 5 s and resolves to their number. One process seals at a time. Accounts take turns, so that
 * many entries of one delay no other.
 */
export async function sealAudit(database: Database, nowMs: number): Promise<number> {
  const beforeMs = nowMs - SETTLED_MS
  const nextOf = (after: string) => unsealed(database.reads, beforeMs).select('tenant').where('tenant', '>', after)
  for (let [sealed, ofRound, after] = [0, 0, '']; ;) {
    const next = await nextOf(after).orderBy('tenant').limit(1).executeTakeFirst()
    if (!next && ofRound === 0) return sealed
    const count = next ? await database.writeAlone('sealAudit', (db) => sealSome(db, next.tenant, beforeMs)) : 0
    sealed += count
    ofRound = next ? ofRound + count : 0
    after = next?.tenant ?? ''
    await yieldToEventLoop()
  }
}

function unsealed(db: Db, beforeMs: number) {
  return db.selectFrom('audit_entry').where('seq', 'is', null).where('at_ms', '<=', beforeMs)
}

async function sealSome(db: Db, tenant: string, beforeMs: number): Promise<number> {
  const rows = await unsealed(db, beforeMs)
    .selectAll()
    .where('tenant', '=', tenant)
    .orderBy('entry_id')
    .limit(SEALED_AT_ONCE)
    .execute()
  if (rows.length === 0) return 0
  const head = await db.selectFrom('audit_head').selectAll().where('tenant', '=', tenant).executeTakeFirst()
  let { seq, hash } = head ?? { seq: 0, hash: BEFORE_FIRST }
  for (const row of rows) {
    const previous = hash
    seq++
    hash = linkOf(seq, previous, row)
    await seal(db, { entryId: row.entry_id, seq, previous, hash })
  }
  await db
    .insertInto('audit_head')
    .values({ tenant, seq, hash })
    .onConflict((c) => c.column('tenant').doUpdateSet({ seq, hash }))
    .execute()
  return rows.length
}

/** Entries that a check has in memory at once. */
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

/**
 * Deletes old audit entries. The chain stays verifiable: the head of the chain names the last deleted entry with its
 * hash, and a new entry of the chain records the deletion. So nobody can shorten the chain without a trace in it.
 */

/** Operation of the entry that records a deletion. Its entity is `{number}:{hash}` of the last deleted entry. */
const PRUNE_OPERATION = 'pruneAuditLog'
const ACTOR = 'retention'
/** Entries that one transaction deletes. */
const DELETED_AT_ONCE = 500
const TENANTS_LIMIT = 10_000

/** Entity of the entry that records a deletion up to this entry. */
function pruneEntity(seq: number, hash: string): string {
  return `${seq}:${hash}`
}

/** Deletes a batch of entries from before this time for each account. The newest entry stays. Returns their number. */
export async function pruneAudit(database: Database, beforeMs: number, platform: Platform): Promise<number> {
  const heads = await database.reads.selectFrom('audit_head').select('tenant').limit(TENANTS_LIMIT).execute()
  let deleted = 0
  for (const { tenant } of heads) {
    const old = await oldEntries(database.reads, tenant, beforeMs)
    if (old.length === 0) continue
    deleted += await database.writeAlone('sealAudit', (db) => pruneSome(db, { tenant, beforeMs, platform }))
  }
  return deleted
}

async function oldEntries(db: Db, tenant: string, beforeMs: number) {
  const head = await db.selectFrom('audit_head').selectAll().where('tenant', '=', tenant).executeTakeFirst()
  if (!head) return []
  const rows = await db
    .selectFrom('audit_entry')
    .select(['entry_id', 'seq', 'hash', 'at_ms'])
    .where('tenant', '=', tenant)
    .where('seq', '>', head.pruned_seq)
    .where('seq', '<', head.seq)
    .orderBy('seq')
    .limit(DELETED_AT_ONCE)
    .execute()
  const young = rows.findIndex((row) => row.at_ms >= beforeMs)
  return young < 0 ? rows : rows.slice(0, young)
}

async function pruneSome(
  db: Db,
  { tenant, beforeMs, platform }: { tenant: string; beforeMs: number; platform: Platform },
): Promise<number> {
  const rows = await oldEntries(db, tenant, beforeMs)
  const last = rows.at(-1)
  if (!last || last.seq === null || last.hash === null) return 0
  await db
    .deleteFrom('audit_entry')
    .where(
      'entry_id',
      'in',
      rows.map((row) => row.entry_id),
    )
    .execute()
  await db
    .updateTable('audit_head')
    .set({ pruned_seq: last.seq, pruned_hash: last.hash })
    .where('tenant', '=', tenant)
    .execute()
  await db
    .insertInto('audit_entry')
    .values({
      entry_id: newId('aud', platform),
      tenant,
      at_ms: platform.clock.wall(),
      actor: ACTOR,
      operation: PRUNE_OPERATION,
      entity_id: pruneEntity(last.seq, last.hash),
      request_id: newId('req', platform),
    })
    .execute()
  return rows.length
}
