import { spawn } from 'node:child_process'
import { cpus } from 'node:os'
import { fileURLToPath } from 'node:url'
import { BUGS, type Bug } from '../simulators/world/bug-bank.ts'

export interface Found {
  bug: string
  what: string
  /** How many worlds it took; undefined when it was not found. */
  worlds: number | undefined
  invariant: string
  detail: string
}

interface Campaign {
  seeds: number
  failed: { violations: { invariant: string; detail: string }[] }[]
  unlike: number[]
}

const NODE = ['--max-semi-space-size=64', '--import', new URL('plant-bug.js', import.meta.url).href, fileURLToPath(new URL('sim.js', import.meta.url))]
const STDERR_KEPT = 2_000

/** Plants each bug in a process of its own and simulates until it is found. False when one was not. */
export async function huntBugs({ seeds, only, json }: { seeds: number; only: string | undefined; json: boolean }): Promise<boolean> {
  const wanted = BUGS.filter((bug) => only === undefined || only.split(',').includes(bug.name))
  if (wanted.length === 0) throw new Error(`there is no bug ${only}; the bank has ${BUGS.map((b) => b.name).join(', ')}`)
  const waiting = [...wanted]
  const found: Found[] = []
  const hunter = async () => {
    for (let bug = waiting.shift(); bug; bug = waiting.shift()) {
      const result = await hunt(bug, seeds)
      found.push(result)
      if (!json) process.stdout.write(`${line(result)}\n`)
    }
  }
  await Promise.all(Array.from({ length: Math.min(cpus().length, wanted.length) }, hunter))
  const caught = found.filter((f) => f.worlds !== undefined).length
  if (json) process.stdout.write(`${JSON.stringify({ bugs: found })}\n`)
  else process.stdout.write(`${caught} of ${found.length} bugs were found\n`)
  return caught === found.length
}

function line({ bug, worlds, invariant, detail }: Found): string {
  return `${bug.padEnd(32)} ${worlds === undefined ? 'NOT FOUND' : `${String(worlds).padStart(4)} worlds  ${invariant.padEnd(8)} ${(detail.split('\n')[0] ?? '').slice(0, 100)}`}`
}

function hunt(bug: Bug, seeds: number): Promise<Found> {
  const args = [...NODE, '--seeds', String(seeds), '--until-first', '--json', ...(bug.liveness ? ['--liveness'] : [])]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, UNTAG_SIM_BUG: bug.name } })
  let out = ''
  let err = ''
  child.stdout.on('data', (chunk: Buffer) => void (out += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => void (err = (err + chunk.toString()).slice(-STDERR_KEPT)))
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', () => {
      if (out === '') return reject(new Error(`the world with ${bug.name} ended without a word:\n${err}`))
      const { seeds: worlds, failed, unlike } = JSON.parse(out) as Campaign
      const violation = failed[0]?.violations[0]
      const isFound = violation !== undefined || unlike.length > 0
      resolve({ bug: bug.name, what: bug.what, worlds: isFound ? worlds : undefined, invariant: violation?.invariant ?? '', detail: violation?.detail ?? '' })
    })
  })
}
