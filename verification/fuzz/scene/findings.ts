import type { Json } from './served-cloud.ts'

const ID = /[a-z]{2,4}_[0-9A-HJKMNP-TV-Z]{26}/g
const WHOLE_ID = /^([a-z]{2,4})_[0-9A-HJKMNP-TV-Z]{26}$/
const KEPT = 24
const LONGEST = 4_096

/** The prefix of an id, such as `pur`; undefined for other texts. */
export function prefixOf(text: unknown): string | undefined {
  return typeof text === 'string' ? WHOLE_ID.exec(text)?.[1] : undefined
}

/**
 * Every id in a text but three kinds: those of requests are new in each answer; an account has a test and a live side; and the
 * audit log names the key of the administrator who changed something.
 */
export function idsIn(text: string): string[] {
  return (text.match(ID) ?? []).filter((id) => !/^(?:req|acc)_/.test(id))
}

/**
 * What answers have shown: ids and other texts of each party for later requests, and whose each id is. The first party that
 * is shown an id owns it; administrators own nothing.
 */
export interface Findings {
  /** Remembers everything in an answer to this party. */
  learn(party: string, answer: Json): void
  /** Remembers a text under a name, as if an answer had shown it. */
  add(party: string, name: string, value: string): void
  /** Remembers that this party named these ids itself: later answers may repeat them. */
  name(party: string, ids: readonly string[]): void
  hasNamed(party: string, id: string): boolean
  /** The latest texts of a party: ids by their prefix (`pur`), others by their field (`receiptToken`). */
  of(party: string, name: string): readonly string[]
  /** The party that was shown this id first. */
  ownerOf(id: string): string | undefined
  /** Ids with this prefix that belong to other parties. */
  foreign(party: string, prefix: string): readonly string[]
}

/** Nothing is known yet. `open`: ids that every party may see. */
export function newFindings(open: ReadonlySet<string> = new Set()): Findings {
  const pools = new Map<string, string[]>()
  const owners = new Map<string, string>()
  const parties = new Set<string>()
  const named = new Set<string>()

  function add(party: string, name: string, value: string): void {
    const key = `${party} ${name}`
    const pool = pools.get(key) ?? []
    if (pool.length === 0) pools.set(key, pool)
    if (pool.includes(value)) return
    pool.push(value)
    if (pool.length > KEPT) pool.shift()
  }

  function walk(party: string, value: unknown, name: string): void {
    if (typeof value === 'string') {
      const prefix = prefixOf(value)
      if (prefix === 'req' || open.has(value)) return
      if (prefix !== undefined) own(party, value, prefix)
      else if (value !== '' && value.length <= LONGEST) add(party, name, value)
      return
    }
    if (Array.isArray(value)) for (const each of value) walk(party, each, name)
    else if (typeof value === 'object' && value !== null)
      for (const [field, each] of Object.entries(value)) walk(party, each, field)
  }

  function own(party: string, id: string, prefix: string): void {
    // The party invented it, or took it from another answer.
    if (named.has(`${party} ${id}`) && !owners.has(id)) return
    parties.add(party)
    if (!owners.has(id)) owners.set(id, party)
    if (owners.get(id) === party) add(party, prefix, id)
  }

  return {
    learn: (party, answer) => walk(party, answer, ''),
    add,
    name(party, ids) {
      for (const id of ids) named.add(`${party} ${id}`)
    },
    hasNamed: (party, id) => named.has(`${party} ${id}`),
    of: (party, name) => pools.get(`${party} ${name}`) ?? [],
    ownerOf: (id) => owners.get(id),
    foreign: (party, prefix) =>
      [...parties].filter((other) => other !== party).flatMap((other) => pools.get(`${other} ${prefix}`) ?? []),
  }
}
