import type { Database as Connection } from 'better-sqlite3'
import type { Evidence } from '../../../policy/journal.ts'
import { RECEIPT_LIFE } from '../../../policy/receipts/receipt-token.ts'
import type { DenyReason, RightClass } from '../../../policy/vocabulary.ts'
import type { Journal } from '../journal/journal.ts'
import type { UnresolvedRedemptions } from '../claims/redeemed-rights.ts'

/**
 *   request ─▶ granted ── failed ──▶ returned: the right is free again
 *      │          └ unknown ──▶ unknown ── failed ──▶ returned
 *      └─▶ refused
 *
 * Rights that this ledger delegated as the receipt home. The journal reports the delegations to the cloud, because the
 * other agent may be offline. Call all methods inside a transaction of `commit.ts`.
 */
export interface HomeGrants {
  /**
   * Grants or refuses the request and stores the answer; a repeated request gets the stored answer. Undefined if the
   * redemption id belongs to another agent, or if an outcome was already reported for this id. `refused`: the reason,
   * if the caller has already decided to refuse.
   */
  grant(request: GrantRequest, refused?: DenyReason): GrantAnswer | undefined
  /** Applies an outcome report. After `failed` the right is free again; after `unknown` staff decide. */
  noteOutcome(report: ReceivedOutcome): void
  prune(before: number): void
}

interface GrantRequest {
  agentId: string
  redemptionId: string
  cti: string
  rightClass: RightClass
  candidates: readonly number[]
  all: boolean
  /** True: grant no unit whose goods have left. */
  unlessLeft?: boolean | undefined
  exp: number
  nowMs: number
  /** The epoch of this receipt home. */
  homeEpoch: number
}

export interface GrantAnswer {
  ordinals: number[]
  remaining: number
  reason?: DenyReason
}

interface ReceivedOutcome {
  agentId: string
  redemptionId: string
  outcome: 'failed' | 'unknown'
  /** The units that the report names. */
  candidates: readonly number[]
  exp: number
  nowMs: number
  /** The report with the signature of the requesting agent, which the cloud verifies. */
  report: string
  /**
   * True if the report names the current epoch of this receipt home. If this ledger then has no such grant, a restore
   * may have lost the grant.
   */
  isOwnEpoch: boolean
}

/** The methods of `Claims` that home grants use. */
interface GrantClaims {
  isFree(
    cti: string,
    rightClass: RightClass,
    ordinal: number,
    nowMs: number,
    operator: boolean,
    isIgnored?: (redemptionId: string) => boolean,
  ): boolean
  isDenied(subject: string): boolean
  isRecalled(cti: string, ordinal: number): boolean
  readonly unresolved: Pick<UnresolvedRedemptions, 'add'>
  readonly floor: number
}

interface GrantRow {
  agent_id: string
  answer: string
  state: string
}

const NO_RIGHTS: GrantAnswer = { ordinals: [], remaining: 0 }

function statements(db: Connection) {
  return {
    find: db.prepare<[string], GrantRow>('SELECT agent_id, answer, state FROM home_grant WHERE redemption_id = ?'),
    insert: db.prepare('INSERT INTO home_grant (redemption_id, agent_id, answer, state, exp) VALUES (?, ?, ?, ?, ?)'),
    setState: db.prepare('UPDATE home_grant SET state = ? WHERE redemption_id = ?'),
    use: db.prepare(
      'INSERT INTO used_right (cti, right_class, ordinal, until_s, redemption_id) VALUES (?, ?, ?, ?, ?) ON CONFLICT (cti, right_class, ordinal, redemption_id) DO UPDATE SET until_s = excluded.until_s',
    ),
    free: db.prepare('DELETE FROM used_right WHERE redemption_id = ?'),
  }
}

