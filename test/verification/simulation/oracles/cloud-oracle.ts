import type { Database as Connection, Statement } from 'better-sqlite3'
import type { Core } from '../virtual/core.ts'
import { changesAfter, forbiddenChange, type StateChange } from '../nodes/state-changes.ts'

/** Checks each durable change of the cloud database against the invariants. */
export interface CloudOracle {
  committed(connection: Connection): void
  /**
   * Records the state at a backup. Call the returned function after the restore. This function deletes all state
   * recorded since the backup, and returns the event ids of tokens granted since then.
   */
  backUp(): () => string[]
  /** Expiry of each token by nonce, s. */
  readonly tokenEnds: Map<string, number>
  /** Number of the last row that the cloud has stored durably, by ledger. */
  readonly storedHeads: ReadonlyMap<string, number>
  /** For cancelled purchases: the position in the deny list, by receipt id (hex). */
  readonly denied: ReadonlyMap<string, number>
}

/** Maximum token lifetime, s (specification). */
const LONGEST_LIFE = 600
const PAID: ReadonlySet<string> = new Set(['SUCCESS', 'UNLOADED'])

interface Granted {
  rowid: number
  nonce: string
  right_class: string
  iat: number
  exp: number
  count: number
  event_id: string
  revoked_ms: number | null
  status: string | null
}

interface Denied {
  cti: string
  deny_seq: number
}

/** Reason with which staff end a hold in the simulation. */
export const HOLD_ENDED = 'staff have checked the goods'

interface Unit {
  ordinal: number
  line_id: string
  unit_no: number
}

interface CloudStatements {
  units: Statement<[string], Unit>
  /**
   * Returns the token if it can still be used for a unit. It can be used if it has not expired, its step is unused, and
   * no agent has confirmed its revocation. If the token names no agent, its revocation takes effect at once. Tokens
   * from before a restore are ignored, because agents discard them before the restored cloud grants any token (I9).
   */
  counts: Statement<[string, string, number, number], { nonce: string }>
  /** Returns a row if the goods of the unit were returned and the item belongs to the store or to another buyer. */
  isBack: Statement<[string, number]>
  /** Failed refunds of this purchase, or of the purchase that contains this item. */
  failedRefunds: Statement<[string, string]>
  /** Returns a row if staff have just ended the hold of this item. */
  endedHold: Statement<[string]>
  /** Returns a row if an active recall stops the item of this token, or of one of its units. */
  isRecalled: Statement<[string, string]>
  /** Returns a row if a till sold this purchase. */
  ofTill: Statement<[string]>
  /** Returns a row if this unit of a till's sale has an item that is paid by the sale. */
  isPaidUnit: Statement<[string, string]>
  denied: Statement<[string], Denied>
  changes: Statement<[number], StateChange>
  granted: Statement<[number], Granted>
  heads: Statement<[], { ledger_id: string; last_seq: number }>
}

export interface CloudListeners {
  onGrant?(db: Connection, nonce: string): void
  /** Called when a purchase becomes paid. */
  onPaid?(db: Connection, purchaseId: string): void
}

/** Creates the oracle, which prepares its SQL statements for each new connection. */
export function cloudOracle(core: Core, listeners: CloudListeners = {}): CloudOracle {
  return new CommitWatcher(core, listeners)
}

class CommitWatcher implements CloudOracle {
  readonly #core: Core
  readonly #onGrant: NonNullable<CloudListeners['onGrant']>
  readonly #onPaid: NonNullable<CloudListeners['onPaid']>
  readonly tokenEnds = new Map<string, number>()
  /** Ids of the events of granted tokens. */
  readonly #events = new Set<string>()
  readonly storedHeads = new Map<string, number>()
  readonly denied = new Map<string, number>()
  readonly #watches = new WeakMap<Connection, CloudStatements>()
  /** Tokens and their steps by unit, so that a new grant needs no scan of all tokens. */
  readonly #byUnit = new Map<string, { nonce: string; step: number }[]>()
  #lastChange = 0
  #lastGrant = 0

  constructor(core: Core, { onGrant = () => undefined, onPaid = () => undefined }: CloudListeners = {}) {
    this.#core = core
    this.#onGrant = onGrant
    this.#onPaid = onPaid
  }

