import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { FUZZ_MUTANTS, type FuzzMutant } from '../fuzz/fuzz-mutants.ts'
import { RIGHTS_MUTANTS, type RightsMutant } from '../fuzz/rights/rights-mutants.ts'

const MUTANTS: readonly (FuzzMutant | RightsMutant)[] = [...FUZZ_MUTANTS, ...RIGHTS_MUTANTS]

export interface FuzzMutantOptions {
  /** Maximum number of requests per mutant. */
  readonly requests: number
  /** Names of mutants, separated by commas. Default: all mutants. */
  readonly only: string | undefined
  /** Number of parallel mutants. */
  readonly jobs: number
}

/**
 * Loads each mutant in a separate process and sends requests until a rule fails. Resolves to true if every mutant is
 * found by one of its expected rules.
 */
export async function runFuzzMutants({ requests, only, jobs }: FuzzMutantOptions): Promise<boolean> {
  const names = only?.split(',')
  const wanted = MUTANTS.filter((bug) => names?.includes(bug.name) ?? true)
  const unknown = names?.filter((name) => !MUTANTS.some((bug) => bug.name === name)) ?? []
  if (unknown.length > 0)
    throw new Error(`unknown mutant ${unknown.join()}; the mutants are ${MUTANTS.map((bug) => bug.name).join(', ')}`)
  const waiting = [...wanted]
  let found = 0

  async function hunter(): Promise<void> {
    for (let bug = waiting.shift(); bug; bug = waiting.shift()) {
      const { isFound, line } = await hunt(bug, requests)
      if (isFound) found++
      process.stdout.write(`${bug.name.padEnd(30)} ${line}\n`)
    }
  }

  await Promise.all(Array.from({ length: Math.min(jobs, wanted.length) }, hunter))
  process.stdout.write(`${found} of ${wanted.length} mutants were found\n`)
  return found === wanted.length
}

async function hunt(bug: (typeof MUTANTS)[number], requests: number): Promise<{ isFound: boolean; line: string }> {
  const program = fileURLToPath(new URL('../fuzz.js', import.meta.url))
  const planter = new URL('../load-mutant.js', import.meta.url).href
  const options = 'isAboutRights' in bug ? ['--rights', '--as-found'] : []
  const child = spawn(
    process.execPath,
    ['--import', planter, program, '--requests', String(requests), '--until-first', ...options],
    { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, UNTAG_SIM_BUG: bug.name } },
  )
  let out = ''
  let err = ''
  child.stdout.on('data', (chunk: Buffer) => void (out += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => void (err += chunk.toString()))
  const [code] = (await once(child, 'close')) as [number | null]
  // The mutant does not fit the code, or the process crashed. In both cases the mutant does not count as found.
  if (code !== 0 && code !== 1) return { isFound: false, line: `ended with ${code}: ${err.trim()}` }
  const [first = ''] = out.split('\n')
  const [, seed, after] = /--seed (\d+) --requests (\d+)$/m.exec(out) ?? []
  if (seed === undefined || after === undefined) return { isFound: false, line: `NOT FOUND in ${requests} requests` }
  return {
    isFound: bug.rules.some((rule: string) => first.startsWith(`${rule}: `)),
    line: `seed ${seed}, ${after.padStart(4)} requests  ${first}`,
  }
}
