import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import type { ChunkResult } from './part.ts'

/** Stored results of a part. */
export interface PartState {
  /** Tests per chunk. If this number changes, the stored chunks are invalid. */
  readonly chunk: number
  /** Results by chunk number. */
  readonly chunks: Record<string, StoredChunk>
}

export interface StoredChunk extends ChunkResult {
  count: number
  seconds: number
  /** Hash of the code that produced the result; undefined in results from test/verification/results.json. */
  build?: string
  /** Commit of that code. */
  commit: string
  /** Description of the machine. */
  machine: string
}

/** Totals over all chunks. */
export interface Sum {
  done: number
  /** Sum of the durations of all chunks, s. The durations of parallel chunks are added up. */
  seconds: number
  violations: string[]
  figures: Record<string, number>
  rows: Readonly<Record<string, string | number>>[]
  /** Number of tests by commit. */
  commits: Record<string, number>
}

/** Adds up the chunks in order of their numbers. */
export function sumOf({ chunks }: PartState): Sum {
  const inOrder = Object.entries(chunks)
    .sort(([a], [b]) => Number(a) - Number(b))
    .map(([, found]) => found)
  const add = (to: Record<string, number>, name: string, value: number) => void (to[name] = (to[name] ?? 0) + value)
  const figures: Record<string, number> = {}
  const commits: Record<string, number> = {}
  for (const found of inOrder) {
    add(commits, found.commit, found.count)
    for (const [name, value] of Object.entries(found.figures ?? {})) add(figures, name, value)
  }
  return {
    done: inOrder.reduce((sum, { count }) => sum + count, 0),
    seconds: Math.round(inOrder.reduce((sum, { seconds }) => sum + seconds, 0)),
    violations: inOrder.flatMap((found) => found.violations),
    figures,
    rows: inOrder.flatMap((found) => found.rows ?? []),
    commits,
  }
}

/** Reads a stored state. Returns undefined if the file is missing or unreadable. */
export function readState(file: string): PartState | undefined {
  try {
    return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as PartState) : undefined
  } catch {
    return undefined
  }
}

/** Writes a new file and renames it, so that a stop never leaves a partial file. */
export function writeJson(file: string, value: unknown): void {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(`${file}.new`, `${JSON.stringify(value, null, 2)}\n`)
  renameSync(`${file}.new`, file)
}
