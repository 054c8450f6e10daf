import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { tryTool } from '../tools.ts'
import { pause } from '../../../policy/platform.ts'
import { seededRandom } from '../simulation/virtual/virtual-platform.ts'
import { realPlatform } from '../../../host/platform.ts'
import { killLoop, type KillLoop } from './kill-loop.ts'
import { runAndAudit, withStore } from './kills.ts'
import type { RunningProcess } from './processes.ts'
import { eventually, type StoreProcesses } from './store-processes.ts'

/**
 * System calls at which the sweep kills the agent during a release. For each kind, the sweep kills at the first call,
 * in the next release at the second call, and so on. After a restart the agent gets the request a second time. No kill
 * may cause a second release, and no kill may lose an event.
 */
export const CUT_CALLS = ['pwrite64', 'fsync', 'write', 'writev', 'read', 'epoll_pwait'] as const

export interface SweepResult {
  /** Number of killed releases. */
  cuts: number
  violations: string[]
}

export interface SweepOptions {
  root: string
  /** One of `CUT_CALLS`. */
  call: string
  /**
   * Kills at the first call, then at the second, and so on up to this number. Ends earlier if a release makes fewer
   * calls.
   */
  upTo: number
  signal: AbortSignal
  onCut(n: number): void
}

/**
 * Time after the answer in which a killed agent ends, ms. If the agent still runs after this time, the release made
 * fewer calls.
 */
const DIES_WITHIN_MS = 400

/** Returns why the sweep cannot run here, or undefined if it can. */
export function whySweepCannotRun(): string | undefined {
  const options = ['-f', '-e', 'inject=fsync:signal=SIGCONT:when=1', '-o', '/dev/null', 'true']
  const tried = tryTool('strace', ...options)
  if (tried.error) return 'strace is not installed'
  return tried.status === 0 ? undefined : `strace does not work here: ${tried.stderr?.trim().split('\n')[0]}`
}

/**
 * Kills releases at each call of one kind, first online, then offline. Every second release uses a token instead of a
 * receipt.
 */
export function sweepRedeem({ root, call, upTo, signal, onCut }: SweepOptions): Promise<SweepResult> {
  return withStore(root, {}, async (store, board) => {
    const loop = killLoop({ store, board, platform: realPlatform(), random: seededRandom(1) })
    let cuts = 0
    const violations = await runAndAudit(store, loop, signal, async (all) => {
      for (const offline of [false, true]) {
        for (let n = 1; n <= upTo; n++) {
          signal.throwIfAborted()
          const { wrong, isCut } = await cutAt({ store, loop, call, n, offline })
          all.push(...wrong)
          if (!isCut) break
          cuts++
          onCut(n)
        }
      }
    })
    return { cuts, violations }
  })
}

interface Cut {
  store: StoreProcesses
  loop: KillLoop
  call: string
  n: number
  offline: boolean
}

async function cutAt({ store, loop, call, n, offline }: Cut): Promise<{ wrong: string[]; isCut: boolean }> {
  let isCut = false
  let tracer: { detach(): Promise<void> } | undefined
  const wrong = await loop.release({
    name: `cut at ${call} ${n}${offline ? ', offline' : ''}`,
    withToken: n % 2 === 0,
    offline,
    async prepare() {
      if (offline) {
        store.wire.cut()
        await eventually('offline', async () => (await store.status())['online'] === false, 60_000)
      }
      tracer = await killAt(store.agent, call, n)
    },
    async interrupt(answered) {
      const { agent } = store
      const { timers } = realPlatform()
      const ended = agent.ended().then(() => void (isCut = true))
      await Promise.race([ended, answered.then(() => pause(timers, DIES_WITHIN_MS))])
      await tracer?.detach()
      if (agent.child.exitCode !== null || agent.child.signalCode !== null) isCut = true
      if (isCut) await loop.restartAgent()
    },
  })
  return { wrong, isCut }
}

/** Attaches strace. From then on, the n-th call of this kind in any thread kills the process. */
async function killAt({ child }: RunningProcess, call: string, n: number): Promise<{ detach(): Promise<void> }> {
  const args = [
    '-f',
    '-p',
    String(child.pid),
    '-e',
    `trace=${call}`,
    '-e',
    `inject=${call}:signal=SIGKILL:when=${n}`,
    '-o',
    '/dev/null',
  ]
  const tracer = spawn('strace', args, { stdio: ['ignore', 'ignore', 'pipe'] })
  const gone = once(tracer, 'exit')
  let output = ''
  await new Promise<void>((resolve, reject) => {
    tracer.stderr.on('data', (chunk: Buffer) => {
      output += chunk.toString()
      if (output.includes('attached')) resolve()
    })
    tracer.once('error', reject)
    // The process may have ended before strace attached.
    void gone.then(() =>
      output.includes('attached') || child.signalCode !== null ? resolve() : reject(new Error(`strace: ${output}`)),
    )
  })
  return {
    async detach() {
      if (tracer.exitCode === null && tracer.signalCode === null) tracer.kill('SIGINT')
      await gone
    },
  }
}
