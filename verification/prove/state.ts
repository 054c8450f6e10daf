import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import type { ChunkResult } from './part.ts'

/** Stored results of a part. */
export interface PartState {
  /** Number of tests in a chunk. Another number makes the stored chunks invalid. */
  readonly chunk: number
  /** By the number of the chunk. */
  readonly chunks: Record<string, StoredChunk>
}

export interface StoredChunk extends ChunkResult {
  count: number
  seconds: number
  /** Hash of the code that produced the result; undefined for results from an earlier report. */
  build?: string
  /** The commit of that. */
  commit: string
  /** What it ran on. */
  machine: string
}

/** Chunks together. */
export interface Sum {
  done: number
  /** Of all chunks together, those that ran side by side added up. */
  seconds: number
  violations: string[]
  figures: Record<string, number>
  rows: Readonly<Record<string, string | number>>[]
  /** How much of it was done on which commit. */
  commits: Record<string, number>
}

/** Adds up the results of the chunks in order. */
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

/** What the file holds; undefined when there is none that can be read. */
export function readState(file: string): PartState | undefined {
  try {
    return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as PartState) : undefined
  } catch {
    return undefined
  }
}

/** There whole or not at all, whenever this process is stopped. */
export function writeJson(file: string, value: unknown): void {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(`${file}.new`, `${JSON.stringify(value, null, 2)}\n`)
  renameSync(`${file}.new`, file)
}
