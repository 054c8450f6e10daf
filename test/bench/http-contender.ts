import type { Program } from './child.ts'
import type { LoadAnswer, LoadQuestion } from './http-load.ts'
import { median, type Contender } from './measure.ts'

/** An HTTP server under test and its load program. */
export interface HttpContenderOptions {
  readonly name: string
  readonly server: Program
  readonly load: Program
  readonly address: Address
  readonly connections: number
  /** Text that every response must contain. */
  readonly expected: string
  /** Request bodies of the next slice. Requests that change data must differ each time. */
  bodies(): readonly string[]
}

export type Address = Pick<LoadQuestion, 'port' | 'path' | 'authorization'>

/** A contender that also records values besides the wall time at the client. */
export interface HttpContender extends Contender {
  /** Medians over the last `rounds` slices. Earlier slices are warm-ups. */
  also(rounds: number): Readonly<Record<string, number>>
}

export function httpContender({
  name,
  server,
  load,
  address,
  connections,
  expected,
  bodies,
}: HttpContenderOptions): HttpContender {
  const cpu: number[] = []
  const answers: LoadAnswer[] = []
  const seen = (rounds: number, of: (answer: LoadAnswer) => number) => median(answers.slice(-rounds).map(of))
  return {
    name,
    async slice() {
      const sent = bodies()
      const before = await server.request<NodeJS.CpuUsage>({ kind: 'cpu' })
      const answer = await load.request<LoadAnswer>({ ...address, bodies: sent, connections, expected })
      const after = await server.request<NodeJS.CpuUsage>({ kind: 'cpu' })
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

/** Runs `work`, then stops all programs that `work` passed to `keep`, in reverse order and also after an error. */
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

/** Additional values of the rows, by the name of the contender. */
export function alsoOf(
  contenders: readonly HttpContender[],
  rounds: number,
): Record<string, Readonly<Record<string, number>>> {
  return Object.fromEntries(contenders.map((contender) => [contender.name, contender.also(rounds)]))
}
