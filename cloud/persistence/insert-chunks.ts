/** Rows in one insert. Few sizes mean few statements to compile. */
const CHUNKS = [100, 20, 5, 2, 1]

/** Splits rows into chunks of the sizes that inserts are compiled for. */
export function* insertChunks<T>(rows: readonly T[]): Generator<readonly T[]> {
  let at = 0
  for (const size of CHUNKS) for (; rows.length - at >= size; at += size) yield rows.slice(at, at + size)
}
