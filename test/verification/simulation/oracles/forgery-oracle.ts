import type { Database as Connection } from 'better-sqlite3'
import type { Core } from '../virtual/core.ts'

/** Ids in rows that the lying agent forged. None of these rows may have an effect. */
export interface ForgedIds {
  /** Delegations that name an unknown agent, or an epoch in which the liar was not the home. */
  readonly delegations: Set<string>
  /**
   * Rights that the liar delegated when it was the home, and later reported as returned without a valid outcome report.
   */
  readonly unreportedReturns: Set<string>
  /** Rights that the liar reported as returned, although another home had delegated them. */
  readonly foreignReturns: Set<string>
  /** Redemptions of honest agents for which the liar reported an outcome. */
  readonly outcomes: Set<string>
  /** Redemptions that the liar invented with another agent's token. */
  readonly claims: Set<string>
  /** Tokens of honest agents that the liar voided. */
  readonly voids: Set<string>
  /** Events that the liar invented about another agent's redemption. */
  readonly events: Set<string>
  /** Operators that the liar named for alarms at another agent's gates. */
  readonly alarmOperators: Set<string>
  /** Sales that the liar reported, although the policy does not name it. */
  readonly sales: Set<string>
}

/** Maximum number of ids of each kind that are checked. The newest ids are checked first. */
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
    alarmOperators: none(),
    sales: none(),
  }
}

/** Checks after each commit of the cloud that no forged row had an effect. `liar`: id of the lying agent. */
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
      'the cloud accepted a delegation from an agent that was not the home',
    )
    expect(
      watch.unreportedReturns,
      (id) => has("SELECT 1 FROM delegated_right WHERE redemption_id = ? AND state <> 'delegated'", id),
      'the cloud accepted a returned right without a report of the agent that held it',
    )
    expect(
      watch.foreignReturns,
      (id) =>
        has("SELECT 1 FROM delegated_right WHERE redemption_id = ? AND state <> 'delegated'", id) &&
        !others('delegation_returned', id),
      'the cloud accepted a returned right from an agent that did not delegate it',
    )
    expect(
      watch.claims,
      (id) => has('SELECT 1 FROM redemption WHERE redemption_id = ?', id),
      'the cloud accepted a claim with the token of another agent',
    )
    expect(
      watch.events,
      (id) => has('SELECT 1 FROM protection_event WHERE event_id = ?', id),
      `the cloud accepted an event about another agent's redemption`,
    )
    expect(
      watch.voids,
      (id) =>
        has('SELECT 1 FROM protection_authorization WHERE nonce = ? AND voided_ms IS NOT NULL', id) &&
        !others('void', id),
      `the cloud accepted that an agent voided another agent's token`,
    )
    expect(
      watch.alarmOperators,
      (id) =>
        has('SELECT 1 FROM alarm_disposition WHERE operator_id = ?', id) ||
        has('SELECT 1 FROM protection_exception WHERE acknowledged_by = ?', id),
      `the cloud accepted that an agent handled an alarm of another agent's gate`,
    )
    expect(
      watch.sales,
      (id) => has('SELECT 1 FROM till_sale WHERE sale_id = ?', id),
      'the cloud accepted the sale of an agent that the policy does not name',
    )
    expect(
      watch.outcomes,
      (id) => isOutcomeForged(db, liar, id),
      `the cloud accepted the outcome of another agent's redemption`,
    )
  }
}

/** True if the cloud has an outcome or a conflict that was reported neither by staff nor by an honest agent. */
function isOutcomeForged(db: Connection, liar: string, redemptionId: string): boolean {
  const kept = db
    .prepare<[string], { outcome: string }>(
      'SELECT DISTINCT outcome FROM redemption WHERE redemption_id = ? AND outcome IS NOT NULL AND resolved_by IS NULL',
    )
    .all(redemptionId)
  const reported = new Set(
    db
      .prepare<[string, string], { outcome: string }>(
        `SELECT DISTINCT json_extract(body, '$.evidence.outcome') AS outcome FROM journal_row
         WHERE agent_id <> ? AND body LIKE '%"kind":"outcome"%' AND json_extract(body, '$.evidence.redemptionId') = ?`,
      )
      .all(liar, redemptionId)
      .map(({ outcome }) => outcome),
  )
  if (kept.some(({ outcome }) => !reported.has(outcome))) return true
  const isResolved = db
    .prepare<[string]>('SELECT 1 FROM redemption WHERE redemption_id = ? AND resolved_by IS NOT NULL')
    .get(redemptionId)
  const isConflict = db
    .prepare<[string]>("SELECT 1 FROM protection_exception WHERE kind = 'outcome_conflict' AND subject = ?")
    .get(redemptionId)
  return isConflict !== undefined && isResolved === undefined && reported.size <= 1
}
