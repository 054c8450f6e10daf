import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Found } from './part.ts'

/** What is known of a part so far, in a file of its own. */
export interface PartState {
  /** How many in a chunk; with another number the chunks are others. */
  readonly chunk: number
  /** By the number of the chunk. */
  readonly chunks: Record<string, FoundIn>
}

export interface FoundIn extends Found {
  count: number
  seconds: number
  /** The code that it was found in, and its commit. */
  build: string
  commit: string
}

/** What the file holds, when it is cut in the same way; otherwise nothing is known yet. */
export function readState(file: string, chunk: number): PartState {
  const nothing = { chunk, chunks: {} }
  if (!existsSync(file)) return nothing
  try {
    const state = JSON.parse(readFileSync(file, 'utf8')) as PartState
    return state.chunk === chunk ? state : nothing
  } catch {
    return nothing
  }
}

/** There whole or not at all, whenever this process is stopped. */
export function writeJson(file: string, value: unknown): void {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(`${file}.new`, `${JSON.stringify(value, null, 2)}\n`)
  renameSync(`${file}.new`, file)
}
