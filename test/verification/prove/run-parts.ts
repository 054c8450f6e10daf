import { join } from 'node:path'
import type { Clock } from '../../../policy/platform.ts'
import type { ProofPart, Size } from './part.ts'
import { readState, sumOf, writeJson, type StoredChunk, type PartState } from './state.ts'

/** Result of a part. */
export interface PartResult extends PartState {
  name: string
  title: string
  unit: string
  of: number
  /** Reason why the part did not run. */
  skipped?: string
}

/** Location and identity of the stored state. */
export interface ProofContext {
  size: Size
  folder: string
  /** Hash of the running code. Results of other builds are ignored, unless `reusesEarlierCode` is set. */
  build: string
  /** Commit of the running code. */
  commit: string
  /** Description of this machine. */
  machine: string
  /** Reuses results of earlier code if they are complete and have no violations. Repeats all other chunks. */
  reusesEarlierCode: boolean
  /** Results of earlier runs, on this or another machine. They are used only with `reusesEarlierCode`. */
  earlierResults: readonly (PartResult & { size: Size })[]
}

export interface RunOptions extends ProofContext {
  parts: readonly ProofPart[]
  /** True if the code on disk still has the hash `build`. A build during the run may change that code. */
  isBuildUnchanged(): boolean
  /** Number of parallel chunks. */
  jobs: number
  clock: Pick<Clock, 'elapsed'>
  signal: AbortSignal
  progress: Progress
}

export interface Progress {
  /** `done` includes results of earlier runs; `perSecond` is the rate of this run. */
  show(line: {
    part: ProofPart
    done: number
    of: number
    violations: number
    perSecond: number
    at?: string | undefined
  }): void
  end(proven: PartResult): void
}

/**
 * Runs the parts in order, and continues parts that were stopped. If the signal aborts, rejects, but the results of
 * finished chunks stay stored.
 */
export async function runParts(options: RunOptions): Promise<PartResult[]> {
  const all: PartResult[] = []
  for (const part of options.parts) {
    if (part.whyImpossible?.() === undefined) await runPart(part, options)
    const proven = loadResult(part, options)
    options.progress.end(proven)
    all.push(proven)
  }
  return all
}

/**
 * Loads the valid results of a part, from this run and earlier ones. If there are no valid results, returns a result
 * without chunks.
 */
export function loadResult(part: ProofPart, place: ProofContext): PartResult {
  const skipped = part.whyImpossible?.()
  const { name, title, unit } = part
  return {
    name,
    title,
    unit,
    of: part.of[place.size],
    ...(skipped !== undefined && { skipped }),
    ...stateOf(part, place),
  }
}

/** File with the state of a part. */
export function stateFile(part: ProofPart, { folder, size }: Pick<ProofContext, 'folder' | 'size'>): string {
  return join(folder, `${size}-${part.name}.json`)
}

function stateOf(part: ProofPart, place: ProofContext): PartState {
  const chunk = part.chunk[place.size]
  const isCounted = (n: number, found: StoredChunk) => {
    const isWhole =
      found.count === Math.min(chunk, part.of[place.size] - n * chunk) &&
      part.isSameList?.(found, { from: n * chunk }) !== false
    return found.build === place.build || (place.reusesEarlierCode && found.violations.length === 0 && isWhole)
  }
  const counted = (state: PartState | undefined) =>
    Object.entries(state?.chunk === chunk ? state.chunks : {}).filter(([n, found]) => isCounted(Number(n), found))
  const kept = place.earlierResults.find(({ name, size }) => name === part.name && size === place.size)
  return { chunk, chunks: Object.fromEntries([...counted(kept), ...counted(readState(stateFile(part, place)))]) }
}

async function runPart(part: ProofPart, options: RunOptions): Promise<void> {
  const { size, jobs, clock, signal, progress } = options
  const chunk = part.chunk[size]
  const state = stateOf(part, options)
  const waiting = Array.from({ length: Math.ceil(part.of[size] / chunk) }, (_, n) => n).filter((n) => !state.chunks[n])
  const before = sumOf(state).done
  const began = clock.elapsed()
  const running = new Map<number, number>()
  const show = (at?: string) => {
    const { done, violations } = sumOf(state)
    const now = [...running.values()].reduce((sum, n) => sum + n, done)
    progress.show({
      part,
      at,
      done: now,
      of: part.of[size],
      violations: violations.length,
      perSecond: ((now - before) * 1_000) / Math.max(1, clock.elapsed() - began),
    })
  }
  const worker = async () => {
    for (let n = waiting.shift(); n !== undefined; n = waiting.shift()) {
      signal.throwIfAborted()
      const count = Math.min(chunk, part.of[size] - n * chunk)
      const started = clock.elapsed()
      const number = n
      const found = await part.run({
        from: n * chunk,
        count,
        size,
        signal,
        onProgress(done, at) {
          running.set(number, done)
          show(at)
        },
      })
      running.delete(n)
      if (!options.isBuildUnchanged()) throw new Error('the project was rebuilt during the run: start the run again')
      state.chunks[n] = {
        ...found,
        count,
        seconds: (clock.elapsed() - started) / 1_000,
        build: options.build,
        commit: options.commit,
        machine: options.machine,
      }
      writeJson(stateFile(part, options), state)
      show()
    }
  }
  // Waits for all running chunks. If a chunk failed with an error, throws this error. A violation is a result, not an
  // error.
  const ends = await Promise.allSettled(
    Array.from({ length: part.concurrency === 'by side' ? Math.max(1, Math.min(jobs, waiting.length)) : 1 }, worker),
  )
  const failed = ends.find((end) => end.status === 'rejected')
  if (failed) throw failed.reason
}
