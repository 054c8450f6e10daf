import type { Database as Connection } from 'better-sqlite3'
import type { DenyReason, RightClass } from '../../policy/vocabulary.ts'

/** What this ledger knows of redemptions between agents: given as the home, or asked of the home. Everything runs inside a transaction of `commit.ts`. */
export interface HomeGrants {
  /** As the home: the same answer for the same redemption of the same agent; undefined when the id is another agent's. */
  grant(question: GrantQuestion): GrantAnswer | undefined
  /** The actuator failed: the units are free again, once. */
  giveBack(agentId: string, redemptionId: string): void
  /** As the asker: the redemption id under which this is asked, the same until it was claimed. */
  ask(subject: string, newId: string, exp: number): string
  /** The answer was claimed here, or refused. */
  asked(redemptionId: string): void
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
}

export interface GrantAnswer {
  ordinals: number[]
  remaining: number
  reason?: DenyReason
}

/** What the claims of the same ledger say. */
export interface FreeRights {
  isFree(cti: string, rightClass: RightClass, ordinal: number, nowMs: number, operator: boolean): boolean
  isDenied(subject: string): boolean
  readonly floor: number
}

/** Grants in this ledger's tables. */
export function openHomeGrants(db: Connection, claims: FreeRights): HomeGrants {
  const find = db.prepare<[string], { agent_id: string; answer: string; state: string }>('SELECT agent_id, answer, state FROM home_grant WHERE redemption_id = ?')
  const keep = db.prepare('INSERT INTO home_grant (redemption_id, agent_id, answer, state, exp) VALUES (?, ?, ?, ?, ?)')
  const setState = db.prepare('UPDATE home_grant SET state = ? WHERE redemption_id = ?')
  const use = db.prepare(
    'INSERT INTO used_right (cti, right_class, ordinal, until_s, redemption_id) VALUES (?, ?, ?, ?, ?) ON CONFLICT (cti, right_class, ordinal, redemption_id) DO UPDATE SET until_s = excluded.until_s',
  )
  const free = db.prepare('DELETE FROM used_right WHERE redemption_id = ?')
  const open = db.prepare<[string], { redemption_id: string }>('SELECT redemption_id FROM home_ask WHERE subject = ?')
  const addAsk = db.prepare('INSERT INTO home_ask (subject, redemption_id, exp) VALUES (?, ?, ?)')
  const endAsk = db.prepare('DELETE FROM home_ask WHERE redemption_id = ?')

  function decide({ redemptionId, cti, rightClass, candidates, all, exp, nowMs }: GrantQuestion): GrantAnswer {
    if (exp <= claims.floor) return { ordinals: [], remaining: 0, reason: 'token_expired' }
    if (claims.isDenied(cti)) return { ordinals: [], remaining: 0, reason: 'token_revoked' }
    const unused = candidates.filter((ordinal) => claims.isFree(cti, rightClass, ordinal, nowMs, false))
    const ordinals = all ? unused : unused.slice(0, 1)
    if (ordinals.length === 0) return { ordinals, remaining: 0, reason: 'already_redeemed' }
    for (const ordinal of ordinals) use.run(cti, rightClass, ordinal, Number.MAX_SAFE_INTEGER, redemptionId)
    return { ordinals, remaining: unused.length - ordinals.length }
  }

  return {
    grant(question) {
      const known = find.get(question.redemptionId)
      if (known) return known.agent_id === question.agentId && known.state === 'given' ? (JSON.parse(known.answer) as GrantAnswer) : undefined
      const answer = decide(question)
      // A refusal is decided afresh each time: what was used may have been given back.
      if (!answer.reason) keep.run(question.redemptionId, question.agentId, JSON.stringify(answer), 'given', question.exp)
      return answer
    },
    giveBack(agentId, redemptionId) {
      const known = find.get(redemptionId)
      if (known?.agent_id !== agentId || known.state !== 'given') return
      free.run(redemptionId)
      setState.run('back', redemptionId)
    },
    ask(subject, newId, exp) {
      const known = open.get(subject)
      if (known) return known.redemption_id
      addAsk.run(subject, newId, exp)
      return newId
    },
    asked: (redemptionId) => void endAsk.run(redemptionId),
    prune(before) {
      db.prepare('DELETE FROM home_grant WHERE exp <= ?').run(before)
      db.prepare('DELETE FROM home_ask WHERE exp <= ?').run(before)
    },
  }
}
