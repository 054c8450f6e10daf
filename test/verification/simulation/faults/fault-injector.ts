import type { Chance } from '../virtual/chance.ts'
import { isDiskFault } from '../virtual/disk.ts'
import type { Fault } from './fault-kinds.ts'
import { keyChanges, type KeyChanges } from './key-changes.ts'
import type { Pace } from '../virtual/pace.ts'
import { NO_MESSAGE_FAULTS, type Wire } from '../virtual/wire.ts'
import type { FaultTargets } from './fault-targets.ts'

export interface FaultInjector {
  /** Stops injecting faults and repairs everything. */
  heal(): void
}

/** Starts to inject faults at the pace of the run. */
export function injectFaults(kinds: readonly Fault[], world: FaultTargets, pace: Pace): FaultInjector {
  return new ScheduledFaults(kinds, world, pace)
}

class ScheduledFaults implements FaultInjector {
  readonly #kinds: readonly Fault[]
  readonly #targets: FaultTargets
  readonly #pace: Pace
  readonly #chance: Chance
  readonly #wires: readonly Wire[]
  readonly #keys: KeyChanges
  #isOver = false
  #isBackedUp = false
  /** At most one rollback per run, because two rollbacks within minutes would be a fork. */
  #isRolledBack = false
  #isEnrolled = false
  readonly #inject: Record<Fault, () => void>

  constructor(kinds: readonly Fault[], world: FaultTargets, pace: Pace) {
    this.#kinds = kinds
    this.#targets = world
    this.#pace = pace
    this.#chance = this.#targets.core.chance.fork('troubles')
    this.#wires = [
      ...this.#targets.agents.map((a) => a.wire),
      this.#targets.shopWire,
      this.#targets.lan.wire,
      ...(this.#targets.provider ? [this.#targets.provider.wire] : []),
      ...(this.#targets.tills ? [this.#targets.tills.wire] : []),
    ]
    this.#keys = keyChanges(this.#targets, this.#chance)
    this.#inject = {
      weather: this.#makeMessageFaults,
      partition: this.#makePartition,
      'half-open': this.#makeHalfOpen,
      broker: this.#makeBroker,
      'agent-crash': this.#makeAgentCrash,
      'cloud-crash': this.#makeCloudCrash,
      restart: this.#makeRestart,
      'agent-disk': () =>
        this.#chance.one(this.#targets.agents).disk.failNext(this.#chance.one(['full', 'io-lost', 'io-kept'])),
      'cloud-disk': () => this.#targets.cloud.disk.failNext(this.#chance.one(['full', 'io-lost', 'io-kept'])),
      'agent-clock': this.#makeAgentClock,
      'cloud-clock': this.#makeCloudClock,
      devices: this.#makeDevices,
      receiver: this.#makeReceiver,
      provider: this.#makeProvider,
      lan: this.#makeLan,
      restore: this.#makeRestore,
      enrol: this.#makeEnrol,
      moves: () => this.#targets.moves?.move(),
      liar: () => this.#targets.liar?.lie(),
      emergency: this.#makeEmergency,
      tills: () => this.#targets.tills?.disturb(),
      // Copies only an agent with devices. The third agent has none.
      copy: () => this.#targets.copies.make(this.#chance.one(this.#targets.agents.slice(0, 2))),
      keys: () => (this.#chance.happens(0.6) ? this.#keys.rotateSigningKey() : this.#keys.rotateAgentKey()),
      rollback: this.#makeRollback,
      home: this.#makeHome,
    }
    // Processes die at commits and answers only in runs with crash faults.
    if (this.#kinds.includes('agent-crash') || this.#kinds.includes('cloud-crash'))
      this.#targets.core.crashRate = this.#chance.one([0, 0.001, 0.01])
    if (this.#kinds.length > 0) this.#next()
  }

  heal(): void {
    this.#isOver = true
    this.#note('all faults end')
    this.#targets.restarts.countDisturbance()
    this.#targets.core.crashRate = 0
    for (const wire of this.#wires) {
      wire.restore()
      wire.messageFaults = NO_MESSAGE_FAULTS
    }
    for (const node of [this.#targets.cloud, ...this.#targets.agents]) {
      node.disk.heal()
      node.machine.correctClock()
      node.machine.drift(0)
    }
    this.#targets.actuators.failureRate = 0
    this.#targets.receiver.failureRate = 0
    this.#targets.provider?.heal()
    this.#targets.liar?.stop()
    this.#targets.emergencies?.heal()
  }

  #note(what: string) {
    return this.#targets.core.trace.add('fault', what)
  }

  #undoLater(undo: () => void) {
    this.#targets.core.scheduler.after(this.#chance.between(100, this.#pace.faultLastsMs), () => {
      if (!this.#isOver) undo()
    })
  }

  readonly #makeMessageFaults = (): void => {
    const wire = this.#chance.one(this.#wires)
    wire.messageFaults = {
      lose: this.#chance.next() * 0.3,
      twice: this.#chance.next() * 0.3,
      delayMs: this.#chance.between(1, 500),
      slow: this.#chance.next() * 0.2,
      slowMs: this.#chance.one([1_000, 20_000, 300_000]),
    }
    this.#note('messages get lost, duplicated or late')
    this.#undoLater(() => void (wire.messageFaults = NO_MESSAGE_FAULTS))
  }

