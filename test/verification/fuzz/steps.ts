import type { Operation } from '../../../cloud/platform/operations/operation.ts'
import { OPERATION_TABLE } from '../../../cloud/service/operation-table.ts'
import type { Chance } from '../simulation/virtual/chance.ts'
import type { TestAccounts, Party } from './scene/test-accounts.ts'
import type { KeyKind } from './scene/scene.ts'

/**
 * Kind of request. `good`: valid. `fuzzed`: fields added, changed and removed. `unknown`: one additional field.
 * `foreign`: ids of another party. `raw`: invalid HTTP. `key`: a wrong key. `repeat`: sent twice with one
 * Idempotency-Key.
 * `page`: a web page or a notification of a payment provider.
 */
export type Style = 'good' | 'fuzzed' | 'unknown' | 'foreign' | 'raw' | 'key' | 'repeat' | 'page'

/** The next request and its caller. */
export interface Step {
  readonly style: Style
  readonly operation: Operation | undefined
  readonly isOlderForm: boolean
  readonly as: KeyKind
  readonly party: Party
  /** Seed for the plan of the request. */
  readonly seed: number
  /** Caller, such as `alpha.live, secret key`. */
  readonly who: string
}

const STYLES: readonly [Style, number][] = [
  ['good', 0.12],
  ['fuzzed', 0.41],
  ['unknown', 0.12],
  ['foreign', 0.14],
  ['raw', 0.06],
  ['key', 0.07],
  ['repeat', 0.04],
  ['page', 0.04],
]
/** All operations but those that need an authenticator app, a passkey or an OpenID Connect provider. */
export const FUZZED_OPERATIONS: readonly Operation[] = [...OPERATION_TABLE.values()].filter(
  ({ name }) => !/SecondFactor$|^confirmSignIn$|OpenIdSignIn$|^(?:register|remove|signInWith)Passkey$/.test(name),
)
const KINDS: readonly KeyKind[] = ['secret', 'bound', 'publishable', 'admin', 'agent', 'user', 'anyone']
/** Probability that a step picks an operation that has not succeeded so far. */
const UNTRIED = 0.4
/** Probability that the step then uses a party with the highest package. */
const ABLE = 0.8

/** Picks the next step of a run. */
export function pickStep(chance: Chance, accounts: TestAccounts, succeeded: ReadonlyMap<string, number>): Step {
  const style = pickStyle(chance)
  const seed = chance.between(0, 2 ** 31 - 1)
  const all = FUZZED_OPERATIONS
  const untried = all.filter(({ name }) => !succeeded.has(name))
  const isUntried = untried.length > 0 && chance.happens(UNTRIED)
  const operation = chance.one(isUntried ? untried : all)
  const able = accounts.parties.slice(0, 2)
  const party = chance.one((isUntried || style === 'unknown') && chance.happens(ABLE) ? able : accounts.parties)
  if (style === 'page')
    return { style, operation: undefined, isOlderForm: false, as: 'anyone', party, seed, who: 'anyone' }
  const as = pickKind(chance, operation, party, style)
  const isOlderForm = operation.getOnly || (operation.get !== undefined && chance.happens(0.3))
  const isGood = isUntried && chance.happens(0.5) && style === 'fuzzed'
  const isKey = as !== 'agent' && as !== 'user'
  const who = as === 'admin' || as === 'anyone' ? as : `${party.name}, ${isKey ? `${as} key` : as}`
  return { style: isGood ? 'good' : style, operation, isOlderForm, as, party, seed, who }
}

function pickStyle(chance: Chance): Style {
  let left = chance.next()
  for (const [style, share] of STYLES) if ((left -= share) < 0) return style
  return 'fuzzed'
}

function pickKind(chance: Chance, operation: Operation, { agent, owner }: Party, style: Style): KeyKind {
  const possible = KINDS.filter(
    (kind) => (kind !== 'agent' || agent !== undefined) && (kind !== 'user' || owner !== undefined),
  )
  const may = possible.filter((kind) => mayCall(operation, kind))
  const mayNot = possible.filter((kind) => !mayCall(operation, kind))
  if (style === 'key' && mayNot.length > 0 && chance.happens(0.6)) return chance.one(mayNot)
  if (may.includes('secret') && chance.happens(0.5)) return 'secret'
  return may.length > 0 ? chance.one(may) : 'secret'
}

/** True if callers with this kind of key may call the operation. */
export function mayCall({ callers, roles }: Operation, as: KeyKind): boolean {
  if (as === 'user') return roles.includes('owner')
  return callers.includes(as === 'bound' ? 'secret' : as)
}
