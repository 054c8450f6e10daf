import type { Database as Connection } from 'better-sqlite3'
import type { Core } from '../virtual/core.ts'
import type { LedgerOracle } from './ledger-oracle.ts'

interface Unit {
  line_id: string
  unit_no: number
}

/** Smallest distance of two times of different machines that orders them surely, ms. */
const CLOCK_MS = 1_000

/** Confirmed redemptions and their nonces, by unit and right class. */
type Moved = Map<string, { redemptions: Set<string>; nonces: Set<string> }>

/**
 * Checks that the cloud has recorded every release. If a unit was released twice, for example at an isolated agent, an
 * exception must report this.
 */
export function checkConservation(
  { core, ledgers }: { core: Core; ledgers: ReadonlyMap<string, LedgerOracle> },
  db: Connection,
): void {
  checkMoved(core, db, movedUnits(ledgers, db))
  checkHeld(core, db)
  checkCalledDouble(core, db)
  checkTagStatus(core, db)
}

/** Collects the confirmed redemptions from the ledgers, and from devices without an agent. */
function movedUnits(ledgers: ReadonlyMap<string, LedgerOracle>, db: Connection): Moved {
  const unitsOfToken = db.prepare<[string, number], Unit>(
    'SELECT line_id, unit_no FROM authorization_unit WHERE nonce = ? AND ordinal = ?',
  )
  const unitsOfReceipt = db.prepare<[string, number], Unit>(
    'SELECT u.line_id, u.unit_no FROM purchase_unit u JOIN purchase p ON p.purchase_id = u.purchase_id WHERE p.cti = ? AND u.receipt_index = ?',
  )
  /** The unit that the tag was sold with last, at that time. */
  const unitOfTag = db.prepare<[string, number], Unit>(
    `SELECT u.line_id, u.unit_no FROM protected_item i JOIN purchase_unit u ON u.item_id = i.item_id AND u.bound = 1
       JOIN purchase p ON p.purchase_id = u.purchase_id
     WHERE i.epc = ? AND p.completed_ms <= ? ORDER BY p.completed_ms DESC LIMIT 1`,
  )
  const moved: Moved = new Map()

  function note(unit: Unit | undefined, rightClass: string, redemptionId: string, nonce: string): void {
    if (!unit) return
    const key = `${unit.line_id}/${unit.unit_no}/${rightClass}`
    const known = moved.get(key) ?? { redemptions: new Set(), nonces: new Set() }
    known.redemptions.add(redemptionId)
    known.nonces.add(nonce)
    moved.set(key, known)
  }

  for (const ledger of ledgers.values()) {
    const rows = [...ledger.formerRows, ...ledger.rows]
    const confirmed = new Set(
      rows.flatMap(({ body: { evidence } }) =>
        evidence?.kind === 'outcome' && evidence.outcome === 'confirmed' ? [evidence.redemptionId] : [],
      ),
    )
    for (const { body } of rows) {
      const claim = body.evidence
      if (claim?.kind !== 'claim' || !confirmed.has(claim.redemptionId)) continue
      if (claim.source === 'item') {
        note(unitOfTag.get(claim.item?.epc ?? '', body.atMs), claim.rightClass, claim.redemptionId, claim.nonce)
        continue
      }
      const units = claim.source === 'token' ? unitsOfToken : unitsOfReceipt
      for (const [i, ordinal] of claim.ordinals.entries()) {
        // After a restore the cloud may not know the token. In that case the receipt identifies the units.
        const right = claim.receipt?.ordinals[i]
        const unit =
          units.get(claim.nonce, ordinal) ??
          (claim.receipt && right !== undefined ? unitsOfReceipt.get(claim.receipt.cti, right) : undefined)
        note(unit, claim.rightClass, claim.redemptionId, claim.nonce)
      }
    }
  }
  const alone = db.prepare<[], { nonce: string; step: number; redemption_id: string; right_class: string }>(
    "SELECT r.nonce, r.step, r.redemption_id, a.right_class FROM redemption r JOIN protection_authorization a ON a.nonce = r.nonce WHERE r.agent_id IS NULL AND r.outcome = 'confirmed'",
  )
  for (const row of alone.all())
    note(unitsOfToken.get(row.nonce, row.step - 1), row.right_class, row.redemption_id, row.nonce)
  return moved
}

/**
 * Checks that each released right is used in the cloud. An exception must report a double release or a release after a
 * refund.
 */
function checkMoved(core: Core, db: Connection, moved: Moved): void {
  const right = db.prepare<[string, number, string], { state: string; isUsedByReturn: number }>(
    'SELECT state, redemption_id IS returned_by AND returned_by IS NOT NULL AS isUsedByReturn FROM unit_right WHERE line_id = ? AND unit_no = ? AND right_class = ?',
  )
  const raised = new Set(
    db
      .prepare<[], { subject: string }>(
        "SELECT subject FROM protection_exception WHERE kind IN ('double_redeem', 'late_redeem', 'redeemed_after_revocation', 'released_after_refund')",
      )
      .all()
      .map((row) => row.subject),
  )
  const afterReturn = new Set(
    db
      .prepare<[], { subject: string }>(
        "SELECT subject FROM protection_exception WHERE kind = 'released_after_refund' AND (acknowledged_by IS NULL OR acknowledged_by <> 'later evidence')",
      )
      .all()
      .map((row) => row.subject),
  )
  for (const [key, { redemptions, nonces }] of moved) {
    const [line = '', unit = '', rightClass = ''] = key.split('/')
    const known = right.get(line, Number(unit), rightClass)
    const state = known?.state
    if (state !== 'used')
      core.violate('I4', `${key} was released, but its right is ${state ?? 'not leased'} in the cloud`)
    if (redemptions.size > 1 && !raised.has(key) && ![...nonces].some((nonce) => raised.has(nonce))) {
      core.violate('I6', `${key} was released by ${[...redemptions].join(' and ')}, but no exception reports it`)
    }
    // The refund used up the right, so every release of this unit was reported after the refund.
    if (known?.isUsedByReturn === 1 && !afterReturn.has(key))
      core.violate('I6', `${key} was released after a refund, but no exception reports it`)
  }
}

