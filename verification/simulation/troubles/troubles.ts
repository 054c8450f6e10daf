import type { Chance } from '../virtual/chance.ts'
import { isDiskFault } from '../virtual/disk.ts'
import type { Trouble } from './kinds.ts'
import { keyTroubles, type KeyTroubles } from './key-troubles.ts'
import type { Pace } from '../virtual/pace.ts'
import { FINE_WEATHER, type Wire } from '../virtual/wire.ts'
import type { Surroundings } from './surroundings.ts'

export interface Troubles {
  /** From now on nothing goes wrong any more, and what did is put right. */
  heal(): void
}

/** Starts to make trouble, as often and for as long as the pace says. */
export function makeTroubles(kinds: readonly Trouble[], world: Surroundings, pace: Pace): Troubles {
  return new TroubleMaker(kinds, world, pace)
}

class TroubleMaker implements Troubles {
  readonly #kinds: readonly Trouble[]
  readonly #world: Surroundings
  readonly #pace: Pace
  readonly #chance: Chance
  readonly #wires: readonly Wire[]
  readonly #keys: KeyTroubles
  #isOver = false
  #isBackedUp = false
  /** Once in a world: whoever does it twice within minutes has two copies. */
  #isRolledBack = false
  #isEnrolled = false
  readonly #acts: Record<Trouble, () => void>

  constructor(kinds: readonly Trouble[], world: Surroundings, pace: Pace) {
    this.#kinds = kinds
    this.#world = world
    this.#pace = pace
    this.#chance = this.#world.core.chance.fork('troubles')
    this.#wires = [
      ...this.#world.agents.map((a) => a.wire),
      this.#world.shopWire,
      this.#world.lan.wire,
      ...(this.#world.provider ? [this.#world.provider.wire] : []),
    ]
    this.#keys = keyTroubles(this.#world, this.#chance)
    this.#acts = {
      weather: this.#makeWeather,
      partition: this.#makePartition,
      'half-open': this.#makeHalfOpen,
      broker: this.#makeBroker,
      'agent-crash': this.#makeAgentCrash,
      'cloud-crash': this.#makeCloudCrash,
      restart: this.#makeRestart,
      'agent-disk': () =>
        this.#chance.one(this.#world.agents).disk.failNext(this.#chance.one(['full', 'io-lost', 'io-kept'])),
      'cloud-disk': () => this.#world.cloud.disk.failNext(this.#chance.one(['full', 'io-lost', 'io-kept'])),
      'agent-clock': this.#makeAgentClock,
      'cloud-clock': this.#makeCloudClock,
      devices: this.#makeDevices,
      receiver: this.#makeReceiver,
      provider: this.#makeProvider,
      lan: this.#makeLan,
      restore: this.#makeRestore,
      enrol: this.#makeEnrol,
      moves: () => this.#world.moves?.move(),
      liar: () => this.#world.liar?.lie(),
      emergency: this.#makeEmergency,
      // Of one that people meet: a third agent has no device.
      copy: () => this.#world.copies.make(this.#chance.one(this.#world.agents.slice(0, 2))),
      keys: () => (this.#chance.happens(0.6) ? this.#keys.rotateSigningKey() : this.#keys.rotateAgentKey()),
      rollback: this.#makeRollback,
      home: this.#makeHome,
    }
    // Processes die at their effects only where crashes belong to the world.
    if (this.#kinds.includes('agent-crash') || this.#kinds.includes('cloud-crash'))
      this.#world.core.crashRate = this.#chance.one([0, 0.001, 0.01])
    if (this.#kinds.length > 0) this.#next()
  }

  heal(): void {
    this.#isOver = true
    this.#note('all is well again')
    this.#world.restarts.disturb()
    this.#world.core.crashRate = 0
    for (const wire of this.#wires) {
      wire.restore()
      wire.weather = FINE_WEATHER
    }
    for (const node of [this.#world.cloud, ...this.#world.agents]) {
      node.disk.heal()
      node.machine.putRight()
      node.machine.drift(0)
    }
    this.#world.actuators.trouble = 0
    this.#world.receiver.trouble = 0
    this.#world.provider?.heal()
    this.#world.liar?.stop()
    this.#world.emergencies?.heal()
  }

  #note(what: string) {
    return this.#world.core.trace.note('trouble', what)
  }

  #forAWhile(undo: () => void) {
    this.#world.core.scheduler.after(this.#chance.between(100, this.#pace.troubleLastsMs), () => {
      if (!this.#isOver) undo()
    })
  }

