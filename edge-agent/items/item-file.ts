import { existsSync, renameSync, rmSync } from 'node:fs'
import Sqlite, { type Database as Connection } from 'better-sqlite3'
import type { UnitFacts } from '../../policy/receipts/receipt-claims.ts'
import type { ProtectionTechnology } from '../../policy/vocabulary.ts'
import type { PackedItem } from './item-slots.ts'
import type { ItemLabel } from './item-table.ts'

/**
 * SQLite file of the items, of stationary tags at the gates and of released units. Commits are atomic, but a power cut
 * may lose the last commits: the agent can fetch the items and learn the stationary tags again.
 */
export interface ItemFile {
  read(): StoredItems
  /**
   * Writes rows, new labels and progress in one transaction. A row with `info` 0 deletes the item with the name of the
   * row.
   */
  write(rows: readonly StoredRow[], progress: ItemProgress, labels: readonly ItemLabel[]): void
  /** The other names of the item with this name. */
  othersOf(name: string): string[]
  /** Name of the product of an item; undefined if the file has none. */
  productOf(name: string): string | undefined
  /** The only product with these facts; undefined if there are none or several. */
  onlyProductOf(facts: UnitFacts): KnownProduct | undefined
  /** Names of products, each with the key of one of its items. At most `limit`. */
  productSamples(limit: number): { name: string; key: string }[]
  /** Hash of the small picture of an item's product; undefined if the file does not have the picture. */
  pictureOf(name: string): string | undefined
  pictures: PictureFile
  /** Deletes all items. */
  clear(progress: ItemProgress): void
  /** Stationary tags of a gate; undefined if the gate is new. */
  stationaryTags(gate: string): StoredStationaryTag[] | undefined
  saveStationaryTags(gate: string, tags: readonly StoredStationaryTag[]): void
  /**
   * Released units that expire after `nowMs` (trusted time), in the order of their expiry
   * (lanes/gate/released-units.ts).
   */
  releases(nowMs: number): StoredRelease[]
  /** Stores these units and deletes expired ones. */
  saveReleases(rows: readonly StoredRelease[], nowMs: number): void
  close(): void
}

/** What people know of a product. `picture`: hash of its small picture, if the file has the picture. */
export interface KnownProduct {
  readonly name: string
  readonly picture?: string
}

export interface StoredRow extends PackedItem {
  readonly name: string
  /** Name of the product, for people. */
  readonly product?: string | undefined
  /** Hash of its small picture. */
  readonly picture?: string | undefined
  /** The other names of the item, as they are stored. */
  readonly others?: readonly string[] | undefined
}

/** The small pictures of products. */
export interface PictureFile {
  /** Hashes that items name and whose pictures are missing. Empty if the file has its maximum of pictures. */
  missing(limit: number): string[]
  store(hash: string, bytes: Uint8Array): void
  read(hash: string): Uint8Array | undefined
  /** Deletes pictures that no item names. */
  evict(): void
}

/** Maximum pictures in the file. With `PICTURE_BYTES_LIMIT` they need at most 20 MB. */
const PICTURES_LIMIT = 5_000

/** Maximum names of products in the file. Items of further products are stored without the name. */
const PRODUCTS_LIMIT = 100_000

/** A stationary tag near a gate (lanes/gate/tags/presence.ts). */
interface StoredStationaryTag {
  readonly tag: string
  readonly longestGapMs: number | undefined
  readonly wasOutside: boolean
}

/** A released unit; lanes/gate/released-units.ts makes and reads `text`. */
export interface StoredRelease {
  readonly id: string
  /** Trusted ms. */
  readonly untilMs: number
  readonly text: string
}

/** Position of the replica in the cloud's sequence of item changes. */
export interface ItemProgress {
  readonly epoch: number
  readonly ver: number
  /** `floor` of the first page that the agent applied (policy/documents/item-documents.ts). */
  readonly base: number
  /** Trusted time at which the replica was last complete, ms; 0: never. */
  readonly confirmedMs: number
}

