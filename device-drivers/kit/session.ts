/** A session lasts from `identify` until the device is lost. */
export interface Session {
  /** Aborts when the session is over. */
  readonly over: AbortSignal
  /** Resolves with the reason when the session is over. */
  readonly lost: Promise<string>
  end(reason: string): void
}

/** Makes a session. Only the first call of `end` has an effect. */
export function openSession(): Session {
  let resolveLost = (_reason: string) => {}
  const lost = new Promise<string>((resolve) => {
    resolveLost = resolve
  })
  const over = new AbortController()
  return {
    over: over.signal,
    lost,
    end(reason) {
      if (over.signal.aborted) return
      over.abort(new DOMException(reason, 'AbortError'))
      resolveLost(reason)
    },
  }
}
