import type { Database as Connection } from 'better-sqlite3'
import type { Core } from '../virtual/core.ts'

/** Ids in forged reports of the lying agent. No such report may have an effect. */
export interface ForgedIds {
  /** Delegations that it reported for an epoch of another home, or to an agent that does not exist. */
  readonly delegations: Set<string>
  /** Rights that it delegated as a former home and reported as returned, without a report of the requesting agent. */
  readonly unreportedReturns: Set<string>
  /** Rights of another home that it reported as returned. */
  readonly foreignReturns: Set<string>
  /** Redemptions of an honest agent for which it reported an outcome. */
  readonly outcomes: Set<string>
  /** Redemptions that it made up with another agent's token. */
  readonly claims: Set<string>
  /** Tokens of an honest agent that it voided. */
  readonly voids: Set<string>
  /** Events that it made up about another agent's use. */
  readonly events: Set<string>
}

/** Maximum ids checked of each kind: the newest ones. */
const WATCHED = 40

/** Creates empty sets for a new run. */
export function noForgedIds(): ForgedIds {
  const none = () => new Set<string>()
  return {
    delegations: none(),
    unreportedReturns: none(),
    foreignReturns: none(),
    outcomes: none(),
    claims: none(),
    voids: none(),
    events: none(),
  }
}

/** Checks after each commit of the cloud that no forged row had an effect. `liar` is the id of the lying agent. */
export function forgeryOracle(core: Core, liar: string, watch: ForgedIds): (db: Connection) => void {
  return (db) => {
    const has = (sql: string, ...values: string[]) => db.prepare<string[]>(sql).get(...values) !== undefined
    const others = (like: string, id: string) =>
      has(
        `SELECT 1 FROM journal_row WHERE agent_id <> ? AND body LIKE ? AND instr(body, ?) > 0`,
        liar,
        `%"kind":"${like}"%`,
        `"${id}"`,
      )
    const expect = (ids: Set<string>, isWrong: (id: string) => boolean, what: string) => {
      const wrong = [...ids].slice(-WATCHED).find(isWrong)
      if (wrong !== undefined) core.violate('I16', `${what}: ${wrong}`)
    }
    expect(
      watch.delegations,
      (id) => has('SELECT 1 FROM delegated_right WHERE redemption_id = ?', id),
      'an agent that was not the home has given rights away',
    )
    expect(
      watch.unreportedReturns,
      (id) => has("SELECT 1 FROM delegated_right WHERE redemption_id = ? AND state <> 'delegated'", id),
      'given rights came back without the report of the agent that had asked',
    )
    expect(
      watch.foreignReturns,
      (id) =>
        has("SELECT 1 FROM delegated_right WHERE redemption_id = ? AND state <> 'delegated'", id) &&
        !others('delegation_returned', id),
      'given rights came back by the word of an agent that did not give them',
    )
    expect(
      watch.claims,
      (id) => has('SELECT 1 FROM redemption WHERE redemption_id = ?', id),
      'an agent has redeemed the token of another',
    )
    expect(
      watch.events,
      (id) => has('SELECT 1 FROM protection_event WHERE event_id = ?', id),
      'an agent has told of the use of another',
    )
    expect(
      watch.voids,
      (id) =>
        has('SELECT 1 FROM protection_authorization WHERE nonce = ? AND voided_ms IS NOT NULL', id) &&
        !others('void', id),
      'an agent has voided the token of another',
    )
    expect(
      watch.outcomes,
      (id) => isOutcomeForged(db, liar, id),
      'an agent has told the outcome of another’s redemption',
    )
  }
}

/** Whether the cloud has an outcome, or a contradiction, that neither the redeeming agent nor staff reported. */
function isOutcomeForged(db: Connection, liar: string, redemptionId: string): boolean {
  const kept = db
    .prepare<[string], { outcome: string }>(
      'SELECT DISTINCT outcome FROM redemption WHERE redemption_id = ? AND outcome IS NOT NULL AND resolved_by IS NULL',
    )
    .all(redemptionId)
  const told = new Set(
    db
      .prepare<[string, string], { outcome: string }>(
        `SELECT DISTINCT json_extract(body, '$.evidence.outcome') AS outcome FROM journal_row
         WHERE agent_id <> ? AND body LIKE '%"kind":"outcome"%' AND json_extract(body, '$.evidence.redemptionId') = ?`,
      )
      .all(liar, redemptionId)
      .map(({ outcome }) => outcome),
  )
  if (kept.some(({ outcome }) => !told.has(outcome))) return true
  const isResolved = db
    .prepare<[string]>('SELECT 1 FROM redemption WHERE redemption_id = ? AND resolved_by IS NOT NULL')
    .get(redemptionId)
  const isConflict = db
    .prepare<[string]>("SELECT 1 FROM protection_exception WHERE kind = 'outcome_conflict' AND subject = ?")
    .get(redemptionId)
  return isConflict !== undefined && isResolved === undefined && told.size <= 1
}
