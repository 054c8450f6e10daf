import type { Cancel } from '../../policy/platform.ts'

/**
 * Makes a signal that aborts as soon as `one` or `other` aborts; `done` removes its listeners. Use it with long-lived
 * signals: on Node 20, each call of `AbortSignal.any` leaks memory while its source signals live.
 */
export function eitherSignal(one: AbortSignal, other: AbortSignal): { signal: AbortSignal; done: Cancel } {
  const both = new AbortController()
  const onOne = () => both.abort(one.reason)
  const onOther = () => both.abort(other.reason)
  if (one.aborted) onOne()
  else if (other.aborted) onOther()
  one.addEventListener('abort', onOne, { once: true })
  other.addEventListener('abort', onOther, { once: true })
  return {
    signal: both.signal,
    done() {
      one.removeEventListener('abort', onOne)
      other.removeEventListener('abort', onOther)
    },
  }
}