/** Opens the grants in this ledger's tables. */
export function openHomeGrants(db: Connection, claims: GrantClaims, journal: Pick<Journal, 'append'>): HomeGrants {
  const { find, insert, setState, use, free } = statements(db)

  function assign(request: GrantRequest): GrantAnswer {
    const { agentId, redemptionId, cti, rightClass, candidates, all, unlessLeft, exp, nowMs } = request
    if (exp <= claims.floor) return { ...NO_RIGHTS, reason: 'token_expired' }
    if (claims.isDenied(cti)) return { ...NO_RIGHTS, reason: 'token_revoked' }
    const allowed = candidates.filter((ordinal) => !claims.isRecalled(cti, ordinal))
    if (allowed.length === 0) return { ...NO_RIGHTS, reason: 'recalled' }
    // After an outcome `unknown`, the same agent may request the right again, because its staff approve the retry.
    const isRetried = (id: string) => isUnknownOf(agentId, find.get(id))
    const unused = allowed.filter(
      (ordinal) =>
        claims.isFree(cti, rightClass, ordinal, nowMs, false, isRetried) &&
        (!unlessLeft || claims.isFree(cti, 'exit', ordinal, nowMs, false)),
    )
    const ordinals = all ? unused : unused.slice(0, 1)
    if (ordinals.length === 0) return { ...NO_RIGHTS, reason: 'already_redeemed' }
    // `exp` comes from the requester and may be wrong. The margin covers an error, because no receipt is valid longer
    // than RECEIPT_LIFE.
    for (const ordinal of ordinals) use.run(cti, rightClass, ordinal, exp + RECEIPT_LIFE, redemptionId)
    return { ordinals, remaining: unused.length - ordinals.length }
  }

  function store(
    { redemptionId, agentId, exp }: Pick<GrantRequest, 'redemptionId' | 'agentId' | 'exp'>,
    answer: GrantAnswer,
    state: 'delegated' | 'refused' | 'back',
  ): void {
    insert.run(redemptionId, agentId, JSON.stringify(answer), state, exp)
  }

  function append(nowMs: number, evidence: Evidence): void {
    journal.append({ atMs: Math.floor(nowMs), evidence })
  }

  return {
    grant(request, refused) {
      const known = find.get(request.redemptionId)
      if (known)
        return known.agent_id === request.agentId && (known.state === 'delegated' || known.state === 'refused')
          ? (JSON.parse(known.answer) as GrantAnswer)
          : undefined
      const answer = refused ? { ...NO_RIGHTS, reason: refused } : assign(request)
      // A refusal is final for its id: the agent uses a new id for the next request. So a replayed request cannot use a
      // right that has become free.
      store(request, answer, answer.reason ? 'refused' : 'delegated')
      if (!answer.reason) append(request.nowMs, delegation(request, answer.ordinals))
      return answer
    },
    noteOutcome({ agentId, redemptionId, outcome, candidates, exp, nowMs, report, isOwnEpoch }) {
      const known = find.get(redemptionId)
      const back: Evidence = { kind: 'delegation_returned', redemptionId, outcome, report }
      // If a request with this redemption id arrives later, the receipt home grants nothing for it.
      if (!known) {
        store({ redemptionId, agentId, exp }, NO_RIGHTS, 'back')
        // If this ledger lost the grant in a restore, the cloud still has the grant and needs the report. The receipt
        // home does not forward reports about an earlier home epoch.
        return isOwnEpoch ? append(nowMs, back) : undefined
      }
      if (known.agent_id !== agentId) return
      // The cloud frees only units that the report names. So the receipt home ignores a report that lacks a granted
      // unit.
      const { ordinals } = JSON.parse(known.answer) as GrantAnswer
      if (!ordinals.every((ordinal) => candidates.includes(ordinal))) return
      if (outcome === 'unknown' && known.state === 'delegated') {
        claims.unresolved.add(redemptionId, null)
        setState.run('unknown', redemptionId)
        append(nowMs, back)
      }
      if (outcome === 'failed' && (known.state === 'delegated' || known.state === 'unknown')) {
        free.run(redemptionId)
        setState.run('back', redemptionId)
        append(nowMs, back)
      }
    },
    prune: (before) => void db.prepare('DELETE FROM home_grant WHERE exp <= ?').run(before),
  }
}

function delegation(request: GrantRequest, ordinals: number[]): Evidence {
  const { redemptionId, cti: nonce, rightClass, agentId, homeEpoch } = request
  return { kind: 'delegated', redemptionId, nonce, rightClass, ordinals, agentId, homeEpoch }
}

function isUnknownOf(agentId: string, grant: GrantRow | undefined): boolean {
  return grant?.agent_id === agentId && grant.state === 'unknown'
}
