import type { CallerKind } from '../../../cloud/operations/operation.ts'
import type { Chance } from '../../simulation/virtual/chance.ts'
import type { Findings } from './findings.ts'
import type { TestAccounts, Party } from './ground.ts'
import type { Json, ServedCloud } from './served-cloud.ts'

/** With what a request comes: which kind of key, of which party. */
export type KeyKind = CallerKind | 'bound'

/** What a recipe makes a request from: one party, what it was shown so far, and calls for what it lacks. */
export interface Scene {
  readonly party: Party
  readonly chance: Chance
  readonly served: ServedCloud
  readonly ground: TestAccounts
  readonly findings: Findings
  /** Calls an operation that the request needs before it. Undefined unless it answers 2xx. */
  call(operation: string, body: Json, as?: KeyKind): Promise<Json | undefined>
  /** A short text with the canary of the party. */
  text(): string
  /** A number that no request had before. */
  count(): number
}

/** A text of the party that answers have shown: an id by its prefix, others by the name of their field. */
export function known({ party, findings, chance }: Scene, name: string): string | undefined {
  const texts = findings.of(party.name, name)
  return texts.length === 0 ? undefined : chance.one(texts)
}

/** A store of the party, mostly the first. */
export function storeOf({ party, chance }: Scene): string {
  const [first = '', ...others] = party.storeIds
  return others.length > 0 && chance.happens(0.15) ? chance.one(others) : first
}

/** ISO 8601, this long after the present moment. */
export function inTime({ served }: Scene, ms: number): string {
  return new Date(served.platform.clock.wall() + ms).toISOString()
}

/** A day in the calendar, this many days from now. */
export function day(scene: Scene, days: number): string {
  return inTime(scene, days * 86_400_000).slice(0, 10)
}
