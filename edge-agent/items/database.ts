import Sqlite, { type Database as Connection } from 'better-sqlite3'
import type { PackedItem } from './item-table.ts'

/**
 * The replica's file. It can be fetched again, so it needs less than the ledger: a commit is whole but not
 * flushed, and a damaged file is begun anew.
 */
export interface ItemFile {
  read(): StoredItems
  /** Rows and the number they reach in one transaction; a row with info 0 is removed. */
  write(rows: readonly StoredRow[], mark: ItemMark, categories: readonly string[]): void
  /** Forgets every item. */
  clear(mark: ItemMark): void
  close(): void
}

export interface StoredRow extends PackedItem {
  readonly name: string
}

/** How far the replica has come. */
export interface ItemMark {
  readonly epoch: number
  readonly ver: number
  /** The floor when it was begun. */
  readonly base: number
  /** Trusted time at which it was known to be complete, ms; 0: never. */
  readonly confirmedMs: number
}

export interface StoredItems {
  readonly mark: ItemMark | undefined
  /** By number, from 1. */
  readonly categories: readonly string[]
  rows(): IterableIterator<StoredRow>
}

/** Raised also when the packing of items changes (item-table.ts). */
const SCHEMA_VERSION = 1
const ITEMS = 'CREATE TABLE item (name TEXT PRIMARY KEY, info INTEGER NOT NULL, category INTEGER NOT NULL) WITHOUT ROWID, STRICT'
const SCHEMA = `${ITEMS};
  CREATE TABLE category (number INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT;
  CREATE TABLE progress (id INTEGER PRIMARY KEY CHECK (id = 1), epoch INTEGER NOT NULL, ver INTEGER NOT NULL, base INTEGER NOT NULL, confirmed_ms INTEGER NOT NULL) STRICT;`

/** Opens the file of a replica. One that cannot be read is left alone, and a temporary one takes its place until somebody removes it. */
export function openItemFile(file: string, onDamaged: (error: unknown) => void): ItemFile {
  try {
    return itemFile(connect(file))
  } catch (error) {
    onDamaged(error)
    return itemFile(connect(''))
  }
}

function connect(file: string): Connection {
  const db = new Sqlite(file, { timeout: 2_000 })
  try {
    db.pragma('journal_mode = WAL')
    db.pragma('synchronous = NORMAL')
    db.pragma('cache_size = -4000')
    db.pragma('journal_size_limit = 16777216')
    const version = db.pragma('user_version', { simple: true }) as number
    if (version === SCHEMA_VERSION) return db
    // Of another make: what it holds can be fetched again.
    db.exec(`DROP TABLE IF EXISTS item; DROP TABLE IF EXISTS category; DROP TABLE IF EXISTS progress; ${SCHEMA}`)
    db.pragma(`user_version = ${SCHEMA_VERSION}`)
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

function itemFile(db: Connection): ItemFile {
  const set = () => db.prepare('INSERT INTO item (name, info, category) VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE SET info = excluded.info, category = excluded.category')
  const remove = () => db.prepare('DELETE FROM item WHERE name = ?')
  let [setItem, removeItem] = [set(), remove()]
  const setCategory = db.prepare('INSERT INTO category (number, name) VALUES (?, ?) ON CONFLICT (number) DO NOTHING')
  const setMark = db.prepare(
    'INSERT INTO progress (id, epoch, ver, base, confirmed_ms) VALUES (1, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET epoch = excluded.epoch, ver = excluded.ver, base = excluded.base, confirmed_ms = excluded.confirmed_ms',
  )
  let stored = (db.prepare('SELECT COUNT(*) AS n FROM category').get() as { n: number }).n
  const writeMark = ({ epoch, ver, base, confirmedMs }: ItemMark) => void setMark.run(epoch, ver, base, confirmedMs)

  const write = db.transaction((rows: readonly StoredRow[], mark: ItemMark, categories: readonly string[]) => {
    for (let i = stored; i < categories.length; i++) setCategory.run(i + 1, categories[i])
    for (const { name, info, category } of rows) {
      if (info === 0) removeItem.run(name)
      else setItem.run(name, info, category)
    }
    writeMark(mark)
  })
  const clear = db.transaction((mark: ItemMark) => {
    db.exec(`DROP TABLE item; ${ITEMS}`)
    writeMark(mark)
  })

  return {
    read: () => ({
      mark: db.prepare<[], ItemMark>('SELECT epoch, ver, base, confirmed_ms AS confirmedMs FROM progress').get(),
      categories: db.prepare<[], { name: string }>('SELECT name FROM category ORDER BY number').all().map((row) => row.name),
      rows: () => db.prepare<[], StoredRow>('SELECT name, info, category FROM item').iterate(),
    }),
    write(rows, mark, categories) {
      write.immediate(rows, mark, categories)
      stored = Math.max(stored, categories.length)
    },
    clear(mark) {
      clear.immediate(mark)
      ;[setItem, removeItem] = [set(), remove()]
    },
    close: () => void db.close(),
  }
}
