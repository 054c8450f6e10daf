import type { AgentConfig } from '../../../edge-agent/config.ts'
import type { AgentNode } from '../nodes/agent-node.ts'
import type { CloudNode } from '../nodes/cloud-node.ts'
import type { Core } from '../virtual/core.ts'
import { configOf, type Shop } from '../nodes/genesis.ts'
import type { Merchant } from '../nodes/merchant.ts'

/**
 *   updateDevice ─ tokens are taken back ─▶ the other agent has it        (the cloud)
 *   unplugged here, plugged in there, both agents started anew            (people, sooner or later than that)
 *
 * A device goes from one agent to another while people use it.
 */
export interface DeviceMoves {
  /** With what this agent starts. */
  configOf(node: Pick<AgentNode, 'name'>): AgentConfig
  /** The agent at which this device is plugged in; undefined for one that stays where it is. */
  holderOf(deviceId: string): AgentNode | undefined
  /** Somebody moves a device, unless one is being moved. */
  move(): void
  /** What is not where it is plugged in yet. */
  readonly underWay: string | undefined
}

export interface DeviceMovesParts {
  core: Core
  cloud: CloudNode
  manager: Merchant
  shop: Pick<Shop, 'devices'>
  agents: readonly AgentNode[]
}

const TELL_AGAIN_MS = 10_000

/** The moves of one world; it has two agents at least. */
export function deviceMoves({ core, cloud, manager, shop, agents }: DeviceMovesParts): DeviceMoves {
  const { scheduler, trace } = core
  const chance = core.chance.fork('device moves')
  const { gate, station, detacher } = shop.devices
  /** By device, the name of its agent. */
  const plugged = new Map([
    [station, 'agent-1'],
    [detacher, 'agent-2'],
  ])
  let isAtIt = false
  let isTended = false

  const holderOf = (deviceId: string) => agents.find(({ name }) => name === plugged.get(deviceId))

  function placeOf(deviceId: string): { agentId: string; isMoving: 0 | 1 } | undefined {
    return cloud.disk.reading
      ?.prepare<[string], { agentId: string; isMoving: 0 | 1 }>(
        'SELECT agent_id AS agentId, moving_to IS NOT NULL AS isMoving FROM device WHERE device_id = ?',
      )
      .get(deviceId)
  }

  const isThere = (deviceId: string) => {
    const place = placeOf(deviceId)
    return place !== undefined && !place.isMoving && place.agentId === holderOf(deviceId)?.identity.agentId
  }

  /** Says so again wherever the cloud takes a device for another agent's: it may have been put back to before the move. */
  async function tend(): Promise<void> {
    for (;;) {
      for (const deviceId of plugged.keys()) {
        const agentId = holderOf(deviceId)?.identity.agentId
        if (!isAtIt && agentId !== undefined && !isThere(deviceId) && placeOf(deviceId)?.isMoving !== 1)
          await manager.call('updateDevice', { deviceId, agentId }, { tries: 3 })
      }
      await scheduler.pause(TELL_AGAIN_MS)
    }
  }

  /** Somebody who has changed the configuration of both starts them anew. */
  function plug(deviceId: string, from: AgentNode, to: AgentNode): void {
    trace.note('trouble', `${deviceId.slice(-6)} is plugged in at ${to.name}`)
    plugged.set(deviceId, to.name)
    for (const node of [from, to]) node.crash({ powerCut: false })
  }

  async function carry(deviceId: string, from: AgentNode, to: AgentNode): Promise<void> {
    const isToldBefore = chance.happens(0.5)
    if (isToldBefore) await manager.call('updateDevice', { deviceId, agentId: to.identity.agentId }, { tries: 2 })
    await scheduler.pause(chance.between(1, 10_000))
    plug(deviceId, from, to)
    isAtIt = false
    if (isTended) return
    isTended = true
    await tend()
  }

  return {
    configOf({ name }) {
      const own = [...plugged].filter(([, at]) => at === name).map(([deviceId]) => ({ deviceId, isGate: false }))
      return configOf(name === 'agent-1' ? [{ deviceId: gate, isGate: true }, ...own] : own)
    },
    holderOf,
    move() {
      if (isAtIt) return
      const deviceId = chance.one([station, detacher])
      const from = holderOf(deviceId)
      if (!from) return
      const to = chance.one(agents.filter((node) => node !== from))
      isAtIt = true
      trace.note('trouble', `${deviceId.slice(-6)} is to go from ${from.name} to ${to.name}`)
      carry(deviceId, from, to).catch((error: unknown) =>
        core.violate('fault', `a device is not moved: ${(error as Error).stack}`),
      )
    },
    get underWay() {
      if (isAtIt) return 'a device is being carried'
      const away = [...plugged.keys()].find((deviceId) => !isThere(deviceId))
      return away === undefined ? undefined : `${away} is not at ${plugged.get(away)} yet`
    },
  }
}
