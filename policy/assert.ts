/** A broken promise of our own code, never of a caller. Assertions stay on in production. */
export class BrokenInvariant extends Error {
  override name = 'BrokenInvariant'
}

/** Throws `BrokenInvariant` unless `condition` holds. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new BrokenInvariant(message)
}

/** For the last branch of a switch: the compiler proves that it is never reached. */
export function unreachable(value: never): never {
  throw new BrokenInvariant(`unexpected ${JSON.stringify(value)}`)
}
