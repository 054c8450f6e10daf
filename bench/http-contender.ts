import type { Program } from './child.ts'
import type { LoadAnswer, LoadQuestion } from './http-load.ts'
import { median, type Contender } from './measure.ts'

/** An HTTP server under test and its load program. */
export interface Asked {
  readonly name: string
  readonly server: Program
  readonly load: Program
  readonly address: Address
  readonly connections: number
  /** What every answer must hold. */
  readonly expected: string
  /** The bodies of the next slice; a request that changes something must be a new one each time. */
  bodies(): readonly string[]
}

export type Address = Pick<LoadQuestion, 'port' | 'path' | 'authorization'>

/** A contender that notes what else there is to see than the wall time at the client. */
export interface HttpContender extends Contender {
  /** Medians over its last `rounds` slices: the ones before warmed up. */
  also(rounds: number): Readonly<Record<string, number>>
}

export function httpContender({ name, server, load, address, connections, expected, bodies }: Asked): HttpContender {
  const cpu: number[] = []
  const answers: LoadAnswer[] = []
  const seen = (rounds: number, of: (answer: LoadAnswer) => number) => median(answers.slice(-rounds).map(of))
  return {
    name,
    async slice() {
      const sent = bodies()
      const before = await server.ask<NodeJS.CpuUsage>({ kind: 'cpu' })
      const answer = await load.ask<LoadAnswer>({ ...address, bodies: sent, connections, expected })
      const after = await server.ask<NodeJS.CpuUsage>({ kind: 'cpu' })
      cpu.push((after.user + after.system - before.user - before.system) / sent.length)
      answers.push(answer)
      return answer.microseconds / sent.length
    },
    also: (rounds) => ({
      'server CPU µs': median(cpu.slice(-rounds)),
      'p50 ms': seen(rounds, (a) => a.p50Ms),
      'p99 ms': seen(rounds, (a) => a.p99Ms),
      bytes: seen(rounds, (a) => a.bytes),
    }),
  }
}

/** Programs that are stopped together, the last one first, however the figure ends. */
export async function withPrograms<T>(
  work: (keep: (program: Promise<Program>) => Promise<Program>) => Promise<T>,
): Promise<T> {
  const programs: Program[] = []
  const keep = async (starting: Promise<Program>) => {
    const program = await starting
    programs.push(program)
    return program
  }
  try {
    return await work(keep)
  } finally {
    for (const program of programs.toReversed()) await program.stop()
  }
}

/** What the rows show beside their cost, by the contender's name. */
export function alsoOf(
  contenders: readonly HttpContender[],
  rounds: number,
): Record<string, Readonly<Record<string, number>>> {
  return Object.fromEntries(contenders.map((contender) => [contender.name, contender.also(rounds)]))
}
