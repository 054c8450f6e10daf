/** Time, randomness and network of the client. Replace parts of it for tests and other runtimes. */
export interface ClientPlatform {
  fetch(url: string, init: RequestInit): Promise<Response>
  /** ms since 1970. */
  now(): number
  /** Runs `task` after `ms`. The returned function cancels it. */
  after(ms: number, task: () => void): () => void
  /** At least 0, and below 1. */
  random(): number
  /** A unique text for the Idempotency-Key. */
  unique(): string
}

/** The real clock, timers, randomness and fetch. No other code in `client/` uses them. */
export const REAL_PLATFORM: ClientPlatform = {
  fetch: (url, init) => globalThis.fetch(url, init),
  now: () => Date.now(),
  after(ms, task) {
    const timer = setTimeout(task, ms)
    return () => clearTimeout(timer)
  },
  random: () => Math.random(),
  unique: () => globalThis.crypto.randomUUID(),
}
