import type { Database as Connection } from 'better-sqlite3'

/**
 * Programs and browsers that may call the agent's local API. `untag edge pair` adds a program with a credential. `untag
 * edge link` makes a one-time link, which pairs a browser by a cookie.
 *
 * The ledger stores only hashes of credentials, cookies and links. The commands may write to the ledger while the agent
 * runs.
 */

/**
 * Maximum paired browsers; a store has a handful of screens. A further browser replaces the browser that was unused for
 * longest.
 */
export const BROWSER_LIMIT = 32
/** Maximum unused links. A further link replaces the oldest link. */
const LINK_LIMIT = 8
export const LINK_LIFE_MS = 15 * 60_000
/** Time without use after which the pairing of a browser ends, ms. Browsers limit cookies to 400 days. */
export const BROWSER_LIFE_MS = 400 * 86_400_000
/** Interval at which the agent stores the last use of a browser, ms. */
const NOTE_USE_EVERY_MS = 86_400_000

/** Metadata key: addresses of the agent, as a JSON array. `untag edge link` makes links to these addresses. */
export const LOCAL_URLS = 'local_urls'

/** A program with a named credential, or a browser. */
export interface Pairing {
  /** Id in lists and for `revoke`. */
  readonly id: string
  readonly kind: 'program' | 'browser'
  /** Empty for browsers. */
  readonly name: string
  readonly pairedMs: number
  /** Last stored use, at most a day old while the browser is in use. Null for programs. */
  readonly usedMs: number | null
  /** What a program may report of a till. Neither right releases anything. */
  readonly rights: readonly TillRight[]
  /** The only till whose sales a program may report; undefined: any. */
  readonly tillId?: string
}

export const TILL_RIGHTS = ['sales', 'returns'] as const
export type TillRight = (typeof TILL_RIGHTS)[number]

export interface Pairings {
  /** Returns undefined if no program or browser has this hash, or if the browser was unused for too long. */
  find(kind: Pairing['kind'], hash: string, nowMs: number): Pairing | undefined
  addProgram(hash: string, name: string, nowMs: number, rights?: readonly TillRight[], tillId?: string): void
  /** Stores the hash of a new one-time link. */
  addLink(hash: string, nowMs: number): void
  /**
   * Deletes the link and pairs a browser. Returns undefined if the link is unknown or expired. Call it inside a
   * transaction.
   */
  redeemLink(linkHash: string, browserHash: string, nowMs: number): Pairing | undefined
  /** True if the stored last use is a day or more away from `nowMs`. The caller then stores the new use. */
  isUseDue(browser: Pairing, nowMs: number): boolean
  noteUse(browser: Pairing, nowMs: number): void
  list(): Pairing[]
  /** Returns false if no pairing has this id. */
  revoke(id: string): boolean
}

interface Row {
  hash: string
  kind: Pairing['kind']
  name: string
  paired_ms: number
  used_ms: number | null
  rights: string
  till: string
}

/**
 * Prefix of each id. A hash may start with a dash, and a command line would read an id with a leading dash as an
 * option.
 */
const ID_PREFIX = 'pr_'
/** Characters of the hash in an id: enough to be unique among the pairings of one agent. */
const HASH_IN_ID = 12
const SELECT = `SELECT hash, kind, name, paired_ms, used_ms, rights, till FROM (
  SELECT hash, 'program' AS kind, name, created_ms AS paired_ms, NULL AS used_ms, rights, till FROM pairing
  UNION ALL SELECT hash, 'browser' AS kind, '' AS name, created_ms AS paired_ms, used_ms, '' AS rights, '' AS till FROM browser)`

/** Opens the pairings in this ledger's tables. */
export function openPairings(db: Connection): Pairings {
  const byHash = db.prepare<[string, string], Row>(`${SELECT} WHERE kind = ? AND hash = ?`)
  const all = db.prepare<[], Row>(`${SELECT} ORDER BY kind, paired_ms`)
  const addProgram = db.prepare('INSERT INTO pairing (hash, name, created_ms, rights, till) VALUES (?, ?, ?, ?, ?)')
  const addBrowser = db.prepare('INSERT INTO browser (hash, created_ms, used_ms) VALUES (?, ?, ?)')
  const use = db.prepare('UPDATE browser SET used_ms = ? WHERE substr(hash, 1, ?) = ?')
  const trimBrowsers = db.prepare(
    'DELETE FROM browser WHERE hash IN (SELECT hash FROM browser ORDER BY used_ms DESC, hash LIMIT -1 OFFSET ?)',
  )
  const addLink = db.prepare('INSERT INTO pairing_link (hash, created_ms) VALUES (?, ?)')
  const takeLink = db.prepare<[string], { created_ms: number }>(
    'DELETE FROM pairing_link WHERE hash = ? RETURNING created_ms',
  )
  const trimLinks = db.prepare(
    'DELETE FROM pairing_link WHERE hash IN (SELECT hash FROM pairing_link ORDER BY created_ms DESC, hash LIMIT -1 OFFSET ?)',
  )
  const revoke = ['pairing', 'browser'].map((table) => db.prepare(`DELETE FROM ${table} WHERE substr(hash, 1, ?) = ?`))

  return {
    find(kind, hash, nowMs) {
      const row = byHash.get(kind, hash)
      if (!row) return undefined
      const pairing = asPairing(row)
      return pairing.usedMs !== null && nowMs - pairing.usedMs > BROWSER_LIFE_MS ? undefined : pairing
    },
    addProgram: (hash, name, nowMs, rights = [], tillId = '') =>
      void addProgram.run(hash, name, nowMs, rights.join(' '), tillId),
    addLink(hash, nowMs) {
      addLink.run(hash, nowMs)
      trimLinks.run(LINK_LIMIT)
    },
    redeemLink(linkHash, browserHash, nowMs) {
      const link = takeLink.get(linkHash)
      // A link with a future time was made before the clock was set back. The age of this link is unknown, so the link
      // counts as expired.
      if (!link || nowMs < link.created_ms || nowMs - link.created_ms >= LINK_LIFE_MS) return undefined
      trimBrowsers.run(BROWSER_LIMIT - 1)
      addBrowser.run(browserHash, nowMs, nowMs)
      return { id: idOf(browserHash), kind: 'browser', name: '', pairedMs: nowMs, usedMs: nowMs, rights: [] }
    },
    isUseDue: ({ usedMs }, nowMs) => usedMs !== null && Math.abs(nowMs - usedMs) >= NOTE_USE_EVERY_MS,
    noteUse: ({ id }, nowMs) => void use.run(nowMs, HASH_IN_ID, hashOfId(id)),
    list: () => all.all().map(asPairing),
    revoke: (id) => revoke.some((statement) => statement.run(HASH_IN_ID, hashOfId(id)).changes > 0),
  }
}

function asPairing({ hash, kind, name, paired_ms, used_ms, rights, till }: Row): Pairing {
  const own = TILL_RIGHTS.filter((right) => rights.split(' ').includes(right))
  return {
    id: idOf(hash),
    kind,
    name,
    pairedMs: paired_ms,
    usedMs: used_ms,
    rights: own,
    ...(till !== '' && { tillId: till }),
  }
}

function idOf(hash: string): string {
  return ID_PREFIX + hash.slice(0, HASH_IN_ID)
}

function hashOfId(id: string): string {
  return id.startsWith(ID_PREFIX) ? id.slice(ID_PREFIX.length) : ''
}
