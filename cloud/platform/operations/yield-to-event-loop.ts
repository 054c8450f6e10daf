/** Lets pending events run. Long computations call it, so that other requests do not wait for them. */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
