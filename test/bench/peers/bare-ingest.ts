import { createHash, generateKeyPairSync, sign, verify, type KeyObject } from 'node:crypto'
import Sqlite from 'better-sqlite3'
import type { EventBatchClaims } from '../../../policy/documents/agent-messages.ts'
import type { ProtectionEvent } from '../../../policy/protection-events.ts'
import type { JournalBody, JournalRow } from '../../../policy/journal.ts'

interface Unit {
  purchase_id: string
  line_id: string
  unit_no: number
}

type Evidence = NonNullable<JournalBody['evidence']>
type Claim = Extract<Evidence, { kind: 'claim' }>
type Outcome = Extract<Evidence, { kind: 'outcome' }>

/**
 * Minimal handling of a journal batch of an agent. Checks the signature and the chain, writes the resulting rows in one
 * durable commit and signs the acknowledgement. Uses a copy of the cloud's database and hand-written statements. Has no
 * login, schema checks, conflict handling, leases, savepoints or audit. Accepts only valid rows of the expected kinds.
 */
export class BareIngest {
  readonly #db: Sqlite.Database
  readonly #key: KeyObject
  readonly #tenant: string
  readonly #own = generateKeyPairSync('ed25519').privateKey
  readonly #statements: Statements
  readonly #insert: Sqlite.Transaction<(claims: EventBatchClaims) => void>
  /** Units by redemption id, until the outcome of the redemption arrives. */
  readonly #units = new Map<string, Unit & { rightClass: string }>()
  #deactivated = 0

  /** `file`: the copy of the database. `tenant`: owner of the agent. */
  constructor(file: string, key: KeyObject, tenant: string) {
    this.#db = new Sqlite(file)
    this.#db.pragma('journal_mode = WAL')
    this.#db.pragma('synchronous = FULL')
    this.#db.pragma('foreign_keys = ON')
    this.#key = key
    this.#tenant = tenant
    this.#statements = prepareStatements(this.#db)
    this.#insert = this.#db.transaction((claims) => this.#insertAll(claims))
  }

  take(batch: string): void {
    const [header = '', claims = '', signature = ''] = batch.split('.')
    const signed = Buffer.from(`${header}.${claims}`, 'latin1')
    if (!verify(null, signed, this.#key, Buffer.from(signature, 'base64url')))
      throw new Error('a valid signature was rejected')
    const opened = JSON.parse(Buffer.from(claims, 'base64url').toString()) as EventBatchClaims
    this.#insert.immediate(opened)
    sign(null, Buffer.from(JSON.stringify({ seq: opened.seqTo })), this.#own)
  }

  close(): void {
    this.#db.close()
  }

  #insertAll(claims: EventBatchClaims): void {
    const nowMs = Date.now()
    const processedAt = new Date(nowMs).toISOString()
    let previous = claims.after
    for (const row of claims.events) {
      this.#insertRow(row, previous, claims, nowMs)
      previous = row.hash
      const unit = this.#apply(row.body, claims, nowMs)
      const { event } = row.body
      if (event) this.#insertEvent(event, unit, nowMs, processedAt)
    }
    this.#statements.head.run(claims.seqTo, previous, claims.iss)
  }

  #insertRow(row: JournalRow, previous: string, claims: EventBatchClaims, nowMs: number): void {
    const body = JSON.stringify(row.body)
    if (createHash('sha256').update(`${previous}\n${row.seq}\n${body}`).digest('base64url') !== row.hash)
      throw new Error(`row ${row.seq} does not chain`)
    this.#statements.journal.run(claims.ledger, claims.generation, row.seq, claims.iss, row.hash, body, nowMs)
  }

  #insertEvent(event: ProtectionEvent, unit: Unit | undefined, nowMs: number, processedAt: string): void {
    const { eventId, storeId, type, deviceId, occurredAt } = event
    const purchaseId = unit?.purchase_id
    const whole = JSON.stringify({ purchaseId, processedAt, ...event })
    const occurredMs = Date.parse(occurredAt)
    const tenant = this.#tenant
    this.#statements.event.run(eventId, tenant, storeId, type, deviceId, purchaseId, occurredMs, nowMs, whole)
  }

