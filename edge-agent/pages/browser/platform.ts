/** Wall clock, ms. Only this file uses clock, timers and network, so that tests can replace them. */
export const now = (): number => Date.now()

/** Runs `task` once after `ms`; the returned function cancels it. */
export function after(ms: number, task: () => void): () => void {
  const timer = setTimeout(task, ms)
  return () => clearTimeout(timer)
}

/** Runs `task` at an interval while the page is open. */
export function every(ms: number, task: () => void): void {
  setInterval(task, ms)
}

/** Sends a request to the agent; rejects if no answer comes within `limitMs`. */
export function request(path: string, init: RequestInit, limitMs: number): Promise<Response> {
  return fetch(path, { ...init, cache: 'no-store', signal: AbortSignal.timeout(limitMs) })
}
