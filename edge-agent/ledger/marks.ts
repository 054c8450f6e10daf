import type { Database as Connection } from 'better-sqlite3'

/** Small things that must be remembered, each under its name; and the documents that were believed. */
export interface Marks {
  get(name: string): string | undefined
  set(name: string, value: string): void
  document(kind: string): StoredDocument | undefined
  /** The same without its text, which is long. */
  head(kind: string): StoredHead | undefined
  setDocument(kind: string, document: StoredDocument): void
  /** Credentials of programs on the store's network, as hashes. */
  isPaired(hash: string): boolean
  pair(hash: string, name: string, nowMs: number): void
}

export interface StoredHead {
  epoch: number
  ver: number
  hash: string
}

export interface StoredDocument extends StoredHead {
  jws: string
}

/** Marks in this ledger's tables. */
export function openMarks(db: Connection): Marks {
  const get = db.prepare<[string], { value: string }>('SELECT value FROM mark WHERE name = ?')
  const set = db.prepare('INSERT INTO mark (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value')
  const document = db.prepare<[string], StoredDocument>('SELECT epoch, ver, hash, jws FROM document WHERE kind = ?')
  const head = db.prepare<[string], StoredHead>('SELECT epoch, ver, hash FROM document WHERE kind = ?')
  const setDocument = db.prepare(
    `INSERT INTO document (kind, epoch, ver, hash, jws) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (kind) DO UPDATE SET epoch = excluded.epoch, ver = excluded.ver, hash = excluded.hash, jws = excluded.jws`,
  )
  const paired = db.prepare<[string], { name: string }>('SELECT name FROM pairing WHERE hash = ?')
  const pair = db.prepare('INSERT INTO pairing (hash, name, created_ms) VALUES (?, ?, ?)')
  return {
    get: (name) => get.get(name)?.value,
    set: (name, value) => void set.run(name, value),
    document: (kind) => document.get(kind),
    head: (kind) => head.get(kind),
    setDocument: (kind, { epoch, ver, hash, jws }) => void setDocument.run(kind, epoch, ver, hash, jws),
    isPaired: (hash) => paired.get(hash) !== undefined,
    pair: (hash, name, nowMs) => void pair.run(hash, name, nowMs),
  }
}