interface StoredItems {
  readonly progress: ItemProgress | undefined
  /** The labels, in the order of their numbers, from 1. */
  readonly labels: readonly ItemLabel[]
  rows(): IterableIterator<StoredRow>
}

interface StoredLabel {
  readonly category: string
  readonly brand: string
  readonly technology: ProtectionTechnology | null
}

/** Increase this version when the tables or the packing of items (item-slots.ts) change. */
const SCHEMA_VERSION = 5
const ITEMS =
  'CREATE TABLE item (name TEXT PRIMARY KEY, info INTEGER NOT NULL, label INTEGER NOT NULL, product INTEGER, others TEXT) WITHOUT ROWID, STRICT'
/** Price within `info`, see PackedItem. */
const PRICE = '(info >> 5)'
const ITEMS_BY_PRODUCT = `CREATE INDEX item_by_product ON item (product) WHERE product IS NOT NULL;
  CREATE INDEX item_by_label ON item (label, ${PRICE}, product) WHERE product IS NOT NULL`
/** `picture`: hash of the small picture, '' without one. */
const PRODUCTS = `CREATE TABLE product (id INTEGER PRIMARY KEY, name TEXT NOT NULL, picture TEXT NOT NULL, UNIQUE (name, picture)) STRICT;
  CREATE INDEX product_by_picture ON product (picture) WHERE picture <> ''`
const SCHEMA = `${ITEMS}; ${ITEMS_BY_PRODUCT};
  ${PRODUCTS};
  CREATE TABLE picture (hash TEXT PRIMARY KEY, bytes BLOB NOT NULL) WITHOUT ROWID, STRICT;
  CREATE TABLE label (number INTEGER PRIMARY KEY, category TEXT NOT NULL, brand TEXT NOT NULL, technology TEXT) STRICT;
  CREATE INDEX label_by_name ON label (category, brand);
  CREATE TABLE gate (gate TEXT PRIMARY KEY) WITHOUT ROWID, STRICT;
  CREATE TABLE tag (gate TEXT NOT NULL, tag TEXT NOT NULL, longest_gap_ms INTEGER, was_outside INTEGER NOT NULL, PRIMARY KEY (gate, tag)) WITHOUT ROWID, STRICT;
  CREATE TABLE progress (id INTEGER PRIMARY KEY CHECK (id = 1), epoch INTEGER NOT NULL, ver INTEGER NOT NULL, base INTEGER NOT NULL, confirmed_ms INTEGER NOT NULL) STRICT;
  CREATE TABLE IF NOT EXISTS released (id TEXT PRIMARY KEY, until_ms INTEGER NOT NULL, text TEXT NOT NULL) WITHOUT ROWID, STRICT;`

/**
 * Opens the file of a replica. If the file is damaged, sets it aside as `FILE.damaged`, where it replaces an earlier
 * one, and begins an empty file: the agent fetches the items again. If the file cannot be opened for another reason,
 * such as a full disk or a missing right, the file stays as it is, and the replica uses a temporary database until the
 * next start. Calls `onFault` in both cases.
 */
export function openItemFile(file: string, onFault: (error: unknown, isDamaged: boolean) => void): ItemFile {
  try {
    return itemFile(connect(file))
  } catch (error) {
    const isDamaged = isDamage(error)
    onFault(error, isDamaged)
    if (!isDamaged) return itemFile(connect(''))
  }
  try {
    for (const end of ['-wal', '-shm']) rmSync(file + end, { force: true })
    renameSync(file, `${file}.damaged`)
    return itemFile(connect(file))
  } catch {
    return itemFile(connect(''))
  }
}

/**
 * Looks into the file of a replica without changing it. An incomplete replica was never complete, or the agent has begun
 * to fetch it again after a restore of the cloud at `restoredMs`. Gates then alarm for paid goods until the agent has
 * reached the cloud.
 */
