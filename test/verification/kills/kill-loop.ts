import { join } from 'node:path'
import { assert } from '../../../policy/assert.ts'
import { openConnection } from '../../../cloud/platform/persistence/sqlite.ts'
import { openLedgerFile } from '../../../edge-agent/ledger/file/ledger-file.ts'
import { pause, type Platform, type Randomness } from '../../../policy/platform.ts'
import { eventually, type Fields, type StoreProcesses } from './store-processes.ts'
import type { PostgresServer } from './postgres-server.ts'
import type { WatchedBoard } from './watched-board.ts'

/**
 * Points of a release at which the loop kills processes. After each kill, the right must have moved the device at
 * most once (P1). The cloud must receive each reported outcome exactly once (P3).
 */
export const STEPS = [
  'after the request',
  'at a call to the cloud',
  'when the output is switched on',
  'when the output is switched off',
  'after the answer',
  'at the report to the cloud',
  'at any time',
] as const
export type Step = (typeof STEPS)[number]

/**
 * The order in which the loop kills processes, for each database of the cloud. With PostgreSQL the loop also kills the
 * database server.
 */
export const VICTIMS = {
  sqlite: ['agent', 'cloud', 'agent', 'both'],
  postgres: ['database', 'cloud', 'all', 'agent'],
} as const
export type DatabaseKind = keyof typeof VICTIMS
export type Victim = (typeof VICTIMS)[DatabaseKind][number]

export interface Kill {
  victim: Victim
  step: Step
  /** True if the release uses a token that was issued before the kill. False if it uses a receipt. */
  withToken: boolean
  /**
   * True if the loop cuts the network before the kill. Used only for the agent, because a cloud without a network gets
   * no requests.
   */
  offline: boolean
}

export interface Release {
  /** Name for failure messages. */
  name: string
  withToken: boolean
  /** True if `prepare` or `interrupt` cuts the network. After the last request the loop restores the network. */
  offline: boolean
  /** Runs before the first request. */
  prepare?(): Promise<void>
  /** `answered` resolves when both requests have succeeded or failed. */
  interrupt(answered: Promise<unknown>): Promise<void>
}

export interface KillLoop {
  /** Runs a release with one kill and returns the violations. */
  round(kill: Kill): Promise<string[]>
  /** Runs one release with `interrupt`. `interrupt` must leave agent and cloud running. Returns the violations. */
  release(how: Release): Promise<string[]>
  /** Starts an agent that has ended, and waits until it drives its boards. */
  restartAgent(): Promise<void>
  /** After all events have reached the cloud, checks that no event is lost and no right is used twice. */
  audit(): Promise<string[]>
  /** Checks the database files. Call `checkFiles` after the store has stopped. */
  checkFiles(): Promise<string[]>
}

export interface KillLoopParts {
  store: StoreProcesses
  /** PostgreSQL server of the cloud; undefined with SQLite. */
  database?: PostgresServer
  /** Relay board of the staff station. */
  board: WatchedBoard
  platform: Platform
  /** Chooses the time of kills `at any time`. */
  random: Randomness
}

/** Typical duration of a release, ms. A kill `at any time` falls into this time. */
const RELEASE_MS = 150
/** Time limit for starts and connections, ms. It is long enough for a busy machine. */
const UP_WITHIN_MS = 60_000
const TRIES = 3

/**
 * Describes kill number n of a run. n starts at 0. The victim changes at each kill, and the step changes at every
 * fourth kill. After each pass through all steps, the kills change from receipt to token, or back.
 */
export function killNumber(n: number, database: DatabaseKind = 'sqlite'): Kill {
  const victim = VICTIMS[database][n % 4] ?? 'agent'
  const turn = Math.floor(n / 4)
  return {
    victim,
    step: STEPS[turn % STEPS.length] ?? 'at any time',
    withToken: Math.floor(turn / STEPS.length) % 2 === 1,
    offline: victim === 'agent' && turn % 3 === 2,
  }
}

/** Creates the loop for a running store. The boards of the store must be ready. */
export function killLoop(parts: KillLoopParts): KillLoop {
  return new Kills(parts)
}

