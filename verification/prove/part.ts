/** How much is proven: `ci` in minutes, `night` in hours. */
export const SIZES = ['ci', 'night'] as const
export type Size = (typeof SIZES)[number]

/** What one chunk of a part found. */
export interface ChunkResult {
  /** What did not hold: with seed or number, so that it can be looked at again. */
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
 * One kind of proof. It is cut into chunks that do not depend on one another: after each its result is
 * kept, and a run that was stopped goes on with the next.
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
  /** How many chunks may run at the same time; 1 when it fills the machine by itself, or measures what the disk does. */
  readonly concurrency: 'by side' | 'alone'
  /** Why it cannot be done on this machine. */
  whyImpossible?(): string | undefined
  /** Whether what was found before is about the same, where the list of what is tried may have changed since. */
  isSameList?(found: ChunkResult, chunk: Pick<Chunk, 'from'>): boolean
  run(chunk: Chunk): Promise<ChunkResult>
}
