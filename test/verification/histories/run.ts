import { realPlatform } from '../../../host/platform.ts'
import { pause as pauseOf } from '../../../policy/platform.ts'
import type { ProcessEnvironment } from '../kills/processes.ts'
import { seededRandom } from '../simulation/virtual/virtual-platform.ts'
import { openAgent, type ReportingAgent } from './agent.ts'
import { newFollower, newKeyRoller, startReceiver, type Follower, type KeyRoller, type Receiver } from './bystanders.ts'
import { newClient, type Client } from './client.ts'
import { startCluster, type Cluster } from './cluster.ts'
import { CONTEST_COUNT, runContests } from './contests.ts'
import { describeSteps, type ObjectHistory } from './history.ts'
import { LOST_ANSWERS, spendWithLostAnswers } from './lost-answers.ts'
import { accountIn, dueOffers, eventsToDeliver, recount } from './recount.ts'
import { claim, ROUNDS, type Round } from './rounds.ts'
import { must, openScene, type Scene } from './scene.ts'

/**
 * Faults in the order in which they occur. `lost-commit`: a cloud loses all connections to the server between a COMMIT
 * and its answer. `kill`: SIGKILL of a cloud. `crash`, `restart`: the server ends without and with a checkpoint.
 */
export const FAULTS = ['lost-commit', 'kill', 'crash', 'lost-commit', 'kill', 'restart'] as const
export type HistoryFault = (typeof FAULTS)[number]

/** How to run the load. */
export interface HistoriesOptions {
  /** Folder of the built project. */
  readonly root: string
  /** Duration of the load. */
  readonly seconds: number
  /** Number of cloud processes. */
  readonly processes: number
  /** Chooses requests and faults. */
  readonly seed: number
  /** Number of rounds at the same time. Default: 4. */
  readonly lanes?: number
  /** Seconds between two faults. 0: no faults. */
  readonly faultEvery: number
  /** Default: all. */
  readonly faults?: readonly HistoryFault[]
  /** Number of callers that claim the same object at once, before the load. Default: 64. */
  readonly claimants?: number
  /** False leaves out the contests of these claimants. */
  readonly contests?: boolean
  /** Environment of the clouds. With this environment, a test can load a mutant. */
  readonly cloudIn?: ProcessEnvironment
  /** Path of the command in fewer files, which starts faster. */
  readonly bundle?: () => Promise<string>
  readonly signal?: AbortSignal
  /** Receives lines about the progress. */
  onProgress?(text: string): void
}

export interface HistoriesResult {
  /** Number of objects whose history was checked. */
  readonly objects: number
  /** Requests by outcome. */
  readonly figures: Client['figures']
  readonly faults: number
  /** Number of objects whose check took too long. */
  readonly undecided: number
  /** Number of refusals and unknown outcomes by operation and reason. */
  readonly reasons: Readonly<Record<string, number>>
  readonly violations: readonly string[]
}

const LANES = 4
const CLAIMANTS = 64
/** Interval at which the follower requests new events, ms. */
const FOLLOW_MS = 200
/** Pause between two batches of the agent, ms. */
const REPORT_MS = 100
const VIOLATIONS_SHOWN = 20
/** Time limit for deliveries at the end, ms. A killed process leaves deliveries leased for a minute. */
const DELIVERY_MS = 120_000

/** Runs the load on real processes and checks what the clients saw. */
export async function runHistories(options: HistoriesOptions): Promise<HistoriesResult> {
  const cluster = await startCluster({
    root: options.root,
    size: options.processes,
    ...(options.cloudIn && { cloudIn: options.cloudIn }),
    ...(options.bundle && { bundle: options.bundle }),
  })
  const receiver = await startReceiver()
  try {
    return await new Load(options, cluster, receiver).run()
  } finally {
    receiver.close()
    await cluster.stop()
  }
}

class Load {
  readonly #options: HistoriesOptions
  readonly #cluster: Cluster
  readonly #receiver: Receiver
  readonly #client: Client
  readonly #platform = realPlatform()
  readonly #histories: ObjectHistory[] = []
  readonly #violations: string[] = []
  #rounds = 0
  #faults = 0
  #undecided = 0

