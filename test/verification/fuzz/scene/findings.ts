import type { Json } from './served-cloud.ts'

const ID = /[a-z]{2,4}_[0-9A-HJKMNP-TV-Z]{26}/g
const WHOLE_ID = /^([a-z]{2,4})_[0-9A-HJKMNP-TV-Z]{26}$/
const KEPT = 24
const LONGEST = 4_096

/** Returns the prefix of an id, such as `pur`; undefined if the text is no id. */
export function prefixOf(text: unknown): string | undefined {
  return typeof text === 'string' ? WHOLE_ID.exec(text)?.[1] : undefined
}

/**
 * Ids in a text, except request ids and account ids. Each answer has a new request id, and the test and live parties of
 * an account have the same account id.
 */
export function idsIn(text: string): string[] {
  return (text.match(ID) ?? []).filter((id) => !/^(?:req|acc)_/.test(id))
}

/**
 * Ids and other texts that answers contained, by party. The first party that receives an id owns it. Administrators own
 * no ids.
 */
export interface Findings {
  /** Stores all texts and ids of an answer to this party. */
  learn(party: string, answer: Json): void
  /** Stores a text under a name, as if it came from an answer. */
  add(party: string, name: string, value: string): void
  /** Records that this party sent these ids, so that later answers to this party may contain them. */
  name(party: string, ids: readonly string[]): void
  hasNamed(party: string, id: string): boolean
  /** The newest texts of a party. Ids are stored by prefix (`pur`), other texts by field name (`receiptToken`). */
  of(party: string, name: string): readonly string[]
  /** The party that received this id first. */
  ownerOf(id: string): string | undefined
  /** Ids with this prefix that belong to other parties. */
  foreign(party: string, prefix: string): readonly string[]
}

/** Creates an empty store. `open`: ids that every party may see. */
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
    // The party sent this id before any answer contained it, so the id belongs to no party.
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
