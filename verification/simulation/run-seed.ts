import type { Database as Connection } from 'better-sqlite3'
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { AgentConfig } from '../../edge-agent/config.ts'
import type { Identity } from '../../edge-agent/identity/identity.ts'
import { actuators } from './nodes/actuators.ts'
import { agentNode, type AgentNode } from './nodes/agent-node.ts'
import { answerOracle } from './oracles/answer-oracle.ts'
import { backups } from './troubles/backups.ts'
import { chanceOf } from './virtual/chance.ts'
import { cloudNode } from './nodes/cloud-node.ts'
import { cloudOracle } from './oracles/cloud-oracle.ts'
import { copies } from './troubles/copies.ts'
import type { Core, Violation } from './virtual/core.ts'
import { customers } from './people/customers.ts'
import { deviceMoves } from './troubles/device-moves.ts'
import { isDiskFault } from './virtual/disk.ts'
import { checkEnd, isForked, isPutBack, isSettled, type EndParts } from './end-checks.ts'
import { emergencies } from './nodes/emergencies.ts'
import { enrolments } from './troubles/enrolments.ts'
import { PSP_NAMES } from '../../simulators/services/psp-books.ts'
import { givenOracle } from './oracles/given-oracle.ts'
import { homeOracle, receiptEnd } from './oracles/home-oracle.ts'
import { newLan } from './virtual/lan.ts'
import { liar } from './troubles/liar.ts'
import { ledgerOracle, type LedgerOracle } from './oracles/ledger-oracle.ts'
import { merchant, type Called } from './nodes/merchant.ts'
import { moneyOracle } from './oracles/money-oracle.ts'
import { provider, type Provider } from './nodes/provider.ts'
import { receiver } from './nodes/receiver.ts'
import { rulesOracle } from './oracles/rules-oracle.ts'
import { scheduler } from './virtual/scheduler.ts'
import type { Shops } from './nodes/shops.ts'
import { liveTill, testTill } from './people/till.ts'
import { paceOf } from './virtual/pace.ts'
import { newTrace } from './virtual/trace.ts'
import { troublesOf, type Trouble } from './troubles/kinds.ts'
import { makeTroubles } from './troubles/troubles.ts'
import { newWire } from './virtual/wire.ts'

export interface SeedOptions {
  seed: number
  /** Trouble goes on for longer and everything must have come right in the end. */
  liveness: boolean
  /** In the place of what the seed would draw. */
  troubles?: readonly Trouble[]
  /** Lines of the trace that are kept. */
  keepLines?: number
}

export interface SeedResult {
  seed: number
  violations: readonly Violation[]
  /** The same for two runs in which the same happened. */
  hash: string
  troubles: readonly Trouble[]
  steps: number
  /** How long the world existed, ms of its time. */
  virtualMs: number
  lines: readonly string[]
}

const MINUTE_MS = 60_000
/** A process dies so much rather while a device moves than at any other effect: there is the most to lose. */
const AS_DEVICE_MOVES = 10
/** Troubles in which it matters who is asked, and how often. */
const TRYING: ReadonlySet<Trouble> = new Set<Trouble>(['home', 'restore', 'rollback', 'enrol', 'copy', 'moves'])
/** Until everybody has found everybody, ms. */
const WARM_UP_MS = 4_000
/** Once all is well everything must have arrived within (research, liveness mode). */
const HEALED_WITHIN_MS = 30 * MINUTE_MS

/** The longest for which the ledger of an agent that was put back is doubted, and some. */
const DOUBTED_MS = 12 * MINUTE_MS

