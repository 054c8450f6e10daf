/** Possible numbers of rows in one insert: few, because each number needs its own compiled statement. */
const CHUNKS = [100, 20, 5, 2, 1]

/** Splits rows into chunks of the sizes that inserts are compiled for. */
export function* insertChunks<T>(rows: readonly T[]): Generator<readonly T[]> {
  let at = 0
  for (const size of CHUNKS) for (; rows.length - at >= size; at += size) yield rows.slice(at, at + size)
}
