import type { CallerKind } from '../../../../cloud/platform/operations/operation.ts'
import type { Chance } from '../../simulation/virtual/chance.ts'
import type { Findings } from './findings.ts'
import type { TestAccounts, Party } from './test-accounts.ts'
import type { Json, ServedCloud } from './served-cloud.ts'

/** Kind of the key in a request. `bound`: a secret key for one store. `user`: a session of an owner. */
export type KeyKind = CallerKind | 'bound' | 'user'

/** Data and calls that a recipe uses to make a request for one party. */
export interface Scene {
  readonly party: Party
  readonly chance: Chance
  readonly served: ServedCloud
  readonly accounts: TestAccounts
  readonly findings: Findings
  /** Calls an operation that the request needs first. If the status is not 2xx, returns undefined. */
  call(operation: string, body: Json, as?: KeyKind): Promise<Json | undefined>
  /** A short text with the canary of the party. */
  text(): string
  /** A number that no earlier request used. */
  count(): number
}

/** Picks a text from earlier answers to the party: an id by its prefix, another text by its field name. */
export function known({ party, findings, chance }: Scene, name: string): string | undefined {
  const texts = findings.of(party.name, name)
  return texts.length === 0 ? undefined : chance.one(texts)
}

/** A store of the party, usually the first. */
export function storeOf({ party, chance }: Scene): string {
  const [first = '', ...others] = party.storeIds
  return others.length > 0 && chance.happens(0.15) ? chance.one(others) : first
}

/** Time in ISO 8601, `ms` after now. */
export function inTime({ served }: Scene, ms: number): string {
  return new Date(served.platform.clock.wall() + ms).toISOString()
}

/** Calendar day, `days` after today. */
export function day(scene: Scene, days: number): string {
  return inTime(scene, days * 86_400_000).slice(0, 10)
}
