import type { AgentNode } from '../nodes/agent-node.ts'
import type { Core } from '../virtual/core.ts'
import type { Lan } from '../virtual/lan.ts'
import type { TillBook } from './till-book.ts'
import type { TillOracle } from './till-oracle.ts'

export interface TillNoticeWatchParts {
  core: Core
  lan: Lan
  agents: readonly AgentNode[]
  /** Agents that the policy names. */
  named: readonly AgentNode[]
  book: TillBook
  oracle: TillOracle
}

/** Time in which a notice reaches an agent if both run and the network of the store has no faults, ms. */
const ANNOUNCED_WITHIN_MS = 45_000
const CHECK_EVERY_MS = 5_000
/** Error of a clock above which agents may refuse notices, ms. */
const CLOCK_MS = 30_000

/** Checks until the end of the run that notices of till sales arrive while the network of the store works. */
export function watchTillNotices(parts: TillNoticeWatchParts): void {
  const { core, lan, agents, named } = parts
  const { scheduler } = core
  let sureSinceMs = scheduler.nowMs
  let before: unknown[] = []
  /** When the clock of an agent was wrong, by name: others refused its notices then, and it waits before it repeats them. */
  const wrongAtMs = new Map<string, number>()
  const isWrong = ({ agent }: AgentNode) => Math.abs((agent?.clock.now().nowMs ?? 0) - scheduler.nowMs) > CLOCK_MS
  const check = () => {
    for (const each of agents) if (isWrong(each)) wrongAtMs.set(each.name, scheduler.nowMs)
    const isRight = ({ name }: AgentNode) => scheduler.nowMs - (wrongAtMs.get(name) ?? 0) >= ANNOUNCED_WITHIN_MS
    const { state, messageFaults } = lan.wire
    const isSure = state === 'up' && messageFaults.lose === 0 && messageFaults.slow === 0
    const now = agents.flatMap(({ agent, identity }) => [agent, identity.agentId])
    if (!isSure || now.some((each, n) => each === undefined || each !== before[n])) sureSinceMs = scheduler.nowMs
    before = now
    if (scheduler.nowMs - sureSinceMs >= ANNOUNCED_WITHIN_MS)
      for (const from of named.filter(isRight))
        for (const to of agents.filter(isRight)) if (to !== from) checkNotices(parts, from, to)
    scheduler.after(CHECK_EVERY_MS, check)
  }
  check()
}

function checkNotices({ core, book, oracle }: TillNoticeWatchParts, from: AgentNode, to: AgentNode): void {
  const isNamed = to.agent?.trust.policy?.policy.tillSales.agents.includes(from.identity.agentId)
  if (!knows(from, to) || !knows(to, from) || isNamed !== true) return
  if ([from, to].some(({ name }) => book.restoredPlaces.has(name))) return
  const [epc] = oracle.unannounced(from.name, to.name, core.scheduler.nowMs - ANNOUNCED_WITHIN_MS)
  if (epc !== undefined)
    core.violate('liveness', `${to.name} has not heard from ${from.name} what a till reported of ${epc}`)
}

/** True if the policy of an agent has the address of the other one. */
function knows({ agent }: AgentNode, { identity }: AgentNode): boolean {
  const others = agent?.trust.policy?.agents ?? []
  return others.some(({ agentId, url }) => agentId === identity.agentId && url !== null)
}
