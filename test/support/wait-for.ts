import { vi } from 'vitest'

/** Repeats a check in real time until it passes. The limit only ends what hangs. */
export const waitFor = <T>(check: () => T | Promise<T>): Promise<T> => vi.waitFor(check, { timeout: 60_000 })
