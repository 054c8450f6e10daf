import type { Actuators } from '../nodes/actuators.ts'
import type { AgentNode } from '../nodes/agent-node.ts'
import type { Chance } from '../virtual/chance.ts'
import type { CloudNode } from '../nodes/cloud-node.ts'
import type { Copies } from './copies.ts'
import type { Core } from '../virtual/core.ts'
import { isDiskFault } from '../virtual/disk.ts'
import type { Shop } from '../nodes/genesis.ts'
import type { Emergencies } from '../nodes/emergencies.ts'
import type { DeviceMoves } from './device-moves.ts'
import type { Enrolments } from './enrolments.ts'
import { keyTroubles } from './key-troubles.ts'
import type { Lan } from '../virtual/lan.ts'
import type { Liar } from './liar.ts'
import type { Merchant } from '../nodes/merchant.ts'
import type { Pace } from '../virtual/pace.ts'
import type { Provider } from '../nodes/provider.ts'
import type { Receiver } from '../nodes/receiver.ts'
import { FINE_WEATHER, type Wire } from '../virtual/wire.ts'

/** Kinds of trouble. Each world has some of them, none or all, as its seed says: what is rare alone meets what is rare beside it. */
export const TROUBLES = [
  'weather',
  'partition',
  'half-open',
  'broker',
  'agent-crash',
  'cloud-crash',
  'restart',
  'agent-disk',
  'cloud-disk',
  'agent-clock',
  'cloud-clock',
  'devices',
  'receiver',
  'lan',
  'home',
  'restore',
  'rollback',
  'keys',
  'provider',
  'enrol',
  'copy',
  'moves',
  'liar',
  'emergency',
] as const
export type Trouble = (typeof TROUBLES)[number]

/** Kinds that few worlds have, and mostly one of them only: they would make all of them longer. */
const RARE: ReadonlySet<Trouble> = new Set<Trouble>([
  'lan',
  'home',
  'restore',
  'rollback',
  'keys',
  'provider',
  'enrol',
  'copy',
  'moves',
])

/** In so many worlds an enrolled agent lies: drawn apart, so that the others stay the worlds that they were. */
const LIAR: Trouble = 'liar'
const LIAR_WORLDS = 0.06
/** In so many worlds a fire panel is wired to the gate: drawn apart, too. */
const EMERGENCY: Trouble = 'emergency'
const EMERGENCY_WORLDS = 0.1
/** Drawn apart from the others. */
const APART: ReadonlySet<Trouble> = new Set<Trouble>([LIAR, EMERGENCY])
/** The liar has one machine and one ledger, and cannot vouch for what a lost cloud knew. */
const NEVER_WITH_LIAR: ReadonlySet<Trouble> = new Set<Trouble>([
  'restore',
  'rollback',
  'provider',
  'enrol',
  'copy',
  'moves',
])

/**
 * When cloud and agent are both put back nobody knows any more what was used; what a lost cloud has paid out only its provider
 * knows; and an agent that it does not know people enrol once more (docs/backup.md). What a copy used goes with it when it is taken away.
 */
const NEVER_TOGETHER: readonly (readonly Trouble[])[] = [
  ['restore', 'rollback'],
  ['restore', 'provider'],
  ['restore', 'enrol'],
  ['rollback', 'enrol'],
  ...(['restore', 'rollback', 'home', 'keys', 'enrol', 'provider', 'moves'] as const).map(
    (other) => ['copy', other] as const,
  ),
]

/** What a world is made of. */
export interface Surroundings {
  core: Core
  cloud: CloudNode
  agents: readonly AgentNode[]
  shopWire: Wire
  lan: Lan
  /** A program of the shop's manager. */
  manager: Merchant
  shop: Shop
  actuators: Actuators
  receiver: Receiver
  /** Of a live shop. */
  provider: Provider | undefined
  enrolments: Enrolments
  copies: Copies
  moves: DeviceMoves | undefined
  liar: Liar | undefined
  /** Of a world with a fire panel. */
  emergencies: Emergencies | undefined
  /** Makes a backup of the cloud; what it answers puts the cloud back to it. */
  backUpCloud(): () => void
  /** Copies the disk of an agent; what it answers puts the agent back to that. */
  copyAgent(agent: AgentNode): () => void
  /** What was answered with tokens is true no longer. */
  onRevoked(): void
  /** Keeps a machine down for so long, ms; it is started again otherwise. */
  keepDown(machine: string, ms: number): void
  /** The cloud's clock is set: what it does by time may come early. */
  onClock(): void
}