/**
 * Checks that an exception reports each unit that was released while its item was on hold or recalled. Compares the
 * times of claims, moves and recalls, with a second for clocks that differ. The release of a cancelled purchase has other exceptions, and causes
 * the hold.
 */
function checkHeld(core: Core, db: Connection): void {
  const claims = db.prepare<[], { unit: string; itemId: string; atMs: number; kind: string | null }>(
    `SELECT r.line_id || '/' || r.unit_no || '/' || r.right_class AS unit, u.item_id AS itemId, r.at_ms AS atMs,
       (SELECT e.kind FROM protection_exception e WHERE e.kind IN ('released_on_hold', 'released_after_refund')
         AND e.subject = r.line_id || '/' || r.unit_no || '/' || r.right_class LIMIT 1) AS kind
     FROM redemption r JOIN purchase_unit u ON u.line_id = r.line_id AND u.unit_no = r.unit_no
       JOIN purchase p ON p.purchase_id = u.purchase_id AND p.status <> 'CANCELLED'
     WHERE u.item_id IS NOT NULL AND r.outcome = 'confirmed'`,
  )
  const lastMove = db.prepare<[string, number], { status: string; untilMs: number | null; fromMs: number }>(
    `SELECT m.to_status AS status, m.at_ms AS fromMs,
       (SELECT MIN(n.at_ms) FROM item_move n WHERE n.item_id = m.item_id AND n.rev > m.rev) AS untilMs
     FROM item_move m WHERE m.item_id = ? AND m.at_ms <= ? ORDER BY m.rev DESC LIMIT 1`,
  )
  const recalled = db.prepare<[string, number, number]>(
    `SELECT 1 FROM protected_item i JOIN product_recall r ON r.product_id = i.product_id AND r.lot = i.lot
     WHERE i.item_id = ? AND ? - r.started_ms > ${CLOCK_MS} AND (r.ended_ms IS NULL OR r.ended_ms - ? > ${CLOCK_MS})`,
  )
  for (const { unit, itemId, atMs, kind } of claims.all()) {
    if (kind === null && recalled.get(itemId, atMs, atMs))
      core.violate('I6', `${unit} was released while its item was recalled, but no exception reports it`)
    const move = lastMove.get(itemId, atMs)
    if (move?.status !== 'exception_hold' || kind !== null) continue
    if (atMs - move.fromMs > CLOCK_MS && (move.untilMs === null || move.untilMs - atMs > CLOCK_MS))
      core.violate('I6', `${unit} was released while its item was on hold, but no exception reports it`)
  }
}

/** A purchase with all units released must not have the tag status `pending`. */
function checkTagStatus(core: Core, db: Connection): void {
  const undone = db.prepare<[], { purchase_id: string }>(
    `SELECT p.purchase_id FROM purchase p WHERE p.security_tag_status = 'pending' AND p.status IN ('SUCCESS', 'UNLOADED')
     AND EXISTS (SELECT 1 FROM purchase_unit u WHERE u.purchase_id = p.purchase_id)
     AND NOT EXISTS (SELECT 1 FROM purchase_unit u LEFT JOIN unit_right r ON r.line_id = u.line_id AND r.unit_no = u.unit_no AND r.right_class = 'release'
       WHERE u.purchase_id = p.purchase_id AND (r.state IS NULL OR r.state <> 'used' OR r.outcome IS NULL OR r.outcome <> 'confirmed'))`,
  )
  for (const { purchase_id: id } of undone.all())
    core.violate('I4', `every unit of ${id} was released, and its tag status is still pending`)
}

/** Checks that for each exception `double_redeem`, the cloud has two redemptions that did not fail. */
function checkCalledDouble(core: Core, db: Connection): void {
  const once = db.prepare<[], { subject: string; unfailed: number }>(
    `SELECT e.subject, (SELECT COUNT(DISTINCT r.redemption_id || ' ' || r.nonce) FROM redemption r
       WHERE r.line_id || '/' || r.unit_no || '/' || r.right_class = e.subject AND (r.outcome IS NULL OR r.outcome <> 'failed')) AS unfailed
     FROM protection_exception e WHERE e.kind = 'double_redeem' AND e.subject LIKE '%/%/%'
       AND (e.acknowledged_by IS NULL OR e.acknowledged_by <> 'later evidence') AND unfailed < 2`,
  )
  for (const { subject, unfailed } of once.all())
    core.violate('I6', `double_redeem names ${subject}, but ${unfailed} of its redemptions have not failed`)
}
