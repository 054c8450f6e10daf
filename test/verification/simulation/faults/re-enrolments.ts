import { enrol } from '../../../../edge-agent/enrolment/enrol.ts'
import type { AgentNode } from '../nodes/agent-node.ts'
import { CLOUD_ORIGIN, type CloudNode } from '../nodes/cloud-node.ts'
import type { Chance } from '../virtual/chance.ts'
import type { Core } from '../virtual/core.ts'
import type { Shop } from '../nodes/initial-shop.ts'
import { request } from '../virtual/http.ts'
import type { Merchant } from '../nodes/merchant.ts'

/**
 * Re-enrols agents on their machines, as `untag edge enrol --replace` does. Lost answers lead to several attempts.
 * After a successful attempt the ledger continues under the new identity. When the new agent connects, the cloud
 * revokes the predecessor and the unused attempts. Sometimes staff revoke these agents earlier.
 */
export interface ReEnrolments {
  reEnrol(node: AgentNode): void
  /** Re-enrols the agents that a restored cloud does not know, as the message of a restore tells staff to do. */
  afterRestore(): void
  /** Describes an unfinished re-enrolment; undefined if there is none. */
  readonly underWay: string | undefined
}

export interface EnrolmentParts {
  core: Core
  cloud: CloudNode
  manager: Merchant
  shop: Pick<Shop, 'storeId' | 'agents'>
  agents: readonly AgentNode[]
}

const TRIES = 50
const AGAIN_MS = 5_000

/** One attempt to enrol an agent. Undefined if it failed. */
async function enrolOnce({ core, cloud, manager, shop }: EnrolmentParts, chance: Chance, node: AgentNode) {
  const { scheduler, trace } = core
  const made = await manager.call('createEnrolmentCode', { storeId: shop.storeId, name: node.name })
  const clock = node.machine.process?.platform.clock
  if (!made?.ok || !clock) return undefined
  const enrolled = await enrol({
    cloud: `${CLOUD_ORIGIN}/api/v1`,
    code: String(made.body['code']),
    former: node.identity,
    platform: { clock, timers: { after: (ms, task) => scheduler.after(ms, task) }, random: chance },
    async fetch(url, init) {
      const answer = await request(
        { url, ...init },
        { wire: node.wire, server: cloud, scheduler, ...(init.signal && { signal: init.signal }) },
      )
      return { status: answer.status, text: () => Promise.resolve(answer.text) }
    },
  })
  trace.add(node.name, enrolled.ok ? 'is re-enrolled' : `is not enrolled: ${enrolled.why}`)
  return enrolled.ok ? enrolled : undefined
}

/** Creates the re-enrolments of a run. */
export function reEnrolments(parts: EnrolmentParts): ReEnrolments {
  const { core, manager, shop, agents } = parts
  const { scheduler, trace } = core
  const chance = core.chance.fork('enrolments')
  const atWork = new Set<string>()
  const former = new Set<string>()

  /** Repeats the attempt until it succeeds, at most `TRIES` times. Returns undefined if no attempt succeeds. */
  async function until<T>(attempt: () => Promise<T | undefined>): Promise<T | undefined> {
    for (let n = 0; n < TRIES; n++) {
      const done = await attempt()
      if (done !== undefined) return done
      await scheduler.pause(AGAIN_MS)
    }
    return undefined
  }

  /** Revokes all agents of the store that are not in use. */
  async function revokeOthers(): Promise<true | undefined> {
    const list = await manager.call('fetchAgents', { storeId: shop.storeId })
    if (!list?.ok) return undefined
    const known = new Set(
      [
        ...shop.agents.map(({ identity }) => identity.agentId),
        ...agents.map(({ identity }) => identity.agentId),
      ].filter((id) => !former.has(id)),
    )
    for (const { agentId, state } of list.body['agents'] as { agentId: string; state: string }[]) {
      if (state === 'revoked' || known.has(agentId)) continue
      if (!(await manager.call('revokeAgent', { agentId }))?.ok) return undefined
    }
    return true
  }

  async function replace(node: AgentNode): Promise<void> {
    const enrolled = await until(() => enrolOnce(parts, chance, node))
    if (!enrolled) return
    former.add(node.identity.agentId)
    node.replace(enrolled.identity, enrolled.documents)
    if (chance.happens(0.4)) await until(revokeOthers)
  }

  async function work(node: AgentNode): Promise<void> {
    atWork.add(node.name)
    trace.add('fault', `${node.name} will be re-enrolled`)
    await replace(node)
      .catch((error: unknown) => core.violate('fault', `${node.name} is not re-enrolled: ${(error as Error).stack}`))
      .finally(() => void atWork.delete(node.name))
  }

  /** Re-enrols one agent that the cloud does not know. Returns true if there is none. */
  async function replaceUnknown(): Promise<true | undefined> {
    if (atWork.size > 0) return undefined
    const list = await manager.call('fetchAgents', { storeId: shop.storeId })
    if (!list?.ok) return undefined
    const known = (list.body['agents'] as { agentId: string; state: string }[]).filter(
      ({ state }) => state !== 'revoked',
    )
    const unknown = agents.find(({ identity }) => !known.some(({ agentId }) => agentId === identity.agentId))
    if (!unknown) return true
    await work(unknown)
    return undefined
  }

  return {
    reEnrol(node) {
      if (atWork.size === 0) void work(node)
    },
    afterRestore: () => void until(replaceUnknown),
    get underWay() {
      const [name] = atWork
      return name === undefined ? undefined : `${name} is still being enrolled`
    },
  }
}