class Kills implements KillLoop {
  readonly #store: KillLoopParts['store']
  readonly #database: KillLoopParts['database']
  readonly #board: KillLoopParts['board']
  readonly #platform: KillLoopParts['platform']
  readonly #random: KillLoopParts['random']
  readonly #reportedEvents = new Set<string>()
  readonly #bought: { transactionId: string; pulses: number }[] = []
  readonly #killAndRestart: Record<Victim, () => Promise<void>> = {
    agent: async () => {
      await this.#store.agent.kill()
      await this.restartAgent()
    },
    cloud: async () => {
      await this.#store.cloud.kill()
      await this.#store.startCloud()
    },
    both: async () => {
      await this.#killBoth()
      await this.#startBoth()
    },
    database: () => this.#restartDatabase(),
    all: async () => {
      await this.#restartDatabase(this.#killBoth)
      await this.#startBoth()
    },
  }

  constructor({ store, database, board, platform, random }: KillLoopParts) {
    this.#store = store
    this.#database = database
    this.#board = board
    this.#platform = platform
    this.#random = random
  }

  async restartAgent(): Promise<void> {
    await this.#store.startAgent()
    await this.#boardsReady()
  }

  async release({ name, withToken, offline, prepare, interrupt }: Release): Promise<string[]> {
    await this.#online()
    const { transactionId, body } = await this.#buyRight(withToken)
    await prepare?.()
    const before = this.#board.pulses()
    // Sends two requests at once, as a page and a scanner may do.
    const answered = Promise.all([this.#authorize(body), this.#authorize(body)])
    await interrupt(answered)
    const first = await answered
    const again = await this.#authorizeAgain(body)
    if (offline) this.#store.wire.restore()
    const pulses = this.#board.pulses() - before
    this.#bought.push({ transactionId, pulses })
    const wrong: string[] = []
    if (pulses > 1) wrong.push(`${name}: ${pulses} releases on one right of ${transactionId}`)
    const reason = String(again?.['reason'])
    const isUsedUp = ['already_redeemed', 'manual_assistance_required'].includes(reason)
    // The repeated request must confirm the release, or be denied because the right is used or staff must check the
    // device.
    if (again?.['authorized'] === true ? again['outcome'] !== 'confirmed' : !isUsedUp)
      wrong.push(`${name}: the repeated request returned ${JSON.stringify(again)} after ${JSON.stringify(first)}`)
    return wrong
  }

  round({ victim, step, withToken, offline }: Kill): Promise<string[]> {
    const name = `${victim} killed ${step}${offline ? ', offline' : ''}${withToken ? ', by token' : ''}`
    const interrupt = async (answered: Promise<unknown>) => {
      await this.#reached(step, answered)
      if (offline) this.#store.wire.cut()
      await this.#killAndRestart[victim]()
    }
    return this.release({ name, withToken, offline, interrupt })
  }

  async audit(): Promise<string[]> {
    await this.#online()
    await eventually('an empty outbox', async () => (await this.#store.status())['queueDepth'] === 0, UP_WITHIN_MS)
    const events = await this.#store.events()
    const ids = events.map((e) => String(e['eventId']))
    const wrong: string[] = []
    if (new Set(ids).size !== ids.length) wrong.push(`${ids.length - new Set(ids).size} events are duplicates`)
    const known = new Set(ids)
    for (const id of this.#reportedEvents)
      if (!known.has(id)) wrong.push(`a caller received ${id}, but the cloud does not have it`)
    for (const { transactionId, pulses } of this.#bought) {
      const tried = events.filter(
        (e) =>
          e['purchaseId'] === transactionId &&
          ['protection.action.completed', 'protection.action.failed'].includes(String(e['type'])),
      )
      // Each right needs exactly one redemption that has not failed. If the device did not make exactly one pulse,
      // the outcome must be `unknown`.
      const redeemed = tried.filter((e) => e['outcome'] !== 'failed')
      const as = tried.map((e) => [e['outcome'], e['reason']].filter((each) => each !== undefined).join(' ')).join(', ')
      if (redeemed.length !== 1) wrong.push(`${transactionId} was redeemed ${redeemed.length} times (${as})`)
      const outcome = redeemed[0]?.['outcome']
      if (pulses !== 1 && outcome !== 'unknown')
        wrong.push(`${transactionId}: ${pulses} releases are reported as ${as}`)
      if (outcome !== 'confirmed') continue
      const { securityTagStatus } = await this.#store.api.call('fetchPurchase', { transactionId })
      if (securityTagStatus !== 'deactivated')
        wrong.push(`${transactionId} was released but is ${String(securityTagStatus)}`)
    }
    const doubled = events.filter((e) => e['type'] === 'protection.exception.raised' && e['reason'] === 'double_redeem')
    if (doubled.length > 0) wrong.push(`${doubled.length} exceptions double_redeem`)
    return wrong
  }

  async checkFiles(): Promise<string[]> {
    const files = {
      ...(this.#database === undefined && { 'cloud/cloud.db': openConnection }),
      'edge/ledger.db': openLedgerFile,
    }
    const wrong = Object.entries(files).flatMap(([file, openFile]) => {
      const db = openFile(join(this.#store.folder, file))
      const verdict: unknown = db.pragma('integrity_check', { simple: true })
      db.close()
      return verdict === 'ok' ? [] : [`${file}: ${String(verdict)}`]
    })
    return [...wrong, ...((await this.#database?.damage()) ?? [])]
  }

  #boardsReady() {
    return eventually(
      'the boards',
      async () => ((await this.#store.status())['devices'] as { state: string }[]).every((d) => d.state === 'ready'),
      UP_WITHIN_MS,
    )
  }

  #online() {
    return eventually('online', async () => (await this.#store.status())['online'] === true, UP_WITHIN_MS)
  }

  readonly #killBoth = async () => void (await Promise.all([this.#store.agent.kill(), this.#store.cloud.kill()]))

  async #startBoth(): Promise<void> {
    await Promise.all([this.#store.startCloud(), this.#store.startAgent()])
    await this.#boardsReady()
  }

  /** Mode `immediate` loses unflushed data, as a crash of the server does. */
  async #restartDatabase(meanwhile?: () => Promise<void>): Promise<void> {
    assert(this.#database !== undefined, 'only a PostgreSQL server can be killed')
    await this.#database.restart('immediate', meanwhile)
  }

  /** Buys goods and prepares the request body, which each attempt repeats unchanged. */
  async #buyRight(withToken: boolean): Promise<{ transactionId: string; body: Fields }> {
    const { transactionId, receipt } = await this.#store.buy([
      { ean: String(this.#store.products[0]?.['ean']), quantity: 1 },
    ])
    const body = { deviceId: this.#store.devices.pos_deactivator, protectionAction: 'deactivate_label' }
    if (!withToken) return { transactionId, body: { ...body, receipt } }
    const { authorizationToken } = await this.#store.api.call('verifySecurityTagDeactivation', {
      purchaseId: transactionId,
      deviceId: body.deviceId,
    })
    return { transactionId, body: { ...body, token: authorizationToken } }
  }

  async #authorize(body: Fields): Promise<Fields | undefined> {
    const answer = await this.#store.authorize(body).catch(() => undefined)
    if (typeof answer?.['eventId'] === 'string') this.#reportedEvents.add(answer['eventId'])
    return answer
  }

  /**
   * Repeats the request while its outcome is `failed`. On a busy machine a board may lose its connection. Then the
   * device has not moved, and a retry succeeds.
   */
  async #authorizeAgain(body: Fields): Promise<Fields | undefined> {
    let answer = await this.#authorize(body)
    for (let tries = 1; tries < TRIES && answer?.['outcome'] === 'failed'; tries++) {
      await this.#boardsReady()
      answer = await this.#authorize(body)
    }
    return answer
  }

  /** Resolves at the step and removes the listeners. */
  #reached(step: Step, answered: Promise<unknown>): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        this.#board.onChange = () => undefined
        this.#store.wire.onAgentData = () => undefined
        resolve()
      }
      if (step === 'after the request') void pause(this.#platform.timers, 1).then(done)
      if (step === 'at a call to the cloud') this.#store.wire.onAgentData = done
      if (step === 'when the output is switched on') this.#board.onChange = (coil, on) => coil === 0 && on && done()
      if (step === 'when the output is switched off') this.#board.onChange = (coil, on) => coil === 0 && !on && done()
      if (step === 'after the answer') void answered.then(done)
      if (step === 'at the report to the cloud') void answered.then(() => (this.#store.wire.onAgentData = done))
      if (step === 'at any time')
        void pause(this.#platform.timers, (this.#random.bytes(1)[0] ?? 0) % RELEASE_MS).then(done)
      // The wait also ends if the step does not occur, such as a call to the cloud while offline.
      void answered.then(() => pause(this.#platform.timers, RELEASE_MS)).then(done)
    })
  }
}
