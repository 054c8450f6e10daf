/** Lets everybody else's work go on for a moment: for what computes longer than others should wait. */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
