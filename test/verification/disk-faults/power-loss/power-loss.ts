import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { chanceOf, hash32 } from '../../simulation/virtual/chance.ts'
import { agentPromises } from './agent-promises.ts'
import { cloudPromises } from './cloud-promises.ts'
import { crashDisk, LOSSES, writeState, type CrashDisk, type Loss } from './crash-disk.ts'
import type { DiskEvent } from './disk-log.ts'
import type { Promises } from './promises.ts'
import { record } from './record.ts'

export interface PowerLossOptions {
  /** Number of disk states to check, of agent and cloud together. */
  states: number
  seed: number
  /** Number of purchases in the recorded run; by default, 30. */
  purchases?: number
  /** Called with the number of checked states; `total` equals `states`. */
  onProgress?: (done: number, total: number) => void
  signal?: AbortSignal
}

export interface PowerLossResult {
  states: number
  /** Number of points in the recording at which a power cut was simulated. */
  moments: number
  byLoss: Record<Loss, number>
  byPart: Record<string, number>
  /** Number of guarantees of each kind in the recorded run. */
  promises: Record<string, number>
  violations: Violation[]
  recordMs: number
  /** CPU time of the checks. */
  cpuSeconds: number
}

export interface Violation {
  part: string
  /** Index of the last event before the power cut. */
  after: number
  loss: Loss
  broken: string[]
  /** Folder with a copy of the failing disk, for the first failures. */
  kept?: string
}

const PARTS = ['edge', 'cloud'] as const
/**
 * Share of the states that are checked on each disk. The agent's share is larger, because a check of its disk takes
 * less time.
 */
const SHARE = { edge: 0.7, cloud: 0.3 }
const MOST_VIOLATIONS = 50
const MOST_KEPT = 3
const PROGRESS_EVERY = 100

/**
 * Simulates power cuts at every disk change of a recorded run. Builds the disks that a cut can leave, opens them with
 * the real code, and checks the guarantees up to that point. Needs strace to make a recording.
 */
export async function powerLoss({
  states,
  seed,
  purchases,
  onProgress,
  signal,
}: PowerLossOptions): Promise<PowerLossResult> {
  const began = Date.now()
  const { events, deviceAt } = await record(purchases)
  const result: PowerLossResult = {
    states: 0,
    moments: 0,
    byLoss: { none: 0, all: 0, some: 0, torn: 0 },
    byPart: {},
    promises: {},
    violations: [],
    recordMs: Date.now() - began,
    cpuSeconds: 0,
  }
  const onState = async () => {
    if (result.states % PROGRESS_EVERY > 0) return
    onProgress?.(result.states, states)
    // Yields to the event loop so that signals arrive, because the check has no asynchronous work.
    await turn()
    signal?.throwIfAborted()
  }
  const cpu = process.cpuUsage()
  const folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'untag-power-loss-'))
  try {
    for (const part of PARTS) {
      const own = events.filter((event) => belongsTo(event, part, events))
      const last = join(folder, `last-${part}`)
      writeState(endOf(own), last)
      const promises =
        part === 'edge' ? agentPromises(join(last, part), deviceAt) : await cloudPromises(join(last, part))
      await replay({
        part,
        events: own,
        promises,
        states: Math.round(states * SHARE[part]),
        seed,
        folder: join(folder, 'state'),
        result,
        onState,
      })
      for (const [kind, n] of Object.entries(promises.counts)) result.promises[`${part}: ${kind}`] = n
    }
    onProgress?.(result.states, states)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  const used = process.cpuUsage(cpu)
  return { ...result, cpuSeconds: (used.user + used.system) / 1e6 }
}

function endOf(events: readonly DiskEvent[]): ReadonlyMap<string, Buffer | undefined> {
  const disk = crashDisk()
  for (const event of events) disk.apply(event)
  return disk.after('all', chanceOf(0))
}

/** Path by file id at creation. The path shows whether the file belongs to the agent or the cloud. */
const madeIn = new WeakMap<readonly DiskEvent[], Map<number, string>>()

function belongsTo(event: DiskEvent, part: string, events: readonly DiskEvent[]): boolean {
  if (event.kind === 'output') return event.part === (part === 'edge' ? 'agent' : 'cloud')
  let makers = madeIn.get(events)
  if (!makers) {
    makers = new Map(events.flatMap((e) => (e.kind === 'create' ? [[e.file, e.path] as const] : [])))
    madeIn.set(events, makers)
  }
  const path = 'file' in event ? (makers.get(event.file) ?? '') : event.kind === 'rename' ? event.to : event.path
  // A flush of the common parent folder concerns agent and cloud.
  return path === '' || path === part || path.startsWith(`${part}/`)
}

interface Replay {
  part: string
  events: readonly DiskEvent[]
  promises: Promises
  states: number
  seed: number
  folder: string
  result: PowerLossResult
  onState(): Promise<void>
}

async function replay({ part, events, promises, states, seed, folder, result, onState }: Replay): Promise<void> {
  const moments = momentsOf(events)
  const disk = crashDisk()
  let checked = 0
  let next = 0
  for (const [i, event] of events.entries()) {
    if (event.kind === 'output') promises.addOutput(event)
    else disk.apply(event)
    if (moments[next] !== i) continue
    next++
    // Spreads the states evenly over all possible power cuts.
    const wanted = Math.floor((next * states) / moments.length) - checked
    const losses = lossesAt(disk, wanted, hash32(`${seed}/${part}/${i}`))
    for (const [k, loss] of losses.entries()) {
      const chance = chanceOf(hash32(`${seed}/${part}/${i}/${k}`))
      writeState(disk.after(loss, chance), folder)
      const broken = await promises.check(join(folder, part))
      checked++
      result.states++
      result.byLoss[loss]++
      result.byPart[part] = (result.byPart[part] ?? 0) + 1
      if (broken.length > 0 && result.violations.length < MOST_VIOLATIONS)
        result.violations.push({
          part,
          after: i,
          loss,
          broken,
          ...(result.violations.length < MOST_KEPT && { kept: saveBrokenDisk(disk, loss, seed, part, i, k) }),
        })
      await onState()
    }
  }
  result.moments += moments.length
}

/**
 * For each disk change, the index of the last event before the next change. Up to this event the disk stays the same,
 * and the number of guarantees only grows.
 */
function momentsOf(events: readonly DiskEvent[]): number[] {
  const changes = events.flatMap((event, i) => (event.kind === 'output' ? [] : [i]))
  return changes.map((_, n) => (changes[n + 1] ?? events.length) - 1)
}

/**
 * Kinds of loss to simulate for a power cut after this event. If no changes are pending, there is only one possible
 * disk.
 */
function lossesAt(disk: CrashDisk, wanted: number, start: number): Loss[] {
  if (wanted <= 0) return []
  if (!disk.isPending) return ['none']
  return Array.from({ length: wanted }, (_, k) =>
    k < LOSSES.length ? (LOSSES[(start + k) % LOSSES.length] as Loss) : k % 2 === 0 ? 'some' : 'torn',
  )
}

/** Writes the failing disk again, as it was before the check opened it. */
function saveBrokenDisk(disk: CrashDisk, loss: Loss, seed: number, part: string, i: number, k: number): string {
  const kept = mkdtempSync(join(tmpdir(), 'untag-broken-disk-'))
  writeState(disk.after(loss, chanceOf(hash32(`${seed}/${part}/${i}/${k}`))), kept)
  return kept
}
