import type { Database as Connection } from 'better-sqlite3'
import type { Evidence } from '../../../policy/journal.ts'
import { RECEIPT_LIFE } from '../../../policy/receipts/receipt-token.ts'
import type { DenyReason, RightClass } from '../../../policy/vocabulary.ts'
import type { Journal } from '../journal/journal.ts'
import type { UnresolvedRedemptions } from '../claims/unresolved-redemptions.ts'

/**
 *   question ─▶ given ── failed ──▶ back: the right is free again
 *      │          └ unknown ──▶ unknown ── failed ──▶ back
 *      └─▶ refused
 *
 * Rights that this ledger delegated as the receipt home. The journal reports them to the cloud, because the other agent may be offline.
 * Call all methods inside a transaction of `commit.ts`.
 */
export interface HomeGrants {
  /** The same answer for the same redemption of the same agent; undefined when the id is another agent's, or is over. `refused`: nothing is given now. */
  grant(question: GrantQuestion, refused?: DenyReason): GrantAnswer | undefined
  /** Applies an outcome report: `failed` frees the right once, `unknown` leaves it to staff. */
  noteOutcome(word: ReceivedOutcome): void
  prune(before: number): void
}

export interface GrantQuestion {
  agentId: string
  redemptionId: string
  cti: string
  rightClass: RightClass
  candidates: readonly number[]
  all: boolean
  exp: number
  nowMs: number
  /** The epoch of this home. */
  homeEpoch: number
}

export interface GrantAnswer {
  ordinals: number[]
  remaining: number
  reason?: DenyReason
}

export interface ReceivedOutcome {
  agentId: string
  redemptionId: string
  outcome: 'failed' | 'unknown'
  /** The units that the report is about. */
  candidates: readonly number[]
  exp: number
  nowMs: number
  /** The report as the other agent signed it: the cloud verifies it. */
  report: string
  /** It is about the present epoch of this home: it may be about what a ledger that was restored has forgotten. */
  isOwnEpoch: boolean
}

/** The part of the claims that delegation needs. */
export interface GrantClaims {
  isFree(
    cti: string,
    rightClass: RightClass,
    ordinal: number,
    nowMs: number,
    operator: boolean,
    mayGoOn?: (redemptionId: string) => boolean,
  ): boolean
  isDenied(subject: string): boolean
  readonly unresolved: Pick<UnresolvedRedemptions, 'add'>
  readonly floor: number
}

interface GrantRow {
  agent_id: string
  answer: string
  state: string
}

const NO_RIGHTS: GrantAnswer = { ordinals: [], remaining: 0 }

/** Grants in this ledger's tables. */
export function openHomeGrants(db: Connection, claims: GrantClaims, journal: Pick<Journal, 'append'>): HomeGrants {
  const find = db.prepare<[string], GrantRow>('SELECT agent_id, answer, state FROM home_grant WHERE redemption_id = ?')
  const insert = db.prepare(
    'INSERT INTO home_grant (redemption_id, agent_id, answer, state, exp) VALUES (?, ?, ?, ?, ?)',
  )
  const setState = db.prepare('UPDATE home_grant SET state = ? WHERE redemption_id = ?')
  const use = db.prepare(
    'INSERT INTO used_right (cti, right_class, ordinal, until_s, redemption_id) VALUES (?, ?, ?, ?, ?) ON CONFLICT (cti, right_class, ordinal, redemption_id) DO UPDATE SET until_s = excluded.until_s',
  )
  const free = db.prepare('DELETE FROM used_right WHERE redemption_id = ?')

  function decide({ agentId, redemptionId, cti, rightClass, candidates, all, exp, nowMs }: GrantQuestion): GrantAnswer {
    if (exp <= claims.floor) return { ...NO_RIGHTS, reason: 'token_expired' }
    if (claims.isDenied(cti)) return { ...NO_RIGHTS, reason: 'token_revoked' }
    // Where nobody knows, whoever had it asks for it again only when staff stand there.
    const isTheirs = (id: string) => isUnknownOf(agentId, find.get(id))
    const unused = candidates.filter((ordinal) => claims.isFree(cti, rightClass, ordinal, nowMs, false, isTheirs))
    const ordinals = all ? unused : unused.slice(0, 1)
    if (ordinals.length === 0) return { ...NO_RIGHTS, reason: 'already_redeemed' }
    // The end is the asker's word: whichever it should have been, the receipt is over a receipt's life later.
    for (const ordinal of ordinals) use.run(cti, rightClass, ordinal, exp + RECEIPT_LIFE, redemptionId)
    return { ordinals, remaining: unused.length - ordinals.length }
  }

  function store(
    { redemptionId, agentId, exp }: Pick<GrantQuestion, 'redemptionId' | 'agentId' | 'exp'>,
    answer: GrantAnswer,
    state: 'delegated' | 'refused' | 'back',
  ): void {
    insert.run(redemptionId, agentId, JSON.stringify(answer), state, exp)
  }

  function append(nowMs: number, evidence: Evidence): void {
    journal.append({ atMs: Math.floor(nowMs), evidence })
  }

  return {
    grant(question, refused) {
      const known = find.get(question.redemptionId)
      if (known)
        return known.agent_id === question.agentId && (known.state === 'delegated' || known.state === 'refused')
          ? (JSON.parse(known.answer) as GrantAnswer)
          : undefined
      const answer = refused ? { ...NO_RIGHTS, reason: refused } : decide(question)
      // A refusal is final for this id too, for whoever was refused asks under another: played back, the question gets nothing when the right is free again.
      store(question, answer, answer.reason ? 'refused' : 'delegated')
      if (!answer.reason) append(question.nowMs, delegation(question, answer.ordinals))
      return answer
    },
    noteOutcome({ agentId, redemptionId, outcome, candidates, exp, nowMs, report, isOwnEpoch }) {
      const known = find.get(redemptionId)
      const back: Evidence = { kind: 'delegation_returned', redemptionId, outcome, report }
      // The question is lost, or still on its way: nothing is given under this id any more.
      if (!known) {
        store({ redemptionId, agentId, exp }, NO_RIGHTS, 'back')
        // Or this ledger was restored, and the cloud knows what it has forgotten. What another home gave is not ours to report.
        return isOwnEpoch ? append(nowMs, back) : undefined
      }
      if (known.agent_id !== agentId) return
      // The cloud would free no more than the report names.
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

function delegation(question: GrantQuestion, ordinals: number[]): Evidence {
  const { redemptionId, cti: nonce, rightClass, agentId, homeEpoch } = question
  return { kind: 'delegated', redemptionId, nonce, rightClass, ordinals, agentId, homeEpoch }
}

function isUnknownOf(agentId: string, given: GrantRow | undefined): boolean {
  return given?.agent_id === agentId && given.state === 'unknown'
}
