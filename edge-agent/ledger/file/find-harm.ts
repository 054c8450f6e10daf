import type { Database as Connection } from 'better-sqlite3'
import { rowHash } from '../../../policy/journal.ts'

/** The fields of a claim's evidence that are compared (policy/journal.ts). */
interface StoredEvidence {
  kind: string
  redemptionId?: string
  nonce?: string
  rightClass?: string
  ordinals?: number[]
  receipt?: { cti: string; ordinals: number[] }
  outcome?: string
}

const STATES = new Set(['claimed', 'commanded', 'confirmed', 'failed', 'unknown'])

/**
 * Compares the claims with the journal, whose rows are chained by hash: SQLite does not notice a flipped bit inside a
 * value, but with another nonce the claim of a unit would no longer block its second release. Returns what differs.
 * Rows that were pruned, or that the cloud reported, have no counterpart and are not compared. Reads each journal row
 * once, about 10 µs.
 */
export function findHarm(db: Connection): string | undefined {
  const claimsOf = db.prepare<[string], { nonce: string; right_class: string; ordinal: number; state: string }>(
    'SELECT nonce, right_class, ordinal, state FROM claim WHERE redemption_id = ?',
  )
  const usesOf = db.prepare<[string], { cti: string; right_class: string; ordinal: number }>(
    "SELECT cti, right_class, ordinal FROM used_right WHERE redemption_id = ? AND cti NOT LIKE 'tag:%'",
  )
  const failed = new Set<string>()
  const claims: StoredEvidence[] = []
  let before: { seq: number; hash: string } | undefined
  // A wrong clock can leave gaps when rows are pruned. Then the outcome of a claim may be missing.
  let hasGap = false
  for (const row of db
    .prepare<[], { seq: number; hash: string; body: string }>('SELECT seq, hash, body FROM journal ORDER BY seq')
    .iterate()) {
    if (before?.seq === row.seq - 1 && rowHash(before.hash, row.seq, row.body) !== row.hash)
      return `row ${row.seq} of the journal does not fit its hash`
    hasGap ||= before !== undefined && before.seq !== row.seq - 1
    before = row
    const evidence = evidenceIn(row.body)
    if (evidence === 'unreadable') return `row ${row.seq} of the journal is unreadable`
    if (evidence?.kind === 'claim') claims.push(evidence)
    if (evidence?.kind === 'outcome' && evidence.outcome === 'failed') failed.add(evidence.redemptionId ?? '')
  }
  for (const { redemptionId = '', nonce, rightClass, ordinals = [], receipt } of claims) {
    const rows = claimsOf.all(redemptionId)
    const fits = (row: { nonce: string; right_class: string; ordinal: number; state: string }) =>
      row.nonce === nonce && row.right_class === rightClass && ordinals.includes(row.ordinal) && STATES.has(row.state)
    const isFree = rows.some(({ state }) => state === 'failed')
    if (!rows.every(fits) || (isFree && !hasGap && !failed.has(redemptionId)))
      return `the claim ${redemptionId} differs from its row in the journal`
    if (receipt === undefined) continue
    const { cti, ordinals: used } = receipt
    if (
      usesOf
        .all(redemptionId)
        .some((use) => use.cti !== cti || use.right_class !== rightClass || !used.includes(use.ordinal))
    )
      return `the used right of the claim ${redemptionId} differs from its row in the journal`
  }
  return undefined
}

function evidenceIn(body: string): StoredEvidence | undefined | 'unreadable' {
  try {
    return (JSON.parse(body) as { evidence?: StoredEvidence }).evidence
  } catch {
    return 'unreadable'
  }
}
