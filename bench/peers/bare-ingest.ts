import { createHash, generateKeyPairSync, sign, verify, type KeyObject } from 'node:crypto'
import Sqlite from 'better-sqlite3'
import type { EventBatchClaims } from '../../policy/documents/agent-messages.ts'
import type { JournalBody } from '../../policy/journal.ts'

/**
 * The least that taking in a batch of an agent's journal can cost: into a copy of the cloud's own database (its tables, its
 * indexes, its purchases) the rows that must be there afterwards, by hand-written statements in one durable commit, between the
 * check of the signature and of the chain and the signed acknowledgement.
 *
 * It trusts all it is told: no login, no schema, no second agent or earlier use that a claim could clash with, no lease, no
 * other kind of row, no savepoint, no audit. Of a row that should not be applied it knows nothing.
 */
export interface BareIngest {
  take(batch: string): void
  close(): void
}

interface Unit {
  purchase_id: string
  line_id: string
  unit_no: number
}

/** `file`: the copy. `tenant`: whose the agent is. */
export function bareIngest(file: string, key: KeyObject, tenant: string): BareIngest {
  const db = new Sqlite(file)
  db.pragma('journal_mode = WAL')
  db.pragma('synchronous = FULL')
  db.pragma('foreign_keys = ON')
  const own = generateKeyPairSync('ed25519').privateKey
  const unitOf = db.prepare<[string, number], Unit>(
    'SELECT u.purchase_id, u.line_id, u.unit_no FROM purchase p JOIN purchase_unit u ON u.purchase_id = p.purchase_id WHERE p.cti = ? AND u.receipt_index = ?',
  )
  const journal = db.prepare(
    'INSERT INTO journal_row (ledger_id, generation, seq, agent_id, hash, body, applied, received_ms) VALUES (?, ?, ?, ?, ?, ?, 1, ?)',
  )
  const event = db.prepare(
    'INSERT INTO protection_event (event_id, tenant, store_id, type, device_id, purchase_id, occurred_ms, processed_ms, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)',
  )
  const redemption = db.prepare(
    'INSERT INTO redemption (nonce, step, redemption_id, tenant, source, agent_id, device_id, at_ms, event_id, line_id, unit_no, right_class) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
  )
  const right = db.prepare(
    "INSERT INTO unit_right (line_id, unit_no, right_class, purchase_id, state, nonce, device_id, redemption_id, failures) VALUES (?, ?, ?, ?, 'used', ?, ?, ?, 0)",
  )
  const outcomeOfRedemption = db.prepare('UPDATE redemption SET outcome = ? WHERE redemption_id = ?')
  const outcomeOfRight = db.prepare(
    'UPDATE unit_right SET outcome = ? WHERE line_id = ? AND unit_no = ? AND right_class = ?',
  )
  const purchase = db.prepare(
    "UPDATE purchase SET security_tag_status = 'deactivated', rev = rev + 1 WHERE purchase_id = ?",
  )
  const outbox = db.prepare(
    "INSERT INTO outbox_event (event_id, tenant, store_id, type, at_ms, data) VALUES (?, ?, ?, 'securityTag.deactivated', ?, ?)",
  )
  const head = db.prepare('UPDATE agent SET last_seq = ?, head_hash = ? WHERE agent_id = ?')
  /** By redemption, until its outcome has come; by receipt, for the events. */
  const units = new Map<string, Unit & { rightClass: string }>()
  let deactivated = 0

  function apply(
    { atMs, evidence, event: told }: JournalBody,
    { iss: agentId }: EventBatchClaims,
    nowMs: number,
  ): Unit | undefined {
    if (evidence?.kind === 'claim') {
      const unit = unitOf.get(evidence.nonce, evidence.ordinals[0] ?? 0)
      if (!unit) return undefined
      const { redemptionId, nonce, source, rightClass, deviceId } = evidence
      redemption.run(
        nonce,
        1,
        redemptionId,
        tenant,
        source,
        agentId,
        deviceId,
        atMs,
        told?.eventId,
        unit.line_id,
        unit.unit_no,
        rightClass,
      )
      right.run(unit.line_id, unit.unit_no, rightClass, unit.purchase_id, nonce, deviceId, redemptionId)
      units.set(redemptionId, { ...unit, rightClass })
      return unit
    }
    const unit = evidence?.kind === 'outcome' ? units.get(evidence.redemptionId) : undefined
    if (evidence?.kind !== 'outcome' || !unit) return undefined
    units.delete(evidence.redemptionId)
    outcomeOfRedemption.run(evidence.outcome, evidence.redemptionId)
    outcomeOfRight.run(evidence.outcome, unit.line_id, unit.unit_no, unit.rightClass)
    purchase.run(unit.purchase_id)
    const data = {
      transactionId: unit.purchase_id,
      storeId: told?.storeId,
      securityTagMode: 'optional',
      securityTagStatus: 'deactivated',
    }
    outbox.run(`whe_bare_${nowMs}_${++deactivated}`, tenant, told?.storeId, nowMs, JSON.stringify(data))
    return unit
  }

  const insert = db.transaction((claims: EventBatchClaims) => {
    const nowMs = Date.now()
    const processedAt = new Date(nowMs).toISOString()
    let previous = claims.after
    for (const row of claims.events) {
      const body = JSON.stringify(row.body)
      if (createHash('sha256').update(`${previous}\n${row.seq}\n${body}`).digest('base64url') !== row.hash)
        throw new Error(`row ${row.seq} does not chain`)
      previous = row.hash
      journal.run(claims.ledger, claims.generation, row.seq, claims.iss, row.hash, body, nowMs)
      const unit = apply(row.body, claims, nowMs)
      const told = row.body.event
      if (!told) continue
      const whole = JSON.stringify({ ...told, purchaseId: unit?.purchase_id, processedAt })
      event.run(
        told.eventId,
        tenant,
        told.storeId,
        told.type,
        told.deviceId,
        unit?.purchase_id,
        Date.parse(told.occurredAt),
        nowMs,
        whole,
      )
    }
    head.run(claims.seqTo, previous, claims.iss)
  })
  return {
    take(batch) {
      const [header = '', claims = '', signature = ''] = batch.split('.')
      if (!verify(null, Buffer.from(`${header}.${claims}`, 'latin1'), key, Buffer.from(signature, 'base64url')))
        throw new Error('a good signature was refused')
      const opened = JSON.parse(Buffer.from(claims, 'base64url').toString()) as EventBatchClaims
      insert.immediate(opened)
      sign(null, Buffer.from(JSON.stringify({ seq: opened.seqTo })), own)
    },
    close: () => void db.close(),
  }
}
