import { randomFraction } from '../../policy/platform.ts'
import type { Randomness } from '../../policy/platform.ts'
import type { CommandResult } from '../../device-drivers/kit/device.ts'
import type { Fault } from '../../simulators/devices/faults.ts'
import { seededRandom } from '../verification/simulation/virtual/virtual-platform.ts'

/** Faults that a kind of device supports. */
export interface RandomFaultOptions {
  /** Returns the exception code of a refusal. */
  code(below: (n: number) => number): number
  readonly mostDelayMs: number
  readonly mostNoiseBytes: number
  /** Groups of requests that one fault affects; undefined means all requests. */
  readonly functions: readonly (readonly number[] | undefined)[]
  readonly mostTimes: number
}

export interface RandomFaults {
  readonly random: Randomness
  /** A random integer from 0 to n - 1. */
  below(n: number): number
  pick<T>(list: readonly T[]): T
  fault(): Fault
}

/** Makes random faults; equal seeds give equal faults. */
export function randomFaults(
  seed: number,
  { code, mostDelayMs, mostNoiseBytes, functions, mostTimes }: RandomFaultOptions,
): RandomFaults {
  const random = seededRandom(seed)
  const below = (n: number) => Math.floor(randomFraction(random) * n)
  const pick = <T>(list: readonly T[]): T => list[below(list.length)] as T
  const fault = (): Fault => {
    const kinds: Fault[] = [
      { kind: 'mute' },
      { kind: 'dead' },
      { kind: 'garble' },
      { kind: 'cut-before-answer' },
      { kind: 'cut-after-answer' },
      { kind: 'exception', code: code(below) },
      { kind: 'delay', ms: below(mostDelayMs) },
      { kind: 'noise', bytes: random.bytes(1 + below(mostNoiseBytes)) },
    ]
    const those = pick(functions)
    return { ...pick(kinds), ...(those ? { functions: those } : {}), after: below(2), times: 1 + below(mostTimes) }
  }
  return { random, below, pick, fault }
}

/** Result of one release, and the number of ON commands that it caused. */
export interface ShiftRelease {
  readonly ons: number
  readonly commandResult: CommandResult
}

/** Key under which the test counts a result, such as `unknown answer_lost`. */
export const kindOf = ({ outcome, detail }: CommandResult): string => `${outcome} ${detail.split(':')[0]}`