export function inspectItemFile(
  file: string,
): { isComplete: true } | { isComplete: false; restoredMs?: number } | { damage: string } {
  if (!existsSync(file)) return { isComplete: false }
  try {
    const db = new Sqlite(file, { readonly: true, timeout: 2_000 })
    try {
      assertWhole(db)
      const found = db.prepare('SELECT confirmed_ms AS confirmedMs, epoch FROM progress').get()
      const { confirmedMs, epoch } = (found ?? { confirmedMs: 0, epoch: 0 }) as Pick<
        ItemProgress,
        'confirmedMs' | 'epoch'
      >
      if (confirmedMs > 0) return { isComplete: true }
      // A restored cloud counts on from the time of its restore (cloud/service/mark-restored.ts).
      return { isComplete: false, ...(epoch > 0 && { restoredMs: epoch }) }
    } finally {
      db.close()
    }
  } catch (error) {
    return { damage: error instanceof Error ? error.message : String(error) }
  }
}

class ItemFileDamaged extends Error {
  override name = 'ItemFileDamaged'
}

function isDamage(error: unknown): boolean {
  const { code } = error as { code?: string }
  return error instanceof ItemFileDamaged || /^SQLITE_(CORRUPT|NOTADB)/.test(code ?? '')
}

/** Reads all pages: damage must be found here, not by a later read. Needs some milliseconds for each megabyte. */
function assertWhole(db: Connection): void {
  const found = db.pragma('integrity_check(1)', { simple: true })
  if (found !== 'ok') throw new ItemFileDamaged(String(found))
}

