import type { Database as Connection, Statement } from 'better-sqlite3'
import { JournalBody, type Evidence } from '../../../../policy/journal.ts'
import type { Core } from '../virtual/core.ts'

/**
 * Checks that the cloud grants no token for a right that is delegated to another agent. The oracle reads the
 * delegations from the journal rows, not from the cloud's tables.
 */
export interface DelegationOracle {
  /** Called when the cloud has granted a token, before `committed` of the same commit. */
  granted(connection: Connection, nonce: string): void
  /** Called after a durable commit of the cloud. */
  committed(connection: Connection): void
}

type Delegation = Extract<Evidence, { kind: 'delegated' }>

interface Unit {
  cti: string | null
  receipt_index: number | null
  right_class: string
  agent_id: string | null
}

interface DelegationStatements {
  rows: Statement<[number, string], { rowid: number; body: string }>
  units: Statement<[string], Unit>
  /** Returns a row if the outcome is in the cloud, or if the agent that holds the right is revoked. */
  isOver: Statement<[string, string], unknown>
}

/** Creates the oracle, which ignores rows of the agent `liar`. */
export function delegationOracle(core: Core, liar = ''): DelegationOracle {
  let connection: Connection | undefined
  let watch: DelegationStatements
  let last = 0
  /** Delegations by receipt, right class and ordinal. */
  const delegations = new Map<string, Delegation[]>()
  const returned = new Set<string>()

  /** On a new connection, after a restart or restore, reads all rows again. */
  function watchOf(db: Connection): DelegationStatements {
    if (connection === db) return watch
    connection = db
    last = 0
    delegations.clear()
    returned.clear()
    watch = {
      rows: db.prepare(
        `SELECT rowid, body FROM journal_row WHERE rowid > ? AND agent_id <> ? AND applied = 1 AND body LIKE '%"kind":"delegat%' ORDER BY rowid`,
      ),
      units: db.prepare(
        `SELECT p.cti, pu.receipt_index, a.right_class, a.agent_id FROM protection_authorization a JOIN authorization_unit u ON u.nonce = a.nonce
         JOIN purchase p ON p.purchase_id = a.purchase_id JOIN purchase_unit pu ON pu.line_id = u.line_id AND pu.unit_no = u.unit_no WHERE a.nonce = ?`,
      ),
      isOver: db.prepare(
        'SELECT 1 FROM redemption WHERE redemption_id = ? UNION SELECT 1 FROM agent WHERE agent_id = ? AND revoked_ms IS NOT NULL',
      ),
    }
    readNewRows()
    return watch
  }

  function readNewRows(): void {
    for (const { rowid, body } of watch.rows.all(last, liar)) {
      last = rowid
      const { evidence } = JournalBody.parse(JSON.parse(body))
      if (evidence?.kind === 'delegation_returned') returned.add(evidence.redemptionId)
      if (evidence?.kind !== 'delegated') continue
      for (const ordinal of evidence.ordinals) {
        const right = `${evidence.nonce}/${evidence.rightClass}/${ordinal}`
        delegations.set(right, [...(delegations.get(right) ?? []), evidence])
      }
    }
  }

  return {
    granted(db, nonce) {
      const { units, isOver } = watchOf(db)
      for (const { cti, receipt_index: ordinal, right_class: rightClass, agent_id: agentId } of units.all(nonce)) {
        const right = `${cti}/${rightClass}/${ordinal}`
        const other = (delegations.get(right) ?? []).find(
          (each) =>
            each.agentId !== agentId &&
            !returned.has(each.redemptionId) &&
            !isOver.get(each.redemptionId, each.agentId),
        )
        if (other)
          core.violate(
            'I6',
            `${nonce} was granted for the right ${right}, which the home had delegated to ${other.agentId} under ${other.redemptionId}`,
          )
      }
    },
    committed(db) {
      watchOf(db)
      readNewRows()
    },
  }
}
