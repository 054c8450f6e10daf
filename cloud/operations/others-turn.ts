/** Lets everybody else's work go on for a moment: for what computes longer than others should wait. */
export function othersTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
