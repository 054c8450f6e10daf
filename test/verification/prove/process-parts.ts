import { runHistories } from '../histories/run.ts'
import { runKills } from '../kills/kills.ts'
import type { ProofPart } from './part.ts'
import { whyNoPostgres } from '../kills/postgres-server.ts'
import { CUT_CALLS, whySweepCannotRun, sweepRedeem } from '../kills/redeem-sweep.ts'

/** Parts that run real processes. */

/** Sends SIGKILL to agent, cloud or both at every step of a release. */
export const kills = (root: string): ProofPart => ({
  name: 'kills',
  title: 'SIGKILL of agent, cloud or both at every step of a release',
  unit: 'kills',
  of: { ci: 100, night: 5_000 },
  chunk: { ci: 50, night: 250 },
  concurrency: 'by side',
  async run({ from, count, signal, onProgress }) {
    const { violations } = await runKills({ root, from, kills: count, database: 'sqlite', signal, onKill: onProgress })
    return { violations }
  },
})

/** Kills processes while the cloud stores its data in PostgreSQL. Also kills the PostgreSQL server. */
export const killsOnPostgres = (root: string): ProofPart => ({
  name: 'kills-postgres',
  title: 'SIGKILL of agent and cloud, and crashes of PostgreSQL, at every step of a release',
  unit: 'kills',
  of: { ci: 100, night: 5_000 },
  chunk: { ci: 50, night: 250 },
  concurrency: 'by side',
  whyImpossible: whyNoPostgres,
  async run({ from, count, signal, onProgress }) {
    const { violations } = await runKills({
      root,
      from,
      kills: count,
      database: 'postgres',
      signal,
      onKill: onProgress,
    })
    return { violations }
  },
})

const HISTORY_SECONDS = 60

/** Checks what clients of four clouds on one PostgreSQL database saw, while processes and the server crash. */
export const histories = (root: string): ProofPart => ({
  name: 'histories',
  title: `${HISTORY_SECONDS} s of random load on four clouds with one PostgreSQL database, with kills and restarts`,
  unit: 'runs',
  of: { ci: 2, night: 60 },
  chunk: { ci: 1, night: 1 },
  concurrency: 'alone',
  whyImpossible: whyNoPostgres,
  async run({ from, signal, onProgress }) {
    const load = { root, seconds: HISTORY_SECONDS, processes: 4, seed: from, faultEvery: 7, signal }
    const { violations, objects, faults, undecided } = await runHistories(load)
    onProgress(1)
    return {
      violations: violations.map((text) => `seed ${from}: ${text}`),
      figures: { objects, faults, undecided },
    }
  },
})

const SWEEP_UP_TO = 40

/** Kills the agent at each system call of a release. */
export const redeem = (root: string): ProofPart => ({
  name: 'redeem',
  title: `A release during which SIGKILL ends the agent at its n-th system call, n ≤ ${SWEEP_UP_TO}, online and offline`,
  unit: 'kinds of call',
  of: { ci: CUT_CALLS.length, night: CUT_CALLS.length },
  chunk: { ci: 1, night: 1 },
  concurrency: 'by side',
  whyImpossible: whySweepCannotRun,
  async run({ from, signal, onProgress }) {
    const call = CUT_CALLS[from] ?? ''
    const { cuts, violations } = await sweepRedeem({
      root,
      call,
      upTo: SWEEP_UP_TO,
      signal,
      onCut: (cuts) => onProgress(0, `${call}, ${cuts} cuts`),
    })
    onProgress(1)
    return { violations, figures: { cuts }, rows: [{ call, cuts }] }
  },
})
