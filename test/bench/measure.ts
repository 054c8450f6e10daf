import type { Randomness } from '../../policy/platform.ts'
import { randomFraction } from '../../policy/platform.ts'

/**
 * The contenders of a ratio must be measured under the same conditions. Every round therefore runs one slice of each
 * contender, in random order. The ratio is computed within each round; the result is the median over all rounds.
 */
export interface Contender {
  readonly name: string
  /** Runs one slice. Returns the cost per operation, µs. */
  slice(): Promise<number> | number
}

/** Cost per operation, µs: one number per round, by the name of the contender. */
export type Samples = ReadonlyMap<string, readonly number[]>

/** Runs `warmUps` unmeasured rounds, then `rounds` measured ones. */
export async function takeTurns(
  contenders: readonly Contender[],
  rounds: number,
  random: Randomness,
  warmUps = 1,
): Promise<Samples> {
  const samples = new Map<string, number[]>(contenders.map(({ name }) => [name, []]))
  for (let round = -warmUps; round < rounds; round++) {
    for (const contender of shuffled(contenders, random)) {
      const cost = await contender.slice()
      if (round >= 0) samples.get(contender.name)?.push(cost)
    }
  }
  return samples
}

function shuffled<T>(list: readonly T[], random: Randomness): T[] {
  return list
    .map((value) => ({ value, order: randomFraction(random) }))
    .sort((a, b) => a.order - b.order)
    .map(({ value }) => value)
}

/** The value at `share` (0 to 1) of the sorted values; 0.5 is the median. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  const at = (sorted.length - 1) * share
  const [low, high] = [sorted[Math.floor(at)] ?? Number.NaN, sorted[Math.ceil(at)] ?? Number.NaN]
  return low + (high - low) * (at - Math.floor(at))
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5)
}

export function samplesOf(samples: Samples, name: string): readonly number[] {
  const values = samples.get(name)
  if (!values) throw new Error(`nothing was measured under the name ${name}`)
  return values
}

/** Ratio of the cost of one contender to that of another, for each round. */
export function ratios(samples: Samples, name: string, to: string): number[] {
  const against = samplesOf(samples, to)
  return samplesOf(samples, name).map((cost, round) => cost / (against[round] ?? Number.NaN))
}

const elapsed = () => Number(process.hrtime.bigint()) / 1_000

/** Wall time of `work` per operation, µs. */
export async function wallTime(operations: number, work: () => Promise<void> | void): Promise<number> {
  const from = elapsed()
  await work()
  return (elapsed() - from) / operations
}

/** CPU time of all threads of this process during `work`, per operation, µs. */
export async function cpuTime(operations: number, work: () => Promise<void> | void): Promise<number> {
  const from = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(from)
  return (user + system) / operations
}
