/** Size of a proof: `ci` takes minutes, `night` takes hours. */
export const SIZES = ['ci', 'night'] as const
export type Size = (typeof SIZES)[number]

/** Result of one chunk. */
export interface ChunkResult {
  /** Violations, each with its seed or number, so that it can be repeated. */
  violations: readonly string[]
  /** Figures by name, such as hours or kills. The report adds up the figures of all chunks. */
  figures?: Readonly<Record<string, number>>
  /** Rows of the report, such as mutants. */
  rows?: readonly Readonly<Record<string, string | number>>[]
}

export interface Chunk {
  /** Number of the first test, from 0. */
  from: number
  count: number
  size: Size
  signal: AbortSignal
  /** Reports the number of finished tests of the chunk. `at` describes the current step of a long test. */
  onProgress(done: number, at?: string): void
}

/**
 * One kind of test in independent chunks. The runner stores the result of each chunk. A run that was stopped therefore
 * continues with the next chunk.
 */
export interface ProofPart {
  readonly name: string
  /** Title in the report. */
  readonly title: string
  /** Name of what is counted, such as runs or kills. */
  readonly unit: string
  readonly of: Readonly<Record<Size, number>>
  /** Maximum number of tests in a chunk. */
  readonly chunk: Readonly<Record<Size, number>>
  /** `by side`: chunks may run in parallel. `alone`: each chunk needs the whole machine, or measures the disk. */
  readonly concurrency: 'by side' | 'alone'
  /** Returns why the part cannot run on this machine, or undefined if it can. */
  whyImpossible?(): string | undefined
  /** True if an earlier result belongs to the same tests. The catalogue may have changed since then. */
  isSameList?(found: ChunkResult, chunk: Pick<Chunk, 'from'>): boolean
  run(chunk: Chunk): Promise<ChunkResult>
}
