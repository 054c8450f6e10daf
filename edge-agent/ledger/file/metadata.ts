import type { Database as Connection } from 'better-sqlite3'

/** Key-value store of the ledger, and the accepted documents. */
export interface Metadata {
  get(name: string): string | undefined
  /** Cached `get`, for keys that only this process writes. */
  getCached(name: string): string | undefined
  set(name: string, value: string): void
  document(kind: string): StoredDocument | undefined
  /** Epoch, version and hash of a document, without its long text. */
  head(kind: string): StoredHead | undefined
  setDocument(kind: string, document: StoredDocument): void
  /** Clears the cache. Call it after a transaction was rolled back. */
  clearCache(): void
}

export interface StoredHead {
  epoch: number
  ver: number
  hash: string
}

export interface StoredDocument extends StoredHead {
  jws: string
}

/** Opens the metadata tables of this ledger. */
export function openMetadata(db: Connection): Metadata {
  const get = db.prepare<[string], { value: string }>('SELECT value FROM mark WHERE name = ?')
  const set = db.prepare(
    'INSERT INTO mark (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
  )
  const document = db.prepare<[string], StoredDocument>('SELECT epoch, ver, hash, jws FROM document WHERE kind = ?')
  const head = db.prepare<[string], StoredHead>('SELECT epoch, ver, hash FROM document WHERE kind = ?')
  const setDocument = db.prepare(
    `INSERT INTO document (kind, epoch, ver, hash, jws) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (kind) DO UPDATE SET epoch = excluded.epoch, ver = excluded.ver, hash = excluded.hash, jws = excluded.jws`,
  )
  // The agent reads these values for each message from the cloud, and few messages change them.
  const values = new Map<string, string | undefined>()
  const heads = new Map<string, StoredHead | undefined>()
  const cached = <T>(cache: Map<string, T>, name: string, read: (name: string) => T): T => {
    const value = cache.has(name) ? (cache.get(name) as T) : read(name)
    cache.set(name, value)
    return value
  }
  return {
    get: (name) => get.get(name)?.value,
    getCached: (name) => cached(values, name, (key) => get.get(key)?.value),
    set(name, value) {
      set.run(name, value)
      values.set(name, value)
    },
    document: (kind) => document.get(kind),
    head: (kind) => cached(heads, kind, (key) => head.get(key)),
    setDocument(kind, { epoch, ver, hash, jws }) {
      setDocument.run(kind, epoch, ver, hash, jws)
      heads.set(kind, { epoch, ver, hash })
    },
    clearCache() {
      values.clear()
      heads.clear()
    },
  }
}
