/** An error in untag's own code. Invalid input has other errors. Assertions also run in production. */
export class BrokenInvariant extends Error {
  override name = 'BrokenInvariant'
}

/** Throws `BrokenInvariant` if `condition` is false. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new BrokenInvariant(message)
}
