import { budget, type Budget } from '../../../policy/budget.ts'
import type { Clock } from '../../../policy/platform.ts'

/** What a connection may send now. */
export interface PacketBudget {
  /** Takes a packet of this size. Returns false if the connection must wait. */
  take(bytes: number): boolean
}

/**
 * Packets that an agent, all agents of an account, and a connection before its login may send: at once, and per second
 * after that. An agent of a busy store sends some packets per second.
 */
export const PACKET_LIMITS = {
  agent: { most: 400, perSecond: 200 },
  account: { most: 4_000, perSecond: 2_000 },
  login: { most: 20, perSecond: 5 },
} as const
/** A packet counts once more for each of these bytes. */
const BYTES_OF_ONE = 8_192
/** Maximum number of agents, and of accounts, with a budget. The one that sent nothing for longest gets a full one. */
const KNOWN_LIMIT = 20_000

const costOf = (bytes: number) => 1 + Math.floor(bytes / BYTES_OF_ONE)

/** The budget of a connection before its login. */
export function loginBudget(clock: Pick<Clock, 'elapsed'>): PacketBudget {
  const own = budget(clock, PACKET_LIMITS.login.most, PACKET_LIMITS.login.perSecond)
  return { take: (bytes) => own.spend(costOf(bytes)) }
}

/** Budgets of agents and accounts. They outlive connections, so that a new connection brings no new budget. */
export class PacketBudgets {
  readonly #clock: Pick<Clock, 'elapsed'>
  readonly #agents = new Map<string, Budget>()
  readonly #accounts = new Map<string, Budget>()

  constructor(clock: Pick<Clock, 'elapsed'>) {
    this.#clock = clock
  }

  of(agentId: string, accountId: string): PacketBudget {
    return {
      take: (bytes) => {
        const cost = costOf(bytes)
        const agent = this.#budgetOf(this.#agents, agentId, PACKET_LIMITS.agent)
        if (!agent.spend(cost)) return false
        if (this.#budgetOf(this.#accounts, accountId, PACKET_LIMITS.account).spend(cost)) return true
        agent.spend(-cost)
        return false
      },
    }
  }

  #budgetOf(known: Map<string, Budget>, id: string, { most, perSecond }: { most: number; perSecond: number }): Budget {
    const own = known.get(id) ?? budget(this.#clock, most, perSecond)
    known.delete(id)
    known.set(id, own)
    const oldest = known.size > KNOWN_LIMIT ? known.keys().next().value : undefined
    if (oldest !== undefined) known.delete(oldest)
    return own
  }
}
