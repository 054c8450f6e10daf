/** Batches of one agent that wait to be stored. */
export const BATCHES_OF_AGENT = 4
/** Batches of all agents that wait, of up to 300 KB each. */
export const BATCHES_OF_ALL = 500

/** Counts the batches of events that wait to be stored. */
export interface WaitingBatches {
  /** Call the result when the batch is stored. Undefined if too many wait: the agent sends the batch again after 5 s. */
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
