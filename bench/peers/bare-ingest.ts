import { createHash, verify, type KeyObject } from 'node:crypto'
import Sqlite from 'better-sqlite3'
import type { EventBatchClaims } from '../../policy/documents/agent-messages.ts'

/** The least that taking in a batch of an agent's journal can cost: signature, chain, and two rows a row in one durable commit. */
export interface BareIngest {
  take(batch: string): void
  close(): void
}

export function bareIngest(file: string, key: KeyObject): BareIngest {
  const db = new Sqlite(file)
  db.pragma('journal_mode = WAL')
  db.pragma('synchronous = FULL')
  db.exec('CREATE TABLE journal (ledger TEXT NOT NULL, seq INTEGER NOT NULL, hash TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (ledger, seq)) WITHOUT ROWID, STRICT')
  db.exec('CREATE TABLE event (event_id TEXT PRIMARY KEY, store_id TEXT NOT NULL, type TEXT NOT NULL, occurred_ms INTEGER NOT NULL, body TEXT NOT NULL) WITHOUT ROWID, STRICT')
  db.exec('CREATE INDEX event_time ON event (store_id, occurred_ms)')
  const journal = db.prepare('INSERT INTO journal (ledger, seq, hash, body) VALUES (?, ?, ?, ?)')
  const event = db.prepare('INSERT INTO event (event_id, store_id, type, occurred_ms, body) VALUES (?, ?, ?, ?, ?)')
  const insert = db.transaction(({ ledger, after, events }: EventBatchClaims) => {
    let previous = after
    for (const row of events) {
      const body = JSON.stringify(row.body)
      if (createHash('sha256').update(`${previous}\n${row.seq}\n${body}`).digest('base64url') !== row.hash) throw new Error(`row ${row.seq} does not chain`)
      previous = row.hash
      journal.run(ledger, row.seq, row.hash, body)
      const told = row.body.event
      if (told) event.run(told.eventId, told.storeId, told.type, Date.parse(told.occurredAt), JSON.stringify(told))
    }
  })
  return {
    take(batch) {
      const [header = '', claims = '', signature = ''] = batch.split('.')
      if (!verify(null, Buffer.from(`${header}.${claims}`, 'latin1'), key, Buffer.from(signature, 'base64url'))) throw new Error('a good signature was refused')
      insert.immediate(JSON.parse(Buffer.from(claims, 'base64url').toString()) as EventBatchClaims)
    },
    close: () => void db.close(),
  }
}
