import { pause } from '../../policy/platform.ts'
import { newId } from '../../policy/ids.ts'
import { rateLimitedLog, type RateLimitedLog } from '../../policy/rate-limited-log.ts'
import type { AgentAddress } from '../../policy/mqtt-topics.ts'
import { agentCaller, findAgent } from '../agent-identity/sessions.ts'
import { storeState } from '../agents/documents/agent-state.ts'
import { reportProtectionEvents } from '../agents/journal/report-events.ts'
import { Failure } from '../foundation/failure.ts'
import type { Services } from '../operations/operation.ts'
import { perform } from '../operations/perform.ts'
import type { Database } from '../persistence/database.ts'
import { waitingBatches } from './waiting-batches.ts'
import type { BackgroundTasks } from './background-tasks.ts'

export interface InboxParts {
  database: Database
  services: () => Services
  tasks: BackgroundTasks
  /** True if other processes may store earlier batches of the same agent at this moment. */
  mayReorder(): boolean
  /** Sends the acknowledgement of a batch to its agent. */
  acknowledge(agent: AgentAddress, ack: string): void
}

/** Maximum number of agents whose states wait to be stored. */
const STATES_LIMIT = 10_000
/** If earlier rows of the agent are missing, its batch waits at most 1 s for the process that stores these rows. */
const GAP_TRIES = 6
const GAP_PAUSE_MS = 200

/** Stores the messages that agents publish. Stores the batches of one agent in the order of their arrival. */
export class AgentInbox {
  readonly #parts: InboxParts
  readonly #batches = waitingBatches()
  /** For each agent, a promise that resolves when its last batch has been processed. */
  readonly #lastBatches = new Map<string, Promise<void>>()
  readonly #states = new Map<string, string>()
  #refusals: RateLimitedLog | undefined

  constructor(parts: InboxParts) {
    this.#parts = parts
  }

  /**
   * Stores a batch of an agent's journal and acknowledges it. If too many batches wait, drops the batch; the agent then
   * sends it again.
   */
  receiveBatch(from: AgentAddress, batch: string): void {
    const stored = this.#batches.ofAgent(from.agentId)
    if (stored)
      void this.#parts.tasks.track(this.#inOrder(from.agentId, () => this.#storeBatch(from, batch)).finally(stored))
  }

  /** Stores the state of an agent. If several states arrive during a write, only the last one is stored. */
  receiveState(from: AgentAddress, payload: string): void {
    const { agentId } = from
    const isUnderWay = this.#states.has(agentId)
    if (!isUnderWay && this.#states.size >= STATES_LIMIT) return
    this.#states.set(agentId, payload)
    if (!isUnderWay) void this.#parts.tasks.track(this.#writeStates(from, payload))
  }

  async #writeStates(from: AgentAddress, first: string): Promise<void> {
    const { agentId } = from
    try {
      for (let next: string | undefined = first; next !== undefined; next = this.#states.get(agentId)) {
        const state = next
        const { platform, changes } = this.#parts.services()
        const changed = await this.#parts.database.write((db) => storeState(db, from, state, platform.clock.wall()))
        if (changed) changes.publish(agentCaller(changed), 'agents', [])
        if (this.#states.get(agentId) === state) this.#states.delete(agentId)
      }
    } finally {
      this.#states.delete(agentId)
    }
  }

  /**
   * Runs the batches of one agent in order. SQLite has a single writer, which already keeps the order and lets waiting
   * batches share a commit. On PostgreSQL, parallel batches of one agent would conflict, so each batch waits for the
   * previous one.
   */
  #inOrder(agentId: string, work: () => Promise<void>): Promise<void> {
    if (this.#parts.database.dialect === 'sqlite') return work()
    const last = this.#lastBatches
    const batch = (last.get(agentId) ?? Promise.resolve()).then(work)
    const end = batch.catch(() => undefined).then(() => void (last.get(agentId) === end && last.delete(agentId)))
    last.set(agentId, end)
    return batch
  }

  async #storeBatch(from: AgentAddress, batch: string): Promise<void> {
    const { database, acknowledge, mayReorder } = this.#parts
    const services = this.#parts.services()
    const agent = await findAgent(database.reads, from.agentId)
    // An outside broker may deliver a batch under a topic of another store.
    if (!agent || agent.revoked_ms !== null || agent.store_id !== from.storeId) return
    const caller = agentCaller(agent)
    const stored = this.#batches.ofAccount(caller.accountId)
    if (!stored) return
    const request = {
      operation: reportProtectionEvents,
      caller,
      input: { batch },
      isLegacyForm: false,
      idempotencyKey: undefined,
      requestId: newId('req', services.platform),
    }
    try {
      for (let tries = 1; ; tries++) {
        const { body } = await perform(request, database, services)
        const { accepted, duplicates, ack } = JSON.parse(body) as { accepted: number; duplicates: number; ack: string }
        const isAfterGap = accepted + duplicates === 0
        if (!isAfterGap || !mayReorder() || tries === GAP_TRIES) return acknowledge(from, ack)
        await pause(services.platform.timers, GAP_PAUSE_MS)
      }
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      this.#logRefusal(from.agentId, error, services)
    } finally {
      stored()
    }
  }

  #logRefusal(agentId: string, { message: reason }: Failure, { log, platform }: Services): void {
    this.#refusals ??= rateLimitedLog((fields, message) => log.warn(fields, message), platform)
    this.#refusals.write({ agentId, reason }, 'a batch was refused', agentId)
  }
}
