import { createHash } from 'node:crypto'
import type { Log } from '../../log.ts'
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

interface StoredHead {
  epoch: number
  ver: number
  hash: string
}

interface StoredDocument extends StoredHead {
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

/**
 * The position of the ledger, stored in the data folder, and outside it until the next boot. If the ledger is behind one
 * of them at a start, it was restored or lost rows: SQLite drops a damaged write-ahead log from its first wrong byte on,
 * without an error. Each claim then needs the cloud until the cloud has detected the loss.
 *
 * The agent writes the watermark after the commit. Therefore no intact ledger can be behind its watermark.
 */
export interface Watermark {
  /**
   * True if the ledger lacks rows that it had before: the ledger was restored or damaged, and the cloud has not detected
   * the loss yet.
   */
  readonly isAhead: boolean
  /** Stores a durable position. Does nothing while `isAhead`. */
  note(position: Position): void
  /** Replaces the watermark with this position, which the cloud has accepted. */
  accept(position: Position): void
}

/** The end of a ledger's journal. */
export interface Position {
  generation: number
  seq: number
  hash: string
}

/** A folder with small files. Both methods throw file system errors. */
export interface SmallFiles {
  /** Returns the text, or undefined if the file does not exist. */
  read(name: string): string | undefined
  /** Overwrites the file in place, without a flush. All texts of one file must have the same length. */
  write(name: string, text: string): void
}

const LENGTH = 160
const REPORT =
  'the watermark of the ledger cannot be written: the agent detects a restored ledger only when the cloud is online'

/**
 * Reads the watermark of this ledger. `hashAt` returns the hash of a row, or undefined if the ledger does not have the
 * row.
 */
export function openWatermark(
  { folders, ledgerId, log }: { folders: readonly SmallFiles[]; ledgerId: string; log: Pick<Log, 'warn'> },
  at: Position,
  hashAt: (seq: number) => string | undefined,
): Watermark {
  const marks = folders.map((files) => markIn(files, `${ledgerId}.watermark`, log))
  let isAhead = marks.some(({ last }) => last && (isLater(last, at) || isOtherBranch(last, at, hashAt)))
  if (!isAhead) for (const mark of marks) mark.put(at)
  return {
    get isAhead() {
      return isAhead
    },
    note(position) {
      if (isAhead) return
      for (const mark of marks) if (!mark.last || isLater(position, mark.last)) mark.put(position)
    },
    accept(position) {
      isAhead = false
      for (const mark of marks) mark.put(position)
    },
  }
}

/** The watermark in one folder. */
interface Mark {
  /** The stored position; undefined if there is none, or if it is unreadable. */
  readonly last: Position | undefined
  put(position: Position): void
}

/** Logs only the first of successive failures. */
function markIn(files: SmallFiles, name: string, log: Pick<Log, 'warn'>): Mark {
  let isReported = false
  function attempt<T>(work: () => T): T | undefined {
    try {
      const value = work()
      isReported = false
      return value
    } catch (error) {
      if (!isReported) log.warn({ err: error }, REPORT)
      isReported = true
      return undefined
    }
  }

  let last = attempt(() => parse(files.read(name)))
  return {
    get last() {
      return last
    },
    put: (position) =>
      attempt(() => {
        files.write(name, textOf(position))
        last = position
      }),
  }
}

function isLater(a: Position, b: Position): boolean {
  return a.generation === b.generation ? a.seq > b.seq : a.generation > b.generation
}

/**
 * True if the ledger has a different row with the watermark's number. Then the ledger was restored and has added rows
 * after the restore.
 */
function isOtherBranch(stored: Position, at: Position, hashAt: (seq: number) => string | undefined): boolean {
  if (stored.generation !== at.generation) return false
  const hash = hashAt(stored.seq)
  return hash !== undefined && hash !== stored.hash
}

function textOf({ generation, seq, hash }: Position): string {
  const body = `${generation} ${seq} ${hash}`
  return `${body} ${checksum(body)}`.padEnd(LENGTH - 1).concat('\n')
}

/** Returns undefined if the checksum is wrong, for example after a power cut. */
function parse(text: string | undefined): Position | undefined {
  const match = /^(?<body>(?<generation>\d+) (?<seq>\d+) (?<hash>\S+)) (?<sum>\S+) *\n$/.exec(text ?? '')
  const { body = '', generation, seq, hash = '', sum } = match?.groups ?? {}
  return sum === checksum(body) ? { generation: Number(generation), seq: Number(seq), hash } : undefined
}

function checksum(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 16)
}