  readonly #makeWeather = (): void => {
    const wire = this.#chance.one(this.#wires)
    wire.weather = {
      lose: this.#chance.next() * 0.3,
      twice: this.#chance.next() * 0.3,
      delayMs: this.#chance.between(1, 500),
      slow: this.#chance.next() * 0.2,
      slowMs: this.#chance.one([1_000, 20_000, 300_000]),
    }
    this.#note('bad weather')
    this.#forAWhile(() => void (wire.weather = FINE_WEATHER))
  }

  readonly #makePartition = (): void => {
    const agent = this.#chance.one(this.#world.agents)
    this.#note(`${agent.name} is cut off`)
    agent.wire.cut()
    this.#forAWhile(() => agent.wire.restore())
  }

  readonly #makeHalfOpen = (): void => {
    const wire = this.#chance.one(this.#wires)
    this.#note('nothing comes back')
    wire.halfOpen()
    this.#forAWhile(() => wire.restore())
  }

  readonly #makeBroker = (): void => {
    this.#note('the broker restarts')
    this.#world.cloud.running?.broker.restart()
  }

  readonly #makeAgentCrash = (): void => {
    const agent = this.#chance.one(this.#world.agents)
    agent.crash({ powerCut: this.#chance.happens(0.5) })
    if (this.#chance.happens(0.2))
      this.#world.restarts.keepDown(agent.name, this.#chance.between(1_000, this.#pace.troubleLastsMs))
  }

  readonly #makeCloudCrash = (): void => {
    this.#world.cloud.crash({ powerCut: this.#chance.happens(0.5) })
    if (this.#chance.happens(0.2))
      this.#world.restarts.keepDown('cloud', this.#chance.between(1_000, this.#pace.troubleLastsMs))
  }

  readonly #makeRestart = (): void => {
    const node = this.#chance.one([this.#world.cloud, ...this.#world.agents])
    node.stop().catch((error: unknown) => {
      if (!isDiskFault(error)) this.#world.core.violate('fault', `a stop failed: ${String(error)}`)
    })
  }

  readonly #makeAgentClock = (): void => {
    const { machine } = this.#chance.one(this.#world.agents)
    machine.drift(this.#chance.between(-200, 200))
    const jump = this.#chance.one([-1, 1]) * this.#chance.one([1_000, 60_000, 3_600_000, 86_400_000, 730 * 86_400_000])
    this.#note(`${machine.name}'s wall clock jumps ${jump} ms`)
    machine.jump(jump)
    if (this.#chance.happens(0.3)) machine.putRight()
  }

  readonly #makeCloudClock = (): void => {
    this.#note('the cloud’s wall clock jumps')
    this.#world.restarts.disturb()
    this.#world.cloud.machine.jump(this.#chance.one([-1, 1]) * this.#chance.one([1_000, 30_000, 120_000]))
    this.#forAWhile(() => {
      this.#world.restarts.disturb()
      this.#world.cloud.machine.putRight()
    })
  }

  readonly #makeDevices = (): void => {
    this.#world.actuators.trouble = this.#chance.next()
    this.#forAWhile(() => void (this.#world.actuators.trouble = 0))
  }

  readonly #makeReceiver = (): void => {
    this.#world.receiver.trouble = this.#chance.next()
    this.#forAWhile(() => void (this.#world.receiver.trouble = 0))
  }

  readonly #makeProvider = (): void => {
    const { provider } = this.#world
    if (!provider) return
    this.#note('the payment service provider has troubles')
    provider.trouble = this.#chance.next()
    this.#forAWhile(() => void (provider.trouble = 0))
  }

  readonly #makeLan = (): void => {
    this.#note('the agents do not reach each other')
    this.#world.lan.wire.cut()
    this.#forAWhile(() => this.#world.lan.wire.restore())
  }

  readonly #makeRestore = (): void => {
    if (this.#isBackedUp) return
    this.#isBackedUp = true
    this.#note('a backup of the cloud is made')
    const restore = this.#world.backups.make()
    this.#keys.backedUp()
    this.#world.core.scheduler.after(this.#chance.between(1_000, this.#pace.troubleLastsMs), () => {
      if (this.#isOver) return
      this.#note('the cloud is put back to its backup')
      this.#world.restarts.disturb()
      restore()
      this.#isBackedUp = false
    })
  }

  readonly #makeEnrol = (): void => {
    if (this.#isEnrolled) return
    this.#isEnrolled = true
    this.#world.enrolments.enrolAnew(this.#chance.one(this.#world.agents))
  }

  readonly #makeEmergency = (): void => {
    const { emergencies } = this.#world
    if (!emergencies) return
    if (this.#chance.happens(0.7)) {
      emergencies.press()
      this.#forAWhile(emergencies.clear)
    } else {
      emergencies.unplug()
      this.#forAWhile(emergencies.plug)
    }
  }

  readonly #makeRollback = (): void => {
    const agent = this.#chance.one(this.#world.agents)
    const putBack = this.#world.backups.copyAgent(agent)
    this.#world.core.scheduler.after(this.#chance.between(1_000, this.#pace.troubleLastsMs), () => {
      if (this.#isOver || this.#isRolledBack) return
      this.#isRolledBack = true
      this.#note(`${agent.name} is put back to an old copy of its disk`)
      if (this.#chance.happens(0.5)) agent.wire.cut()
      putBack()
      this.#forAWhile(() => agent.wire.restore())
    })
  }

  readonly #makeHome = (): void => {
    const { storeId } = this.#world.shop
    const move = (home: string) => void this.#world.manager.call('moveReceiptHome', { storeId, home }, { tries: 3 })
    const to = this.#chance.one(this.#world.agents)
    if (this.#chance.happens(0.3)) return move(this.#chance.one([to.identity.agentId, 'cloud']))
    // The former home is away when it stops to be one, and the new one as soon as it has heard.
    const from = this.#world.agents.find((agent) => agent !== to) ?? to
    this.#note(`the home moves to ${to.name} while ${from.name} is cut off`)
    from.wire.cut()
    this.#world.core.scheduler.after(this.#chance.between(500, 6_000), () => move(to.identity.agentId))
    this.#world.core.scheduler.after(this.#chance.between(1_000, 9_000), () => {
      if (!this.#isOver) to.wire.cut()
    })
    for (const { wire } of this.#world.agents)
      this.#world.core.scheduler.after(this.#chance.between(6_000, 6_000 + this.#pace.troubleLastsMs), () =>
        wire.restore(),
      )
  }

  #next(): void {
    this.#world.core.scheduler.after(this.#chance.between(1, this.#pace.troubleEveryMs * 2), () => {
      if (this.#isOver) return
      this.#acts[this.#chance.one(this.#kinds)]()
      this.#next()
    })
  }
}
