/** What the client needs of the world; each part can be replaced, for tests and for other runtimes. */
export interface ClientPlatform {
  fetch(url: string, init: RequestInit): Promise<Response>
  /** ms since 1970. */
  now(): number
  /** Runs the task after so many ms; the answer takes it back. */
  after(ms: number, task: () => void): () => void
  /** From 0 up to, not including, 1. */
  random(): number
  /** A text that nobody had before, for Idempotency-Key. */
  unique(): string
}

/** This machine's own clock, timers, chance and fetch: the one place of this room that touches them. */
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
