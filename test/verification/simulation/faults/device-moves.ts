import type { AgentConfig } from '../../../../edge-agent/config.ts'
import type { AgentNode } from '../nodes/agent-node.ts'
import type { CloudNode } from '../nodes/cloud-node.ts'
import type { Core } from '../virtual/core.ts'
import { configOf, type Shop } from '../nodes/initial-shop.ts'
import type { Merchant } from '../nodes/merchant.ts'
import type { Chance } from '../virtual/chance.ts'

/**
 * Moves a device from one agent to another while customers use it. The manager assigns the device by `updateDevice`,
 * which revokes the tokens of the device. Staff move the cable before or after this assignment, and restart both
 * agents.
 */
export interface DeviceMoves {
  /** Current configuration of this agent. */
  configOf(node: Pick<AgentNode, 'name'>): AgentConfig
  /** The agent that has this device. Undefined for a device that never moves. */
  holderOf(deviceId: string): AgentNode | undefined
  /** Moves a random device. If another move is still unfinished, does nothing. */
  move(): void
  /** Describes an unfinished move; undefined if each device is at its agent. */
  readonly underWay: string | undefined
}

export interface DeviceMovesParts {
  core: Core
  cloud: CloudNode
  manager: Merchant
  shop: Pick<Shop, 'devices'>
  agents: readonly AgentNode[]
}

const REPEAT_ASSIGNMENT_MS = 10_000

/** Creates the moves of a run. The run needs at least two agents. */
export function deviceMoves(parts: DeviceMovesParts): DeviceMoves {
  return new Moves(parts)
}

class Moves implements DeviceMoves {
  readonly #core: DeviceMovesParts['core']
  readonly #cloud: DeviceMovesParts['cloud']
  readonly #manager: DeviceMovesParts['manager']
  readonly #agents: DeviceMovesParts['agents']
  readonly #chance: Chance
  readonly #gate: string
  readonly #station: string
  readonly #detacher: string
  /** Name of the agent to which each device is connected. */
  readonly #plugged: Map<string, string>
  #isMoving = false
  #repeatsAssignments = false

  constructor({ core, cloud, manager, shop, agents }: DeviceMovesParts) {
    this.#core = core
    this.#cloud = cloud
    this.#manager = manager
    this.#agents = agents
    this.#chance = this.#core.chance.fork('device moves')
    const { gate, station, detacher } = shop.devices
    this.#gate = gate
    this.#station = station
    this.#detacher = detacher
    this.#plugged = new Map([
      [this.#station, 'agent-1'],
      [this.#detacher, 'agent-2'],
    ])
  }

  holderOf(deviceId: string): AgentNode | undefined {
    return this.#agents.find(({ name }) => name === this.#plugged.get(deviceId))
  }

  configOf({ name }: Pick<AgentNode, 'name'>): AgentConfig {
    const own = [...this.#plugged].filter(([, at]) => at === name).map(([deviceId]) => ({ deviceId, isGate: false }))
    return configOf(name === 'agent-1' ? [{ deviceId: this.#gate, isGate: true }, ...own] : own)
  }

  move(): void {
    if (this.#isMoving) return
    const deviceId = this.#chance.one([this.#station, this.#detacher])
    const from = this.holderOf(deviceId)
    if (!from) return
    const to = this.#chance.one(this.#agents.filter((node) => node !== from))
    this.#isMoving = true
    this.#core.trace.add('fault', `${deviceId.slice(-6)} will move from ${from.name} to ${to.name}`)
    this.#moveDevice(deviceId, from, to).catch((error: unknown) =>
      this.#core.violate('fault', `a device is not moved: ${(error as Error).stack}`),
    )
  }

  get underWay(): string | undefined {
    if (this.#isMoving) return 'a device is moving'
    const away = [...this.#plugged.keys()].find((deviceId) => !this.#isThere(deviceId))
    return away === undefined ? undefined : `${away} is not at ${this.#plugged.get(away)} yet`
  }

  #placeOf(deviceId: string): { agentId: string; isMoving: 0 | 1 } | undefined {
    return this.#cloud.disk.reading
      ?.prepare<[string], { agentId: string; isMoving: 0 | 1 }>(
        'SELECT agent_id AS agentId, moving_to IS NOT NULL AS isMoving FROM device WHERE device_id = ?',
      )
      .get(deviceId)
  }

  #isThere(deviceId: string) {
    const place = this.#placeOf(deviceId)
    return place !== undefined && !place.isMoving && place.agentId === this.holderOf(deviceId)?.identity.agentId
  }

  /** Assigns a device again if a restored cloud still assigns the device to its former agent. */
  async #repeatAssignments(): Promise<void> {
    for (;;) {
      for (const deviceId of this.#plugged.keys()) {
        const agentId = this.holderOf(deviceId)?.identity.agentId
        if (
          !this.#isMoving &&
          agentId !== undefined &&
          !this.#isThere(deviceId) &&
          this.#placeOf(deviceId)?.isMoving !== 1
        )
          await this.#manager.call('updateDevice', { deviceId, agentId }, { tries: 3 })
      }
      await this.#core.scheduler.pause(REPEAT_ASSIGNMENT_MS)
    }
  }

  /** Changes the configuration of both agents and restarts them. */
  #plugIn(deviceId: string, from: AgentNode, to: AgentNode): void {
    this.#core.trace.add('fault', `${deviceId.slice(-6)} is plugged in at ${to.name}`)
    this.#plugged.set(deviceId, to.name)
    for (const node of [from, to]) node.crash({ powerCut: false })
  }

  async #moveDevice(deviceId: string, from: AgentNode, to: AgentNode): Promise<void> {
    const isAssignedFirst = this.#chance.happens(0.5)
    if (isAssignedFirst)
      await this.#manager.call('updateDevice', { deviceId, agentId: to.identity.agentId }, { tries: 2 })
    await this.#core.scheduler.pause(this.#chance.between(1, 10_000))
    this.#plugIn(deviceId, from, to)
    this.#isMoving = false
    if (this.#repeatsAssignments) return
    this.#repeatsAssignments = true
    await this.#repeatAssignments()
  }
}
