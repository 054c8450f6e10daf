/** The one place where these programs reach for time and for the agent. */
export const now = (): number => Date.now()

/** Runs `task` once, later; the answer calls it off. */
export function after(ms: number, task: () => void): () => void {
  const timer = setTimeout(task, ms)
  return () => clearTimeout(timer)
}

/** Runs `task` at an interval while the page is open. */
export function every(ms: number, task: () => void): void {
  setInterval(task, ms)
}

/** Asks the agent; rejects when it does not answer in time. */
export function request(path: string, init: RequestInit, limitMs: number): Promise<Response> {
  return fetch(path, { ...init, cache: 'no-store', signal: AbortSignal.timeout(limitMs) })
}