  backUp(): () => string[] {
    const sizeBefore = this.#events.size
    const kept = {
      lastChange: this.#lastChange,
      lastGrant: this.#lastGrant,
      heads: new Map(this.storedHeads),
      denied: new Map(this.denied),
    }
    return () => {
      ;({ lastChange: this.#lastChange, lastGrant: this.#lastGrant } = kept)
      for (const [map, before] of [
        [this.storedHeads, kept.heads],
        [this.denied, kept.denied],
      ] as const) {
        map.clear()
        for (const [name, n] of before) map.set(name, n)
      }
      const lost = [...this.#events].slice(sizeBefore)
      for (const id of lost) this.#events.delete(id)
      return lost
    }
  }

  readonly committed = (db: Connection): void => {
    const watch = this.#watchOf(db)
    for (const change of watch.changes.all(this.#lastChange)) {
      this.#lastChange = change.n
      // A till may void a sale whose goods have left.
      const isVoid = change.was === 'UNLOADED' && change.became === 'CANCELLED' && watch.ofTill.get(change.id)
      // It counted as returned, until a report that was on its way told otherwise.
      const [lineId = '', unitNo = ''] = change.id.split('/')
      const isPaidAgain = isUnreturned(change) && watch.isPaidUnit.get(lineId, unitNo)
      const wrong = isVoid || isPaidAgain ? undefined : forbiddenChange(change)
      if (wrong !== undefined) this.#core.violate('I15', wrong)
      const cancelled =
        change.kind === 'purchase' && change.became === 'CANCELLED' ? watch.denied.get(change.id) : undefined
      if (isUndone(change) && !watch.failedRefunds.get(change.id, change.id) && !watch.endedHold.get(change.id))
        this.#core.violate(
          'I15',
          `${change.kind} ${change.id} went from ${change.was} to ${change.became}, but none of its refunds has failed`,
        )
      if (change.kind === 'purchase' && change.became === 'SUCCESS') this.#onPaid(db, change.id)
      if (cancelled) this.denied.set(cancelled.cti, cancelled.deny_seq)
      this.#core.trace.add('cloud', `${change.kind} ${change.id.slice(-16)}: ${change.was} → ${change.became}`)
    }
    for (const grant of watch.granted.all(this.#lastGrant)) {
      this.#lastGrant = grant.rowid
      this.tokenEnds.set(grant.nonce, grant.exp)
      this.#events.add(grant.event_id)
      this.#core.trace.add(
        'cloud',
        `grants ${grant.nonce.slice(0, 6)} for ${grant.count}, ends in ${grant.exp - grant.iat} s`,
      )
      if (grant.exp - grant.iat > LONGEST_LIFE) this.#core.violate('I8', `a token lives ${grant.exp - grant.iat} s`)
      const other = this.#stillCounts(watch, grant)
      if (other) this.#core.violate('I6', `${grant.nonce} was granted for a unit that ${other.nonce} may still release`)
      // The same commit may grant a token, revoke it and cancel its purchase.
      const isPaid =
        grant.status === null || PAID.has(grant.status) || (grant.status === 'CANCELLED' && grant.revoked_ms !== null)
      if (!isPaid) this.#core.violate('I7', `${grant.nonce} was granted for a purchase that is ${grant.status}`)
      // The same commit may grant a token and start the recall that revokes it.
      if (grant.revoked_ms === null && watch.isRecalled.get(grant.nonce, grant.nonce))
        this.#core.violate('I7', `${grant.nonce} was granted for goods that are recalled`)
      this.#onGrant(db, grant.nonce)
    }
    for (const { ledger_id: ledger, last_seq: seq } of watch.heads.all()) {
      const before = this.storedHeads.get(ledger) ?? 0
      if (seq < before)
        this.#core.violate('I4', `the cloud had rows of ${ledger} up to ${before} and now only up to ${seq}`)
      this.storedHeads.set(ledger, seq)
    }
  }

  #watchOf(db: Connection): CloudStatements {
    const known = this.#watches.get(db)
    if (known) return known
    const made: CloudStatements = {
      changes: changesAfter(db),
      units: db.prepare<[string], Unit>('SELECT ordinal, line_id, unit_no FROM authorization_unit WHERE nonce = ?'),
      counts: db.prepare<[string, string, number, number], { nonce: string }>(
        `SELECT nonce FROM protection_authorization o WHERE o.nonce = ? AND o.right_class = ? AND o.exp + 60 > ? AND o.voided_ms IS NULL AND (o.revoked_ms IS NULL OR o.agent_id IS NOT NULL)
           AND o.iat >= (SELECT COALESCE(MAX(CAST(value AS INTEGER)), 0) / 1000 FROM installation WHERE name = 'restored_ms')
           AND NOT EXISTS (SELECT 1 FROM protection_exception e WHERE e.kind = 'lease_overridden' AND e.subject = o.nonce)
           AND NOT EXISTS (SELECT 1 FROM redemption r WHERE r.nonce = o.nonce AND r.step = ?)`,
      ),
      isBack: db.prepare<[string, number]>(
        'SELECT 1 FROM purchase_unit u JOIN protected_item i ON i.item_id = u.item_id WHERE u.line_id = ? AND u.unit_no = ? AND (i.line_id IS NOT u.line_id OR i.unit_no IS NOT u.unit_no)',
      ),
      failedRefunds: db.prepare<[string, string]>(
        "SELECT 1 FROM refund WHERE state = 'failed' AND purchase_id IN (SELECT ? UNION SELECT purchase_id FROM protected_item WHERE item_id = ?)",
      ),
      endedHold: db.prepare<[string]>(
        `SELECT 1 FROM item_move m WHERE m.item_id = ? AND m.from_status = 'exception_hold' AND m.reason = '${HOLD_ENDED}'
         AND m.rev = (SELECT MAX(n.rev) FROM item_move n WHERE n.item_id = m.item_id)`,
      ),
      isRecalled: db.prepare<[string, string]>(
        `SELECT 1 FROM protected_item i JOIN product_recall r ON r.product_id = i.product_id AND r.lot = i.lot AND r.ended_ms IS NULL
         WHERE i.item_id IN (SELECT item_id FROM protection_authorization WHERE nonce = ?
           UNION SELECT p.item_id FROM authorization_unit u JOIN purchase_unit p ON p.line_id = u.line_id AND p.unit_no = u.unit_no AND p.bound = 1 WHERE u.nonce = ?)`,
      ),
      ofTill: db.prepare<[string]>('SELECT 1 FROM purchase WHERE purchase_id = ? AND till IS NOT NULL'),
      isPaidUnit: db.prepare<[string, string]>(
        `SELECT 1 FROM purchase_unit u JOIN purchase p ON p.purchase_id = u.purchase_id AND p.till IS NOT NULL
           JOIN protected_item i ON i.item_id = u.item_id AND i.purchase_id = u.purchase_id AND i.item_status = 'paid'
         WHERE u.line_id = ? AND u.unit_no = CAST(? AS INTEGER) AND u.bound = 1`,
      ),
      denied: db.prepare<[string], Denied>(
        'SELECT cti, deny_seq FROM purchase WHERE purchase_id = ? AND cti IS NOT NULL AND deny_seq > 0',
      ),
      granted: db.prepare<[number], Granted>(
        `SELECT a.rowid, nonce, right_class, iat, exp, count, event_id, revoked_ms, p.status FROM protection_authorization a LEFT JOIN purchase p ON p.purchase_id = a.purchase_id
         WHERE a.rowid > ? ORDER BY a.rowid`,
      ),
      heads: db.prepare<[], { ledger_id: string; last_seq: number }>(
        "SELECT ledger_id || '/' || generation AS ledger_id, last_seq FROM agent ORDER BY ledger_id",
      ),
    }
    this.#watches.set(db, made)
    return made
  }

  /** Returns an earlier token for one of these units that can still be used. */
  #stillCounts(watch: CloudStatements, { nonce, right_class, iat }: Granted): { nonce: string } | undefined {
    let found: { nonce: string } | undefined
    for (const { ordinal, line_id, unit_no } of watch.units.all(nonce)) {
      const unit = `${line_id}/${unit_no}`
      const before = this.#byUnit.get(unit) ?? []
      for (const other of before) found ??= watch.counts.get(other.nonce, right_class, iat, other.step)
      this.#byUnit.set(unit, [...before, { nonce, step: ordinal + 1 }])
      if (watch.isBack.get(line_id, unit_no))
        this.#core.violate('I7', `${nonce} was granted for ${unit}, but its goods were returned`)
    }
    return found
  }
}

/** True if the goods of a right did not come back after all. */
function isUnreturned({ kind, was, became }: StateChange): boolean {
  return kind === 'right' && was === 'used:returned' && became === 'free'
}

/** True if a cancelled purchase changed its status again, or if an item that was not sellable became paid. */
function isUndone({ kind, was, became }: StateChange): boolean {
  return (kind === 'purchase' && was === 'CANCELLED') || (kind === 'item' && became === 'paid' && was !== 'sellable')
}