  readonly #makePartition = (): void => {
    const agent = this.#chance.one(this.#targets.agents)
    this.#note(`${agent.name} is disconnected`)
    agent.wire.cut()
    this.#undoLater(() => agent.wire.restore())
  }

  readonly #makeHalfOpen = (): void => {
    const wire = this.#chance.one(this.#wires)
    this.#note('no message comes back')
    wire.halfOpen()
    this.#undoLater(() => wire.restore())
  }

  readonly #makeBroker = (): void => {
    this.#note('the broker restarts')
    this.#targets.cloud.running?.broker.restart()
  }

  readonly #makeAgentCrash = (): void => {
    const agent = this.#chance.one(this.#targets.agents)
    agent.crash({ powerCut: this.#chance.happens(0.5) })
    if (this.#chance.happens(0.2))
      this.#targets.restarts.keepDown(agent.name, this.#chance.between(1_000, this.#pace.faultLastsMs))
  }

  readonly #makeCloudCrash = (): void => {
    this.#targets.cloud.crash({ powerCut: this.#chance.happens(0.5) })
    if (this.#chance.happens(0.2))
      this.#targets.restarts.keepDown('cloud', this.#chance.between(1_000, this.#pace.faultLastsMs))
  }

  readonly #makeRestart = (): void => {
    const node = this.#chance.one([this.#targets.cloud, ...this.#targets.agents])
    node.stop().catch((error: unknown) => {
      if (!isDiskFault(error)) this.#targets.core.violate('fault', `a stop failed: ${String(error)}`)
    })
  }

  readonly #makeAgentClock = (): void => {
    const { machine } = this.#chance.one(this.#targets.agents)
    machine.drift(this.#chance.between(-200, 200))
    const jump = this.#chance.one([-1, 1]) * this.#chance.one([1_000, 60_000, 3_600_000, 86_400_000, 730 * 86_400_000])
    this.#note(`${machine.name}'s wall clock jumps ${jump} ms`)
    machine.jumpClock(jump)
    if (this.#chance.happens(0.3)) machine.correctClock()
  }

  readonly #makeCloudClock = (): void => {
    this.#note('the cloud’s wall clock jumps')
    this.#targets.restarts.countDisturbance()
    this.#targets.cloud.machine.jumpClock(this.#chance.one([-1, 1]) * this.#chance.one([1_000, 30_000, 120_000]))
    this.#undoLater(() => {
      this.#targets.restarts.countDisturbance()
      this.#targets.cloud.machine.correctClock()
    })
  }

  readonly #makeDevices = (): void => {
    this.#targets.actuators.failureRate = this.#chance.next()
    this.#undoLater(() => void (this.#targets.actuators.failureRate = 0))
  }

  readonly #makeReceiver = (): void => {
    this.#targets.receiver.failureRate = this.#chance.next()
    this.#undoLater(() => void (this.#targets.receiver.failureRate = 0))
  }

  readonly #makeProvider = (): void => {
    const { provider } = this.#targets
    if (!provider) return
    this.#note('the payment service provider fails')
    provider.failureRate = this.#chance.next()
    this.#undoLater(() => void (provider.failureRate = 0))
  }

  readonly #makeLan = (): void => {
    this.#note('the network of the store fails')
    this.#targets.lan.wire.cut()
    this.#undoLater(() => this.#targets.lan.wire.restore())
  }

  readonly #makeRestore = (): void => {
    if (this.#isBackedUp) return
    this.#isBackedUp = true
    this.#note('a backup of the cloud is made')
    const restore = this.#targets.backups.make()
    this.#keys.backedUp()
    this.#targets.core.scheduler.after(this.#chance.between(1_000, this.#pace.faultLastsMs), () => {
      if (this.#isOver) return
      this.#note('the cloud is restored from its backup')
      this.#targets.restarts.countDisturbance()
      restore()
      this.#targets.enrolments.afterRestore()
      this.#isBackedUp = false
    })
  }

  readonly #makeEnrol = (): void => {
    if (this.#isEnrolled) return
    this.#isEnrolled = true
    this.#targets.enrolments.reEnrol(this.#chance.one(this.#targets.agents))
  }

  readonly #makeEmergency = (): void => {
    const { emergencies } = this.#targets
    if (!emergencies) return
    if (this.#chance.happens(0.7)) {
      emergencies.press()
      this.#undoLater(emergencies.clear)
    } else {
      emergencies.unplug()
      this.#undoLater(emergencies.plug)
    }
  }

  readonly #makeRollback = (): void => {
    const agent = this.#chance.one(this.#targets.agents)
    const restore = this.#targets.backups.copyAgent(agent)
    this.#targets.core.scheduler.after(this.#chance.between(1_000, this.#pace.faultLastsMs), () => {
      if (this.#isOver || this.#isRolledBack) return
      this.#isRolledBack = true
      this.#note(`${agent.name} is restored from an old copy of its disk`)
      if (this.#chance.happens(0.5)) agent.wire.cut()
      restore()
      this.#undoLater(() => agent.wire.restore())
    })
  }

  readonly #makeHome = (): void => {
    const { storeId } = this.#targets.shop
    const move = (home: string) => void this.#targets.manager.call('moveReceiptHome', { storeId, home }, { tries: 3 })
    const to = this.#chance.one(this.#targets.agents)
    if (this.#chance.happens(0.3)) return move(this.#chance.one([to.identity.agentId, 'cloud']))
    // The former home is offline during the move. The new home is disconnected soon after the move.
    const from = this.#targets.agents.find((agent) => agent !== to) ?? to
    this.#note(`the home moves to ${to.name} while ${from.name} is disconnected`)
    from.wire.cut()
    this.#targets.core.scheduler.after(this.#chance.between(500, 6_000), () => move(to.identity.agentId))
    this.#targets.core.scheduler.after(this.#chance.between(1_000, 9_000), () => {
      if (!this.#isOver) to.wire.cut()
    })
    for (const { wire } of this.#targets.agents)
      this.#targets.core.scheduler.after(this.#chance.between(6_000, 6_000 + this.#pace.faultLastsMs), () =>
        wire.restore(),
      )
  }

  #next(): void {
    this.#targets.core.scheduler.after(this.#chance.between(1, this.#pace.faultEveryMs * 2), () => {
      if (this.#isOver) return
      this.#inject[this.#chance.one(this.#kinds)]()
      this.#next()
    })
  }
}
