/** Maximum number of batches of one agent that wait to be stored. */
export const BATCHES_OF_AGENT = 4
/** Maximum number of batches of all agents that wait to be stored. A batch has up to 300 KB. */
export const BATCHES_OF_ALL = 500

/** Counts the batches of events that wait to be stored. */
export interface WaitingBatches {
  /**
   * Returns a function to call when the batch is stored; undefined if too many wait. The agent sends the batch again
   * after 5 s.
   */
  add(agentId: string): (() => void) | undefined
}

/** Makes an empty counter. */
export function waitingBatches(): WaitingBatches {
  const ofAgents = new Map<string, number>()
  let all = 0
  return {
    add(agentId) {
      const count = ofAgents.get(agentId) ?? 0
      if (count >= BATCHES_OF_AGENT || all >= BATCHES_OF_ALL) return undefined
      ofAgents.set(agentId, count + 1)
      all++
      return () => {
        all--
        const left = (ofAgents.get(agentId) ?? 1) - 1
        if (left > 0) ofAgents.set(agentId, left)
        else ofAgents.delete(agentId)
      }
    },
  }
}
