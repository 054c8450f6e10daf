import type { Clock } from '../../policy/platform.ts'

/** Connection slots for agents at the broker. */
export interface AgentSlots {
  /** Reserves a slot for an authenticated agent. Returns false if all slots are reserved. */
  reserve(agentId: string): boolean
  /** Records the end of the agent's connection. Its slot stays reserved for a day. */
  disconnected(agentId: string): void
  /** Frees the slot of a revoked agent. */
  release(agentId: string): void
}

/** Time for which the slot of a disconnected agent stays reserved, ms. */
export const RESERVED_MS = 24 * 3_600_000

/**
 * Makes `limit` slots. If all slots are reserved, `reserve` frees the slots of agents that were disconnected for a day.
 * If no slot becomes free, `reserve` rejects the new agent.
 */
export function agentSlots(
  limit: number,
  clock: Pick<Clock, 'elapsed'>,
  isConnected: (agentId: string) => boolean,
): AgentSlots {
  /** Time of the last connect or disconnect of each agent, oldest first. */
  const seen = new Map<string, number>()

  function note(agentId: string): void {
    seen.delete(agentId)
    seen.set(agentId, clock.elapsed())
  }

  function dropAbsent(): void {
    const beforeMs = clock.elapsed() - RESERVED_MS
    for (const [agentId, atMs] of seen) {
      if (atMs > beforeMs) return
      if (!isConnected(agentId)) seen.delete(agentId)
    }
  }

  return {
    reserve(agentId) {
      if (seen.size >= limit && !seen.has(agentId)) dropAbsent()
      if (seen.size >= limit && !seen.has(agentId)) return false
      note(agentId)
      return true
    },
    disconnected(agentId) {
      if (seen.has(agentId)) note(agentId)
    },
    release: (agentId) => void seen.delete(agentId),
  }
}