export interface Troubles {
  /** From now on nothing goes wrong any more, and what did is put right. */
  heal(): void
}

/** How many worlds have one of the rare kinds. */
const RARE_WORLDS = 0.4
/** How many of these have another one. */
const SECOND_RARE = 0.3

/** Draws which kinds of trouble a seed has. */
export function troublesOf(chance: Chance): Trouble[] {
  const drawn = honestTroublesOf(chance)
  const isLiar = chance.fork(LIAR).happens(LIAR_WORLDS) && !drawn.some((kind) => NEVER_WITH_LIAR.has(kind))
  // Two copies of an agent would both drive the one gate.
  const hasPanel = chance.fork(EMERGENCY).happens(EMERGENCY_WORLDS) && !drawn.includes('copy')
  return [...drawn, ...(isLiar ? [LIAR] : []), ...(hasPanel ? [EMERGENCY] : [])]
}

function honestTroublesOf(chance: Chance): Trouble[] {
  if (chance.happens(0.05)) return []
  const density = chance.one([0.15, 0.4, 0.8])
  const common = TROUBLES.filter((kind) => !APART.has(kind) && !RARE.has(kind) && chance.happens(density))
  if (!chance.happens(RARE_WORLDS)) return common
  const first = chance.one([...RARE])
  const second = chance.happens(SECOND_RARE) ? chance.one([...RARE]) : first
  const isNever = NEVER_TOGETHER.some((pair) => pair.includes(first) && pair.includes(second) && first !== second)
  return [...common, ...new Set(isNever ? [first] : [first, second])]
}