/** Runs one world: the same seed, the same world. The first violation ends it. */
export async function runSeed(shops: Shops, options: SeedOptions): Promise<SeedResult> {
  const { seed, liveness } = options
  const chance = chanceOf(seed)
  const plan = chance.fork('plan')
  const kinds = options.troubles ?? troublesOf(plan)
  const isShared = plan.happens(0.7) || kinds.includes('home') || kinds.includes('moves') || kinds.includes('liar')
  const isLarge = plan.happens(kinds.includes('home') ? 0.4 : 0.1)
  // The third of a world with a liar is the liar.
  const count = isShared ? (isLarge && !kinds.includes('liar') ? 3 : 2) : 1
  const enrolled = kinds.includes('liar') ? 3 : Math.max(2, count)
  const shop = await shops.of({ isLive: kinds.includes('provider'), agents: enrolled })
  const violations: Violation[] = []
  const clock = scheduler(shop.startMs, chance.fork('scheduler'))
  const trace = newTrace(() => clock.nowMs, shop.startMs, options.keepLines ?? 60)
  const folder = mkdtempSync(join(shop.templates.cloud, '..', `seed-${seed}-`))
  const core: Core = {
    scheduler: clock,
    chance,
    trace,
    folder,
    violate(invariant, detail) {
      trace.note('VIOLATED', `${invariant}: ${detail}`)
      violations.push({ invariant, detail, atMs: clock.nowMs - shop.startMs })
    },
    crashRate: 0,
  }
  const pace = paceOf(plan, liveness)
  const isOver = () => violations.length > 0

  let disturbances = 0
  const down = new Map<string, number>()
  const restarts = chance.fork('restarts')
  const inMind = (name: string, start: () => void) => {
    disturbances++
    const wait = () => {
      const until = down.get(name) ?? 0
      clock.after(Math.max(until - clock.nowMs, restarts.between(200, 5_000)), start)
    }
    // A moment later: whoever cut the power may want it to stay off.
    clock.after(1, wait)
  }

  const saved = backups(() => ({
    core,
    cloud,
    cloudWatch,
    people,
    answers,
    receiver: posts,
    homes,
    ledgers,
    isClockWrong: kinds.includes('cloud-clock'),
  }))
  const psp = shop.isLive ? provider(core, plan.one(PSP_NAMES), shop, () => cloud) : undefined
  const money =
    psp &&
    moneyOracle(core, psp, {
      isEveryAgentHere: count === shop.agents.length,
      isClockSure: !kinds.some((kind) => kind === 'agent-clock' || kind === 'cloud-clock' || kind === 'rollback'),
    })
  const lyingAs = kinds.includes('liar') ? shop.agents[2]?.identity : undefined
  const gifts = givenOracle(core, lyingAs?.agentId)
  const onGrant = (db: Connection, nonce: string) => {
    saved.granted(db, nonce)
    gifts.granted(db, nonce)
  }
  const cloudWatch = cloudOracle(core, { onGrant, ...(money && { onPaid: money.paid }) })
  const answers = answerOracle(core)
  const posts = receiver(core, () => disturbances)
  const startCloud = () => {
    if (cloud.machine.isUp) return
    cloud.start().catch((error: unknown) => {
      // As `untag cloud` does: it says why, and ends; whoever keeps it running starts it again.
      if (isDiskFault(error)) cloud.crash({ powerCut: false })
      else core.violate('fault', `the cloud does not start: ${(error as Error).stack}`)
    })
  }
  const cloud = cloudNode({
    core,
    keyFiles: shop.keyFiles,
    outgoing: {
      send: (asked, signal) =>
        (psp && asked.url.startsWith(psp.books.baseUrl) ? psp : posts).outgoing.send(asked, signal),
    },
    template: shop.templates.cloud,
    onCommit(connection) {
      cloudWatch.committed(connection)
      gifts.committed(connection)
      lying?.cloudCommitted(connection)
    },
    // What could not be written down is done again.
    onDiskFault: () => void disturbances++,
    onAnswer: answers.answered,
    onEnded: () => inMind('cloud', startCloud),
  })

  const agents: AgentNode[] = []
  const ledgers = new Map<string, LedgerOracle>()
  const panel = kinds.includes('emergency') ? emergencies(core, shop.devices) : undefined
  const devices = actuators({
    ...core,
    ...(panel && { emergencies: panel }),
    onRelease(name, deviceId) {
      ledgers.get(name)?.released(deviceId)
      for (const node of [...agents, ...cloned.nodes])
        if (node.name === name) node.maybeDie('as a device moves', AS_DEVICE_MOVES)
    },
  })
  const lan = newLan(core)
  const homes = homeOracle(core, ledgers, (cti) => receiptEnd(cloud.disk.reading, cti))
  /** A machine with an agent on it, and all that watches it. */
  function install(
    name: string,
    identity: Identity,
    config: () => AgentConfig,
    template: string,
    isThere: () => boolean,
  ): AgentNode {
    const ledger = ledgerOracle(name, core, {
      ...cloudWatch,
      lostWith: saved.lostWith,
      onRow({ body: { evidence } }) {
        if (money && evidence && cloud.disk.reading) money.used(cloud.disk.reading, evidence)
      },
      isClockSure: () => !kinds.includes('cloud-clock') && node.wasInTouch,
    })
    ledgers.set(name, ledger)
    const start = () => {
      if (node.machine.isUp || !isThere()) return
      try {
        node.start()
      } catch (error) {
        if (isDiskFault(error)) node.crash({ powerCut: false })
        else core.violate('fault', `${name} does not start: ${(error as Error).stack}`)
      }
    }
    const node = agentNode({
      core,
      name,
      identity,
      config,
      template,
      cloud,
      wire: newWire(name, core),
      lan,
      actuators: devices,
      onCommit(connection) {
        ledger.committed(connection)
        homes.committed(node, connection)
        lying?.agentCommitted(node, connection)
      },
      onStart: ledger.processEnded,
      onEnded: () => inMind(name, start),
      onReplaced: ledger.takenOver,
    })
    return node
  }
  for (const [n, { identity, config }] of shop.agents.slice(0, count).entries()) {
    const name = `agent-${n + 1}`
    agents.push(
      install(
        name,
        identity,
        () => {
          const own = moves ? moves.configOf({ name }) : config
          return panel ? panel.configOf(own) : own
        },
        shop.templates.agents[n] ?? '',
        () => true,
      ),
    )
  }

  const shopWire = newWire('shop', core)
  const parts = { core, server: cloud, wire: shopWire }
  const manager = merchant({ ...parts, name: 'manager', apiKey: shop.key })
  const program = merchant({ ...parts, name: 'merchant', apiKey: shop.key })
  const moves = kinds.includes('moves') ? deviceMoves({ core, cloud, manager, shop, agents }) : undefined
  const lying =
    lyingAs &&
    liar({ core, cloud, manager, identity: lyingAs, agents, lan, taken: cloudWatch.taken, pauseMs: pace.hasteMs })
  const replaced = enrolments({ core, cloud, manager, shop, agents })
  const cloned = copies({
    core,
    cloud,
    manager,
    enrolments: replaced,
    ledgers,
    install(original, name, files, isThere) {
      const { config } = shop.agents[agents.indexOf(original)] ?? {}
      if (!config) throw new Error(`${original.name} is no agent of this shop`)
      const node = install(name, original.identity, () => config, files, isThere)
      ledgers.get(name)?.putBack(ledgers.get(original.name)?.rows.at(-1)?.seq ?? 0)
      inMind(name, () => node.start())
      return node
    },
    onTakenAway: homes.putBack,
  })
  const rules = rulesOracle({ core, reading: () => cloud.disk.reading, isCalm: false })
  const people = customers({
    rules,
    core,
    shop,
    merchant: program,
    vouch: (purchaseId) => money?.confirmed(purchaseId),
    till: psp ? liveTill(core, shop, program, psp) : testTill(program),
    stranger: merchant({ ...parts, name: 'stranger', apiKey: shop.foreignKey }),
    agents,
    pace,
    isTrying: kinds.some((kind) => TRYING.has(kind)),
    unseen: { restores: () => saved.restores, holderOf: (deviceId) => moves?.holderOf(deviceId), at: cloned.at },
  })
  const end: EndParts = { core, cloud, agents, ledgers, people, receiver: posts, money, shop }
  trace.note('world', `${count} agents, ${pace.name}, troubles: ${kinds.join(', ') || 'none'}`)

  /** The shop's manager says how it is paid. */
  async function configure({ name, books }: Provider): Promise<void> {
    let answer: Called | undefined
    void manager
      .call('configurePSP', { storeId: shop.storeId, provider: name, config: books.config() })
      .then((called) => void (answer = called))
    await clock.run(clock.nowMs + MINUTE_MS, () => isOver() || answer !== undefined)
    if (answer?.ok !== true) core.violate('fault', `the provider ${name} is not taken: ${JSON.stringify(answer)}`)
  }

  /** Lets the world go on until this is done. */
  async function atOnce(work: Promise<void>): Promise<void> {
    let isDone = false
    const done = () => void (isDone = true)
    work.then(done, done)
    await clock.run(clock.nowMs + MINUTE_MS, () => isOver() || isDone)
  }

  /** On a good day everything works, whatever was before. */
  async function probe(): Promise<void> {
    // A cloud whose clock has jumped signs nothing for a minute from when it has noticed, for which it looks twice a minute.
    if (kinds.includes('cloud-clock')) await clock.run(clock.nowMs + 2 * MINUTE_MS, isOver)
    // An agent whose ledger was put back not long ago needs the cloud's yes for all, and releases all the same; so it does afterwards.
    if (plan.happens(0.5)) await clock.run(clock.nowMs + DOUBTED_MS, () => isOver() || !isPutBack(cloud, clock.nowMs))
    let answer: { works: string | undefined } | undefined
    people.probe().then(
      (works) => void (answer = { works }),
      (error: unknown) => void (answer = { works: String(error) }),
    )
    await clock.run(clock.nowMs + MINUTE_MS, () => isOver() || answer !== undefined)
    if (answer?.works !== undefined) core.violate('liveness', answer.works)
    if (!answer && !isOver()) core.violate('liveness', 'a purchase takes over a minute')
  }

  try {
    startCloud()
    for (const node of agents) node.start()
    await clock.run(clock.nowMs + WARM_UP_MS, isOver)
    if (psp) await configure(psp)
    if (lying) await atOnce(lying.begin())
    const troubles = makeTroubles(
      kinds,
      {
        core,
        cloud,
        agents,
        shopWire,
        lan,
        shop,
        manager,
        actuators: devices,
        receiver: posts,
        provider: psp,
        enrolments: replaced,
        copies: cloned,
        moves,
        liar: lying,
        emergencies: panel,
        backUpCloud: saved.make,
        copyAgent: saved.copyAgent,
        onRevoked: answers.forget,
        keepDown: (name, ms) => void down.set(name, clock.nowMs + ms),
        onClock: () => void disturbances++,
      },
      pace,
    )
    let inside = pace.visitors
    for (let n = 0; n < pace.visitors; n++) {
      clock.after(plan.between(1, pace.comeWithinMs), () => {
        people
          .visit(`visitor-${n}`)
          .catch((error: unknown) => core.violate('fault', `a visit failed: ${(error as Error).stack}`))
          .finally(() => void inside--)
      })
    }
    // An empty shop teaches nothing.
    await clock.run(clock.nowMs + pace.comeWithinMs + pace.longestVisitMs, () => isOver() || inside === 0)
    const isCopied = () => cloned.underWay !== undefined
    if (!isOver() && (isCopied() || !isForked(cloud)) && (liveness || plan.happens(0.5))) {
      troubles.heal()
      down.clear()
      cloned.decide()
      let lookAt = 0
      const settled = () => {
        if (isOver()) return true
        if (clock.nowMs < lookAt) return false
        lookAt = clock.nowMs + 5_000
        return (
          !isCopied() && (isForked(cloud) || (moves?.underWay ?? replaced.underWay ?? isSettled(end)) === undefined)
        )
      }
      await clock.run(clock.nowMs + WARM_UP_MS, isOver)
      await clock.run(clock.nowMs + HEALED_WITHIN_MS, settled)
      // Of two copies one must be taken away and enrolled anew: that is for people, and no agent comes right by itself before.
      const isLeft = isOver() || (!isCopied() && isForked(cloud))
      const why = isLeft ? undefined : (cloned.underWay ?? moves?.underWay ?? replaced.underWay ?? isSettled(end))
      if (why !== undefined) core.violate('liveness', `half an hour after all was well: ${why}`)
      if (!isLeft && !isOver()) checkEnd(end)
      panel?.checkEnd()
      if (!isLeft && !isOver()) await probe()
    }
    return {
      seed,
      violations,
      hash: trace.hash,
      troubles: kinds,
      steps: clock.steps,
      virtualMs: clock.nowMs - shop.startMs,
      lines: trace.lines,
    }
  } finally {
    for (const node of [cloud, ...agents, ...cloned.nodes]) {
      node.machine.process?.kill()
      node.disk.close()
    }
    rmSync(folder, { recursive: true, force: true })
  }
}