function connect(file: string): Connection {
  const db = new Sqlite(file, { timeout: 2_000 })
  try {
    assertWhole(db)
    db.pragma('page_size = 1024')
    db.pragma('journal_mode = WAL')
    db.pragma('synchronous = NORMAL')
    db.pragma('cache_size = -4000')
    db.pragma('journal_size_limit = 16777216')
    const version = db.pragma('user_version', { simple: true }) as number
    if (version === SCHEMA_VERSION) return db
    // Another version wrote the file. The agent keeps the released units, because it cannot fetch these units again.
    db.exec(
      `DROP TABLE IF EXISTS item; DROP TABLE IF EXISTS product; DROP TABLE IF EXISTS picture; DROP TABLE IF EXISTS label; DROP TABLE IF EXISTS progress; DROP TABLE IF EXISTS gate; DROP TABLE IF EXISTS tag; ${SCHEMA}`,
    )
    db.pragma(`user_version = ${SCHEMA_VERSION}`)
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

function itemFile(db: Connection): ItemFile {
  const set = () =>
    db.prepare(
      'INSERT INTO item (name, info, label, product, others) VALUES (?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET info = excluded.info, label = excluded.label, product = excluded.product, others = excluded.others',
    )
  const remove = () => db.prepare('DELETE FROM item WHERE name = ?')
  let [setItem, removeItem] = [set(), remove()]
  let products = productNames(db)
  const setLabel = db.prepare(
    'INSERT INTO label (number, category, brand, technology) VALUES (?, ?, ?, ?) ON CONFLICT (number) DO NOTHING',
  )
  const setProgress = db.prepare(
    'INSERT INTO progress (id, epoch, ver, base, confirmed_ms) VALUES (1, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET epoch = excluded.epoch, ver = excluded.ver, base = excluded.base, confirmed_ms = excluded.confirmed_ms',
  )
  const releasesAfter = db.prepare<[number], StoredRelease>(
    'SELECT id, until_ms AS untilMs, text FROM released WHERE until_ms > ? ORDER BY until_ms',
  )
  const dropReleases = db.prepare('DELETE FROM released WHERE until_ms <= ?')
  const setRelease = db.prepare(
    'INSERT INTO released (id, until_ms, text) VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET until_ms = excluded.until_ms, text = excluded.text',
  )
  let stored = (db.prepare('SELECT COUNT(*) AS n FROM label').get() as { n: number }).n
  const writeProgress = ({ epoch, ver, base, confirmedMs }: ItemProgress) =>
    void setProgress.run(epoch, ver, base, confirmedMs)

  const write = db.transaction((rows: readonly StoredRow[], progress: ItemProgress, labels: readonly ItemLabel[]) => {
    for (const [i, { category, brand, technology }] of labels.slice(stored).entries())
      setLabel.run(stored + i + 1, category, brand, technology ?? null)
    for (const { name, info, label, product, picture, others = [] } of rows) {
      if (info === 0) removeItem.run(name)
      else setItem.run(name, info, label, products.idOf(product, picture), others.length > 0 ? others.join('\n') : null)
    }
    writeProgress(progress)
  })
  const clear = db.transaction((progress: ItemProgress) => {
    db.exec(`DROP TABLE item; ${ITEMS}; ${ITEMS_BY_PRODUCT}; DROP TABLE product; ${PRODUCTS}`)
    writeProgress(progress)
  })

  return {
    read: () => ({
      progress: db
        .prepare<[], ItemProgress>('SELECT epoch, ver, base, confirmed_ms AS confirmedMs FROM progress')
        .get(),
      labels: readLabels(db),
      rows: () => db.prepare<[], StoredRow>('SELECT name, info, label FROM item').iterate(),
    }),
    write(rows, progress, labels) {
      write.immediate(rows, progress, labels)
      stored = Math.max(stored, labels.length)
    },
    clear(progress) {
      clear.immediate(progress)
      ;[setItem, removeItem] = [set(), remove()]
      products = productNames(db)
    },
    othersOf: (name) => othersOf(db, name),
    productOf: (name) => products.of(name),
    onlyProductOf: (facts) => products.only(facts),
    productSamples: (limit) => products.samples(limit),
    pictureOf: (name) => products.pictureOf(name),
    pictures: pictureFile(db),
    stationaryTags: (gate) => readStationaryTags(db, gate),
    saveStationaryTags: db.transaction((gate: string, tags: readonly StoredStationaryTag[]) => {
      db.prepare('INSERT INTO gate (gate) VALUES (?) ON CONFLICT DO NOTHING').run(gate)
      db.prepare('DELETE FROM tag WHERE gate = ?').run(gate)
      const insert = db.prepare('INSERT INTO tag (gate, tag, longest_gap_ms, was_outside) VALUES (?, ?, ?, ?)')
      for (const { tag, longestGapMs, wasOutside } of tags)
        insert.run(gate, tag, longestGapMs === undefined ? null : Math.round(longestGapMs), wasOutside ? 1 : 0)
    }),
    releases: (nowMs) => releasesAfter.all(nowMs),
    saveReleases: db.transaction((rows: readonly StoredRelease[], nowMs: number) => {
      dropReleases.run(nowMs)
      for (const { id, untilMs, text } of rows) setRelease.run(id, untilMs, text)
    }),
    close: () => void db.close(),
  }
}

function othersOf(db: Connection, name: string): string[] {
  const row = db.prepare<[string], { others: string | null }>('SELECT others FROM item WHERE name = ?').get(name)
  return row?.others?.split('\n') ?? []
}

function readStationaryTags(db: Connection, gate: string): StoredStationaryTag[] | undefined {
  const isKnown = db.prepare('SELECT gate FROM gate WHERE gate = ?').get(gate) !== undefined
  const rows = db
    .prepare<[string], { tag: string; gap: number | null; outside: number }>(
      'SELECT tag, longest_gap_ms AS gap, was_outside AS outside FROM tag WHERE gate = ?',
    )
    .all(gate)
  return isKnown
    ? rows.map(({ tag, gap, outside }) => ({ tag, longestGapMs: gap ?? undefined, wasOutside: outside === 1 }))
    : undefined
}

function readLabels(db: Connection): ItemLabel[] {
  return db
    .prepare<[], StoredLabel>('SELECT category, brand, technology FROM label ORDER BY number')
    .all()
    .map(({ technology, ...label }) => ({ ...label, ...(technology !== null && { technology }) }))
}

/** Products of the items: each pair of name and picture is stored once. */
function productNames(db: Connection) {
  const find = db.prepare<[string, string], { id: number }>('SELECT id FROM product WHERE name = ? AND picture = ?')
  const add = db.prepare<[string, string, number], { id: number }>(
    'INSERT INTO product (name, picture) SELECT ?, ? WHERE (SELECT COALESCE(MAX(id), 0) FROM product) < ? RETURNING id',
  )
  const ofItem = db.prepare<[string], { name: string }>(
    'SELECT p.name FROM item i JOIN product p ON p.id = i.product WHERE i.name = ?',
  )
  const labelsOf = db.prepare<[string, string], { number: number }>(
    'SELECT number FROM label WHERE category = ? AND brand = ?',
  )
  // One look into `item_by_label` for each product, however many items it has.
  const nextProduct = db.prepare<[number, number, number], { product: number }>(
    `SELECT product FROM item WHERE label = ? AND ${PRICE} = ? AND product > ? ORDER BY product LIMIT 1`,
  )
  const productById = db.prepare<[number], { name: string; picture: string | null }>(
    'SELECT p.name, f.hash AS picture FROM product p LEFT JOIN picture f ON f.hash = p.picture WHERE p.id = ?',
  )
  function* ofGoods({ category, brand, priceCent }: UnitFacts) {
    for (const { number } of labelsOf.all(category, brand))
      for (let id = 0, looks = 0; looks < SAME_NAME_LIMIT; looks++) {
        const next = nextProduct.get(number, priceCent + 1, id)
        if (!next) break
        id = next.product
        const product = productById.get(id)
        if (product) yield product
      }
  }
  const pictureOfItem = db.prepare<[string], { hash: string }>(
    'SELECT f.hash FROM item i JOIN product p ON p.id = i.product JOIN picture f ON f.hash = p.picture WHERE i.name = ?',
  )
  const samples = db.prepare<[number], { name: string; key: string }>(
    // One look into `item_by_product` for each product.
    'SELECT name, key FROM (SELECT p.name, (SELECT i.name FROM item i WHERE i.product = p.id LIMIT 1) AS key FROM product p ORDER BY p.id DESC LIMIT ?) WHERE key IS NOT NULL',
  )
  return {
    samples: (limit: number) => samples.all(limit),
    idOf(name: string | undefined, picture = ''): number | null {
      if (name === undefined) return null
      return find.get(name, picture)?.id ?? add.get(name, picture, PRODUCTS_LIMIT)?.id ?? null
    },
    of: (item: string) => ofItem.get(item)?.name,
    only(facts: UnitFacts): KnownProduct | undefined {
      let known: { name: string; picture: string | null } | undefined
      for (const product of ofGoods(facts)) {
        if (known && known.name !== product.name) return undefined
        if (!known?.picture) known = product
      }
      return known && { name: known.name, ...(known.picture !== null && { picture: known.picture }) }
    },
    pictureOf: (item: string) => pictureOfItem.get(item)?.hash,
  }
}

/** Products of one name, with different pictures, that are read for goods of one label. */
const SAME_NAME_LIMIT = 20

const IS_NAMED = 'EXISTS (SELECT 1 FROM item i WHERE i.product = p.id)'

function pictureFile(db: Connection): PictureFile {
  const count = db.prepare<[], { n: number }>('SELECT COUNT(*) AS n FROM picture')
  // The statements are prepared at each call, because `clear` replaces the tables of items and products.
  return {
    missing(limit) {
      const room = PICTURES_LIMIT - (count.get()?.n ?? 0)
      return db
        .prepare<[number], { picture: string }>(
          `SELECT DISTINCT picture FROM product p WHERE picture <> '' AND NOT EXISTS (SELECT 1 FROM picture f WHERE f.hash = p.picture) AND ${IS_NAMED} LIMIT ?`,
        )
        .all(Math.max(0, Math.min(limit, room)))
        .map(({ picture }) => picture)
    },
    store: (hash, bytes) =>
      void db.prepare('INSERT INTO picture (hash, bytes) VALUES (?, ?) ON CONFLICT DO NOTHING').run(hash, bytes),
    read: (hash) =>
      db.prepare<[string], { bytes: Uint8Array }>('SELECT bytes FROM picture WHERE hash = ?').get(hash)?.bytes,
    evict: () =>
      void db.exec(
        `DELETE FROM picture WHERE NOT EXISTS (SELECT 1 FROM product p WHERE p.picture = picture.hash AND p.picture <> '' AND ${IS_NAMED})`,
      ),
  }
}