/** Starts to make trouble, as often and for as long as the pace says. */
export function makeTroubles(
  kinds: readonly Trouble[],
  world: Surroundings,
  { troubleEveryMs, troubleLastsMs }: Pace,
): Troubles {
  const { core, cloud, agents, actuators, receiver } = world
  const chance = core.chance.fork('troubles')
  const wires = [
    ...agents.map((a) => a.wire),
    world.shopWire,
    world.lan.wire,
    ...(world.provider ? [world.provider.wire] : []),
  ]
  const keys = keyTroubles(world, chance)
  let isOver = false
  let isBackedUp = false
  /** Once in a world: whoever does it twice within minutes has two copies. */
  let isRolledBack = false
  let isEnrolled = false

  const note = (what: string) => core.trace.note('trouble', what)
  const forAWhile = (undo: () => void) =>
    void core.scheduler.after(chance.between(100, troubleLastsMs), () => {
      if (!isOver) undo()
    })

  const acts: Record<Trouble, () => void> = {
    weather() {
      const wire = chance.one(wires)
      wire.weather = {
        lose: chance.next() * 0.3,
        twice: chance.next() * 0.3,
        delayMs: chance.between(1, 500),
        slow: chance.next() * 0.2,
        slowMs: chance.one([1_000, 20_000, 300_000]),
      }
      note('bad weather')
      forAWhile(() => void (wire.weather = FINE_WEATHER))
    },
    partition() {
      const agent = chance.one(agents)
      note(`${agent.name} is cut off`)
      agent.wire.cut()
      forAWhile(() => agent.wire.restore())
    },
    'half-open'() {
      const wire = chance.one(wires)
      note('nothing comes back')
      wire.halfOpen()
      forAWhile(() => wire.restore())
    },
    broker() {
      note('the broker restarts')
      cloud.running?.broker.restart()
    },
    'agent-crash'() {
      const agent = chance.one(agents)
      agent.crash({ powerCut: chance.happens(0.5) })
      if (chance.happens(0.2)) world.keepDown(agent.name, chance.between(1_000, troubleLastsMs))
    },
    'cloud-crash'() {
      cloud.crash({ powerCut: chance.happens(0.5) })
      if (chance.happens(0.2)) world.keepDown('cloud', chance.between(1_000, troubleLastsMs))
    },
    restart() {
      const node = chance.one([cloud, ...agents])
      node.stop().catch((error: unknown) => {
        if (!isDiskFault(error)) core.violate('fault', `a stop failed: ${String(error)}`)
      })
    },
    'agent-disk': () => chance.one(agents).disk.failNext(chance.one(['full', 'io-lost', 'io-kept'])),
    'cloud-disk': () => cloud.disk.failNext(chance.one(['full', 'io-lost', 'io-kept'])),
    'agent-clock'() {
      const { machine } = chance.one(agents)
      machine.drift(chance.between(-200, 200))
      const jump = chance.one([-1, 1]) * chance.one([1_000, 60_000, 3_600_000, 86_400_000, 730 * 86_400_000])
      note(`${machine.name}'s wall clock jumps ${jump} ms`)
      machine.jump(jump)
      if (chance.happens(0.3)) machine.putRight()
    },
    'cloud-clock'() {
      note('the cloud’s wall clock jumps')
      world.onClock()
      cloud.machine.jump(chance.one([-1, 1]) * chance.one([1_000, 30_000, 120_000]))
      forAWhile(() => {
        world.onClock()
        cloud.machine.putRight()
      })
    },
    devices() {
      actuators.trouble = chance.next()
      forAWhile(() => void (actuators.trouble = 0))
    },
    receiver() {
      receiver.trouble = chance.next()
      forAWhile(() => void (receiver.trouble = 0))
    },
    provider() {
      const { provider } = world
      if (!provider) return
      note('the payment service provider has troubles')
      provider.trouble = chance.next()
      forAWhile(() => void (provider.trouble = 0))
    },
    lan() {
      note('the agents do not reach each other')
      world.lan.wire.cut()
      forAWhile(() => world.lan.wire.restore())
    },
    restore() {
      if (isBackedUp) return
      isBackedUp = true
      note('a backup of the cloud is made')
      const restore = world.backUpCloud()
      keys.backedUp()
      core.scheduler.after(chance.between(1_000, troubleLastsMs), () => {
        if (isOver) return
        note('the cloud is put back to its backup')
        world.onClock()
        restore()
        isBackedUp = false
      })
    },
    enrol() {
      if (isEnrolled) return
      isEnrolled = true
      world.enrolments.enrolAnew(chance.one(agents))
    },
    moves: () => world.moves?.move(),
    liar: () => world.liar?.lie(),
    emergency() {
      const { emergencies } = world
      if (!emergencies) return
      if (chance.happens(0.7)) {
        emergencies.press()
        forAWhile(emergencies.clear)
      } else {
        emergencies.unplug()
        forAWhile(emergencies.plug)
      }
    },
    // Of one that people meet: a third agent has no device.
    copy: () => world.copies.make(chance.one(agents.slice(0, 2))),
    keys: () => (chance.happens(0.6) ? keys.rotateSigningKey() : keys.rotateAgentKey()),
    rollback() {
      const agent = chance.one(agents)
      const putBack = world.copyAgent(agent)
      core.scheduler.after(chance.between(1_000, troubleLastsMs), () => {
        if (isOver || isRolledBack) return
        isRolledBack = true
        note(`${agent.name} is put back to an old copy of its disk`)
        if (chance.happens(0.5)) agent.wire.cut()
        putBack()
        forAWhile(() => agent.wire.restore())
      })
    },
    home() {
      const { storeId } = world.shop
      const move = (home: string) => void world.manager.call('moveReceiptHome', { storeId, home }, { tries: 3 })
      const to = chance.one(agents)
      if (chance.happens(0.3)) return move(chance.one([to.identity.agentId, 'cloud']))
      // The former home is away when it stops to be one, and the new one as soon as it has heard.
      const from = agents.find((agent) => agent !== to) ?? to
      note(`the home moves to ${to.name} while ${from.name} is cut off`)
      from.wire.cut()
      core.scheduler.after(chance.between(500, 6_000), () => move(to.identity.agentId))
      core.scheduler.after(chance.between(1_000, 9_000), () => {
        if (!isOver) to.wire.cut()
      })
      for (const { wire } of agents)
        core.scheduler.after(chance.between(6_000, 6_000 + troubleLastsMs), () => wire.restore())
    },
  }

  function next(): void {
    core.scheduler.after(chance.between(1, troubleEveryMs * 2), () => {
      if (isOver) return
      acts[chance.one(kinds)]()
      next()
    })
  }

  // Processes die at their effects only where crashes belong to the world.
  if (kinds.includes('agent-crash') || kinds.includes('cloud-crash')) core.crashRate = chance.one([0, 0.001, 0.01])
  if (kinds.length > 0) next()
  return {
    heal() {
      isOver = true
      note('all is well again')
      world.onClock()
      core.crashRate = 0
      for (const wire of wires) {
        wire.restore()
        wire.weather = FINE_WEATHER
      }
      for (const node of [cloud, ...agents]) {
        node.disk.heal()
        node.machine.putRight()
        node.machine.drift(0)
      }
      actuators.trouble = 0
      receiver.trouble = 0
      world.provider?.heal()
      world.liar?.stop()
      world.emergencies?.heal()
    },
  }
}

/** Whether a word names a kind of trouble. */
export function isTrouble(name: string): name is Trouble {
  return (TROUBLES as readonly string[]).includes(name)
}
