import type { Context } from 'hono'
import type { Platform } from '../../../policy/platform.ts'
import { tenantOf, type Mode } from '../../platform/foundation/caller.ts'
import type { OperationResult } from '../../platform/operations/call-context.ts'
import type { ChangeFeed } from '../../platform/operations/notifier.ts'
import type { Operation } from '../../platform/operations/operation.ts'
import { fetchAgentConditions } from '../../protection/agents/administration/agent-conditions.ts'
import { fetchAgents } from '../../protection/agents/administration/agent-operations.ts'
import { fetchExceptions } from '../../protection/records/exception-operations.ts'
import { fetchOpenTasks } from '../../sales/store-operations/open-tasks.ts'
import { fetchStoreNames } from '../../sales/store-operations/read-stores.ts'
import type { ConsoleSession } from './page.ts'

/**
 * A change refreshes the live parts of all open pages at once. Viewers with the same rights then share one read.
 *
 *   change ─▶ `changed` to each open page ─▶ each page reads ─┬─ the first one runs the operation
 *                                                              └─ the others get its answer
 *
 * A later change, or a second, ends the sharing. Whole pages and forms never share: a person sees the own change.
 */

/** Reads whose answer depends on account, mode, role and stores only. */
const SHARED: ReadonlySet<Operation> = new Set<Operation>([
  fetchStoreNames,
  fetchOpenTasks,
  fetchAgents,
  fetchAgentConditions,
  fetchExceptions,
])
/** Longest time for which an answer is shared, ms. As long as the shortest time between two messages to a page. */
const SHARED_MS = 1_000
/** Maximum number of answers in memory. Further ones are not shared. */
const ANSWERS_LIMIT = 200

/** Runs an operation with the rights of a session. */
type Perform = (operation: Operation, mode: Mode, input: Record<string, unknown>) => Promise<OperationResult>

interface SharedAnswer {
  readonly version: number
  readonly atMs: number
  readonly answer: Promise<OperationResult>
}

/** Answers that viewers of one account share. */
export class SharedReads {
  readonly #clock: Platform['clock']
  readonly #changes: Pick<ChangeFeed, 'versionOf'>
  /** The oldest first. */
  readonly #answers = new Map<string, SharedAnswer>()

  constructor({ platform, changes }: { platform: Pick<Platform, 'clock'>; changes: Pick<ChangeFeed, 'versionOf'> }) {
    this.#clock = platform.clock
    this.#changes = changes
  }

  /** `perform`, shared with other viewers if the request refreshes a live part. */
  of(c: Context, session: ConsoleSession, perform: Perform): Perform {
    if (!isLiveRead(c)) return perform
    return (operation, mode, input) =>
      SHARED.has(operation)
        ? this.#read(session, mode, operation, input, () => perform(operation, mode, input))
        : perform(operation, mode, input)
  }

  async #read(
    { caller, mayUseLive }: ConsoleSession,
    mode: Mode,
    operation: Operation,
    input: Record<string, unknown>,
    run: () => Promise<OperationResult>,
  ): Promise<OperationResult> {
    const { accountId, role, storeIds, hasSecondFactor, package: level } = caller
    const rights = [accountId, mode, role, storeIds, hasSecondFactor, level, mayUseLive]
    const key = JSON.stringify([...rights, operation.name, input])
    const version = this.#changes.versionOf(tenantOf(accountId, mode))
    const known = this.#answers.get(key)
    const atMs = this.#clock.elapsed()
    if (known?.version === version && atMs - known.atMs < SHARED_MS) {
      // The rights of the first viewer may have ended meanwhile.
      const shared = await known.answer.catch(() => undefined)
      return shared ?? run()
    }
    const answer = run()
    this.#dropOld(atMs)
    this.#answers.delete(key)
    if (this.#answers.size < ANSWERS_LIMIT) this.#answers.set(key, { version, atMs, answer })
    return answer
  }

  #dropOld(nowMs: number): void {
    for (const [key, { atMs }] of this.#answers) {
      if (nowMs - atMs < SHARED_MS) return
      this.#answers.delete(key)
    }
  }
}

/** True if htmx reads a live part again: the element that triggers the request is the one that it replaces. */
function isLiveRead(c: Context): boolean {
  const trigger = c.req.header('hx-trigger')
  return c.req.method === 'GET' && trigger !== undefined && trigger === c.req.header('hx-target')
}
