import type { Clock } from '../../policy/platform.ts'

/** The places that a broker has for agents. */
export interface AgentSlots {
  /** Whether this agent, which has logged in, gets a place. */
  reserve(agentId: string): boolean
  /** The agent's connection ended. Its place stays reserved. */
  disconnected(agentId: string): void
  /** The agent was revoked. */
  release(agentId: string): void
}

/** An agent that has been away for longer competes with new agents again, ms. */
export const RESERVED_MS = 24 * 3_600_000

/** Each agent has one place, which stays reserved for a day after its connection ended. A new agent gets one if there is room. */
export function agentSlots(
  limit: number,
  clock: Pick<Clock, 'elapsed'>,
  isConnected: (agentId: string) => boolean,
): AgentSlots {
  /** When each agent last took its place or left it, the longest ago first. */
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
