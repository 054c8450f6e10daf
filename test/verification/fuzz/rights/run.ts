import type { Database } from '../../../../cloud/platform/persistence/database.ts'
import { chanceOf, hash32 } from '../../simulation/virtual/chance.ts'
import type { TestAccounts } from '../scene/test-accounts.ts'
import { DOINGS, PLATFORM_DOINGS } from './facts.ts'
import { RIGHTS_STEPS } from './steps.ts'
import { Violation, World, type RightsRule } from './world.ts'

/** A fault, and the shortest known list of steps that shows it. */
export interface RightsFailure {
  readonly rule: RightsRule
  readonly detail: string
  readonly seed: number
  /** Number of the step that showed it. */
  readonly step: number
  readonly steps: readonly string[]
}

export interface RightsRun {
  readonly steps: number
  /** Hash of what all steps did. Equal hashes mean equal runs. */
  readonly hash: number
  readonly failure: RightsFailure | undefined
  readonly reached: ReadonlyMap<string, number>
}

/** What a few thousand steps must reach: otherwise they find nothing. */
export const WANTED: readonly string[] = [
  'refused',
  'late user',
  'late secret',
  'late publishable',
  'late agent',
  'syncPOS done',
  'form done',
  'change on a stream',
  'sign-in',
  'sign-in with a code',
  'sign-in at the provider',
  'factor added',
  'password changed',
  'link used',
  'subscription',
  'notice of an order',
  'late platform',
  'platform refused',
  'platform operation refused to a merchant',
  ...DOINGS.map(({ operation }) => `${operation} done`),
  ...PLATFORM_DOINGS.map(({ operation }) => `platform ${operation} done`),
]

interface Planned {
  readonly kind: string
  readonly number: number
}

type Outcome = Omit<RightsRun, 'failure'> & {
  readonly fault: { rule: RightsRule; detail: string } | undefined
  readonly did: readonly string[]
}

/**
 * Draws steps and does them, each with its own seed. After a fault, searches for the fewest steps that show it, in at most
 * `shrinks` runs.
 */
export async function runRights(
  accounts: TestAccounts,
  open: () => Promise<Database>,
  { seed, steps, shrinks }: { seed: number; steps: number; shrinks: number },
): Promise<RightsRun> {
  const plan = planOf(seed, steps)
  const whole = await carryOut(accounts, await open(), seed, plan)
  if (!whole.fault) return { ...whole, failure: undefined }
  const { rule } = whole.fault
  let shortest = plan.slice(0, whole.steps)
  let shown = whole
  let tries = 0
  for (
    let size = Math.ceil(shortest.length / 2);
    size >= 1 && tries < shrinks;
    size = size === 1 ? 0 : Math.ceil(size / 2)
  )
    for (let at = shortest.length - 1 - size; at >= 0 && tries < shrinks; at -= size) {
      const fewer = [...shortest.slice(0, at), ...shortest.slice(at + size)]
      tries++
      const outcome = await carryOut(accounts, await open(), seed, fewer)
      if (outcome.fault?.rule !== rule) continue
      shortest = fewer.slice(0, outcome.steps)
      shown = outcome
      at = Math.min(at, shortest.length)
    }
  const failure = { ...whole.fault, seed, step: whole.steps, steps: [...shown.did, shown.fault?.detail ?? ''] }
  return { ...whole, failure }
}

function planOf(seed: number, steps: number): Planned[] {
  const chance = chanceOf(seed).fork('plan')
  const kinds = Object.entries(RIGHTS_STEPS).flatMap(([kind, [weight]]) => Array<string>(weight).fill(kind))
  return Array.from({ length: steps }, (_, number) => ({ kind: chance.one(kinds), number }))
}

async function carryOut(
  accounts: TestAccounts,
  database: Database,
  seed: number,
  plan: readonly Planned[],
): Promise<Outcome> {
  const world = new World(accounts.adminKey)
  const did: string[] = []
  let fault: Outcome['fault']
  let hash = 0
  try {
    await world.open(accounts, database, seed)
    for (const { kind, number } of plan) {
      const [, step] = RIGHTS_STEPS[kind] ?? []
      const chance = chanceOf(seed).fork(`step ${number}`)
      let line = `${number} ${kind}`
      try {
        line = `${line}: ${(await step?.(world, chance, `m${number}z`)) ?? ''}`
      } finally {
        did.push(line)
      }
      await world.checkStreams()
      hash = hash32(did.at(-1) ?? '', hash)
    }
  } catch (error) {
    if (!(error instanceof Violation)) throw error
    fault = { rule: error.rule, detail: error.message }
  } finally {
    await world.stop()
  }
  return { steps: did.length, hash, fault, did, reached: world.reached }
}
