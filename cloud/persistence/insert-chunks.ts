/** Rows of one statement: few lengths, so that there are few statements to compile and not a thousand. */
const CHUNKS = [100, 20, 5, 2, 1]

/** The rows in the lengths that inserts are compiled for. */
export function* insertChunks<T>(rows: readonly T[]): Generator<readonly T[]> {
  let at = 0
  for (const size of CHUNKS) for (; rows.length - at >= size; at += size) yield rows.slice(at, at + size)
}