  constructor(options: HistoriesOptions, cluster: Cluster, receiver: Receiver) {
    this.#options = options
    this.#cluster = cluster
    this.#receiver = receiver
    const { clock } = this.#platform
    this.#client = newClient({ cluster, clock, random: seededRandom(options.seed), pause: (ms) => this.#pause(ms) })
  }

  async run(): Promise<HistoriesResult> {
    const { lanes = LANES, claimants = CLAIMANTS, faultEvery, seconds } = this.#options
    const scene = await openScene(this.#client, this.#cluster.keys, this.#receiver.url)
    const follower = newFollower(this.#client, scene)
    const roller = newKeyRoller(this.#client, this.#cluster.keys.admin, () => accountIn(this.#cluster.databaseUrl))
    await this.#play(claim(claimants), scene)
    if (this.#options.contests !== false) await this.#runContests(scene, claimants)
    const agent = await openAgent(this.#client, this.#cluster, scene)
    const isRunning = this.#untilEnd(seconds)
    await Promise.all([
      ...Array.from({ length: lanes }, () => this.#playRounds(scene, isRunning)),
      this.#follow(follower, isRunning),
      this.#rotateKeys(roller, isRunning),
      this.#report(agent, isRunning),
      faultEvery > 0 && this.#causeFaults(faultEvery, isRunning),
    ])
    if (faultEvery > 0) await this.#loseAnswers(scene)
    await this.#checkRevokedKey(scene)
    this.#violations.push(...agent.faults)
    await this.#check(follower, roller)
    const { figures, reasons, violations } = this.#client
    return {
      objects: this.#histories.length,
      figures,
      faults: this.#faults,
      undecided: this.#undecided,
      reasons: Object.fromEntries([...reasons].sort()),
      violations: [...this.#violations, ...violations].slice(0, VIOLATIONS_SHOWN),
    }
  }

  async #runContests(scene: Scene, claimants: number): Promise<void> {
    const parts = { client: this.#client, cluster: this.#cluster, scene, claimants }
    this.#violations.push(...(await runContests(parts, this.#rounds + 1)))
    this.#rounds += CONTEST_COUNT
  }

  async #loseAnswers(scene: Scene): Promise<void> {
    this.#histories.push(await spendWithLostAnswers(this.#client, this.#cluster, scene))
    this.#faults += LOST_ANSWERS
  }

  #pause(ms: number): Promise<void> {
    return pauseOf(this.#platform.timers, ms)
  }

  #untilEnd(seconds: number): () => boolean {
    const endsMs = this.#platform.clock.elapsed() + seconds * 1_000
    return () => this.#platform.clock.elapsed() < endsMs && this.#options.signal?.aborted !== true
  }

  async #playRounds(scene: Scene, isRunning: () => boolean): Promise<void> {
    while (isRunning()) {
      const round = ROUNDS[this.#client.chance(ROUNDS.length)]
      if (round) await this.#play(round, scene)
    }
  }

  async #play(round: Round, scene: Scene): Promise<void> {
    const history = await round({ client: this.#client, scene, round: ++this.#rounds })
    if (history) this.#histories.push(history)
    if (this.#rounds % 50 === 0) this.#options.onProgress?.(`${this.#rounds} objects, ${this.#faults} faults`)
  }

  async #follow(follower: Follower, isRunning: () => boolean): Promise<void> {
    while (isRunning()) if (!(await follower.readPage())) await this.#pause(FOLLOW_MS)
  }

  async #report(agent: ReportingAgent, isRunning: () => boolean): Promise<void> {
    while (isRunning()) {
      await agent.report()
      await this.#pause(REPORT_MS)
    }
  }

  async #rotateKeys(roller: KeyRoller, isRunning: () => boolean): Promise<void> {
    while (isRunning()) {
      await roller.rotate()
      await this.#pause(1_000)
    }
  }

  /** Causes the faults in turn, until the load ends. */
  async #causeFaults(faultEvery: number, isRunning: () => boolean): Promise<void> {
    const { faults = FAULTS } = this.#options
    for (;;) {
      await this.#pause(faultEvery * 1_000)
      if (!isRunning()) return
      const fault = faults[this.#faults++ % faults.length]
      if (fault === 'lost-commit') await this.#cluster.loseCommit()
      else if (fault === 'kill') await this.#cluster.restartCloud(this.#client.chance(this.#cluster.size))
      else await this.#cluster.restartDatabase(fault === 'crash' ? 'immediate' : 'fast')
    }
  }

  /** Checks that no process accepts a token after the revocation of the key that signed the token. */
  async #checkRevokedKey(scene: Scene): Promise<void> {
    const round = ++this.#rounds
    const { storeId, devices } = scene
    const [deviceId] = devices
    const tagId = `tag-${round}`
    const client = this.#client
    await must(client, 'registerProtectedItems', {
      storeId,
      items: [{ tagId, price: 10, protectionTechnology: 'rf' }],
    })
    const { sessionId } = await must(client, 'checkIn', { storeId })
    const items = [{ name: 'Jacke', priceUnit: 1_000, vat: 19, quantity: 1, tagIds: [tagId] }]
    const { transactionId } = await must(client, 'startCheckout', { sessionId, items })
    await must(client, 'completeTestCheckout', { transactionId })
    const request = { deviceId, protectionAction: 'deactivate_label', tagId }
    const { authorizationToken } = await must(client, 'verifyProtectedItem', request)
    const revoked = await client.call(
      'rotateSigningKey',
      { use: 'token', mode: 'test', revoke: true },
      { bearer: this.#cluster.keys.admin },
    )
    if (revoked.outcome !== 'done') this.#violations.push(`the token key was not revoked: ${revoked.reason}`)
    const redeem = (n: number) =>
      client.call('redeemProtectionAuthorization', { authorizationToken, deviceId, redemptionId: `revoked-${n}` })
    const answers = await Promise.all(Array.from({ length: 4 * this.#cluster.size }, (_, n) => redeem(n)))
    const accepted = answers.filter(({ outcome }) => outcome === 'done').length
    if (accepted > 0) this.#violations.push(`a token of a revoked key was accepted ${accepted} times`)
  }

  async #check(follower: Follower, roller: KeyRoller): Promise<void> {
    const wrong = this.#violations
    for (const { name, steps, isPossible } of this.#histories) {
      const verdict = isPossible()
      if (verdict === undefined) this.#undecided++
      if (verdict === false) wrong.push(`no order of the steps explains the ${name}:\n${describeSteps(steps)}`)
    }
    wrong.push(...roller.lateSignatures(this.#histories.flatMap(({ steps }) => steps)))
    wrong.push(...(await follower.missed()))
    const { unknown } = this.#client.figures
    if (this.#faults === 0 && unknown > 0) wrong.push(`${unknown} requests failed without a fault`)
    wrong.push(...(await this.#undelivered()), ...(await this.#unpublished()))
    wrong.push(...(await recount(this.#cluster.databaseUrl)))
    wrong.push(...(await this.#cluster.damage()))
  }

  /** Waits until the schedulers have published all due offers. */
  async #unpublished(): Promise<string[]> {
    const endsMs = this.#platform.clock.elapsed() + DELIVERY_MS
    for (;;) {
      const due = await dueOffers(this.#cluster.databaseUrl)
      if (due === 0) return []
      if (this.#platform.clock.elapsed() >= endsMs) return [`${due} offers were not published`]
      await this.#pause(100)
    }
  }

  /** Waits until each event has reached the webhook. Without faults, each event arrives once. */
  async #undelivered(): Promise<string[]> {
    const ids = await eventsToDeliver(this.#cluster.databaseUrl)
    const missing = () => ids.filter((id) => !this.#receiver.deliveries.has(id))
    const endsMs = this.#platform.clock.elapsed() + DELIVERY_MS
    while (missing().length > 0 && this.#platform.clock.elapsed() < endsMs) await this.#pause(50)
    const lost = missing()
    const twice = [...this.#receiver.deliveries].filter(([, count]) => count > 1)
    return [
      ...(lost.length > 0 ? [`${lost.length} of ${ids.length} events did not reach the webhook: ${lost[0]}`] : []),
      ...(this.#faults === 0 && twice.length > 0 ? [`${twice.length} events reached the webhook twice`] : []),
    ]
  }
}
