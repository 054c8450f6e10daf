/** How much is proven: `ci` in minutes, `night` in hours. */
export const SIZES = ['ci', 'night'] as const
export type Size = (typeof SIZES)[number]

/** What one chunk of a part found. */
export interface ChunkResult {
  /** Violations, each with its seed or number for a repeated run. */
  violations: readonly string[]
  /** Sums over all chunks, by name: worlds, hours, kills. */
  figures?: Readonly<Record<string, number>>
  /** Rows of the report, such as the bugs that were planted. */
  rows?: readonly Readonly<Record<string, string | number>>[]
}

export interface Chunk {
  /** The first of them, from 0. */
  from: number
  count: number
  size: Size
  signal: AbortSignal
  /** How many of the chunk are done, and where it is, when one of them takes long. */
  onProgress(done: number, at?: string): void
}

/**
 * One kind of test in independent chunks. The runner stores the result of each chunk, so a stopped run continues with
 * the next.
 */
export interface ProofPart {
  readonly name: string
  /** In the report. */
  readonly title: string
  /** What is counted: worlds, kills. */
  readonly unit: string
  readonly of: Readonly<Record<Size, number>>
  /** How many in a chunk at most. */
  readonly chunk: Readonly<Record<Size, number>>
  /** Whether chunks may run in parallel. `alone` if a chunk uses the whole machine or measures the disk. */
  readonly concurrency: 'by side' | 'alone'
  /** Why it cannot be done on this machine. */
  whyImpossible?(): string | undefined
  /** True if an earlier result covers the same list of tests. The list may have changed since. */
  isSameList?(found: ChunkResult, chunk: Pick<Chunk, 'from'>): boolean
  run(chunk: Chunk): Promise<ChunkResult>
}