  #apply(body: JournalBody, { iss: agentId }: EventBatchClaims, nowMs: number): Unit | undefined {
    const { evidence } = body
    if (evidence?.kind === 'claim') return this.#claim(evidence, body, agentId)
    if (evidence?.kind === 'outcome') return this.#settle(evidence, body, nowMs)
    return undefined
  }

  #claim(evidence: Claim, { atMs, event }: JournalBody, agentId: string): Unit | undefined {
    const { redemption, right, unitOf } = this.#statements
    const unit = unitOf.get(evidence.nonce, evidence.ordinals[0] ?? 0)
    if (!unit) return undefined
    const { redemptionId, nonce, source, rightClass, deviceId } = evidence
    const { purchase_id, line_id, unit_no } = unit
    const who = [this.#tenant, source, agentId, deviceId]
    redemption.run(nonce, 1, redemptionId, ...who, atMs, event?.eventId, line_id, unit_no, rightClass)
    right.run(line_id, unit_no, rightClass, purchase_id, nonce, deviceId, redemptionId)
    this.#units.set(redemptionId, { rightClass, ...unit })
    return unit
  }

  #settle({ redemptionId, outcome }: Outcome, { event }: JournalBody, nowMs: number): Unit | undefined {
    const unit = this.#units.get(redemptionId)
    if (!unit) return undefined
    const { outcomeOfRedemption, outcomeOfRight, purchase, outbox } = this.#statements
    this.#units.delete(redemptionId)
    outcomeOfRedemption.run(outcome, redemptionId)
    outcomeOfRight.run(outcome, unit.line_id, unit.unit_no, unit.rightClass)
    purchase.run(unit.purchase_id)
    const data = {
      transactionId: unit.purchase_id,
      storeId: event?.storeId,
      securityTagMode: 'optional',
      securityTagStatus: 'deactivated',
    }
    const eventId = `whe_bare_${nowMs}_${++this.#deactivated}`
    outbox.run(eventId, this.#tenant, event?.storeId, nowMs, JSON.stringify(data))
    return unit
  }
}

type Statements = ReturnType<typeof prepareStatements>

function prepareStatements(db: Sqlite.Database) {
  return {
    unitOf: db.prepare<[string, number], Unit>(
      'SELECT u.purchase_id, u.line_id, u.unit_no FROM purchase p JOIN purchase_unit u ON u.purchase_id = p.purchase_id WHERE p.cti = ? AND u.receipt_index = ?',
    ),
    journal: db.prepare(
      'INSERT INTO journal_row (ledger_id, generation, seq, agent_id, hash, body, applied, received_ms) VALUES (?, ?, ?, ?, ?, ?, 1, ?)',
    ),
    event: db.prepare(
      'INSERT INTO protection_event (event_id, tenant, store_id, type, device_id, purchase_id, occurred_ms, processed_ms, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)',
    ),
    redemption: db.prepare(
      'INSERT INTO redemption (nonce, step, redemption_id, tenant, source, agent_id, device_id, at_ms, event_id, line_id, unit_no, right_class) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
    ),
    right: db.prepare(
      "INSERT INTO unit_right (line_id, unit_no, right_class, purchase_id, state, nonce, device_id, redemption_id, failures) VALUES (?, ?, ?, ?, 'used', ?, ?, ?, 0)",
    ),
    outcomeOfRedemption: db.prepare('UPDATE redemption SET outcome = ? WHERE redemption_id = ?'),
    outcomeOfRight: db.prepare(
      'UPDATE unit_right SET outcome = ? WHERE line_id = ? AND unit_no = ? AND right_class = ?',
    ),
    purchase: db.prepare(
      "UPDATE purchase SET security_tag_status = 'deactivated', rev = rev + 1 WHERE purchase_id = ?",
    ),
    outbox: db.prepare(
      "INSERT INTO outbox_event (event_id, tenant, store_id, type, at_ms, data) VALUES (?, ?, ?, 'securityTag.deactivated', ?, ?)",
    ),
    head: db.prepare('UPDATE agent SET last_seq = ?, head_hash = ? WHERE agent_id = ?'),
  }
}
