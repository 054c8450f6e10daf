import { pause, retryDelays, type Platform, type Cancel } from '../../policy/platform.ts'
import { LedgerFull } from '../ledger/file/commit.ts'
import type { Log } from '../log.ts'
import type { Trust } from '../trust/trust.ts'
import type { DocumentReceiver } from './documents/receive-documents.ts'
import type { TimeRequests } from './login/time-requests.ts'
import type { KeyRenewal } from './login/renew-key.ts'
import type { CloudSession, StoreKeyLogin } from './login/cloud-session.ts'
import type { Sender } from './reports/sender.ts'
import type { BrokerLine } from './wire/broker-line.ts'
import { budget, type Budget } from '../../policy/budget.ts'

/** Rate limit of polls. Each program with access to the broker can trigger polls. */
const POLLS = { most: 20, perSecond: 2, pauseMs: 500 }

interface PollRequestsParts {
  platform: Pick<Platform, 'timers' | 'clock'>
  /** Aborted when the link stops. */
  stopping: AbortSignal
  /** Returns false if a postponed poll is no longer needed. */
  isNeeded(): boolean
}

/** Merges several requests into one poll, and limits the rate of polls. */
export class PollRequests {
  readonly #parts: PollRequestsParts
  readonly #budget: Budget
  #isRequested = false
  #wake: () => void = () => undefined
  #soon: Cancel | undefined

  constructor(parts: PollRequestsParts) {
    this.#parts = parts
    this.#budget = budget(parts.platform.clock, POLLS.most, POLLS.perSecond)
  }

  get isRequested(): boolean {
    return this.#isRequested
  }

  now(): void {
    this.#isRequested = true
    this.wake()
  }

  /**
   * Requests one poll after `ms`. Calls within that time share the poll. If `isNeeded` then returns false, the poll is
   * skipped.
   */
  within(ms: number): void {
    if (ms === 0) return this.now()
    this.#soon ??= this.#parts.platform.timers.after(ms, () => {
      this.#soon = undefined
      if (this.#parts.isNeeded()) this.now()
    })
  }

  /** Marks the start of a poll. Later requests are for the next poll. */
  begin(): void {
    this.#isRequested = false
  }

  /** Spends one poll of the rate limit. Returns false if no poll is left. */
  spend(): boolean {
    return this.#budget.spend()
  }

  /**
   * Spends one poll of the rate limit, or pauses if no poll is left. Therefore broker messages cannot make the agent
   * flood the cloud with polls.
   */
  async spendOrPause(): Promise<void> {
    const { platform, stopping } = this.#parts
    if (!this.spend()) await pause(platform.timers, POLLS.pauseMs, stopping).catch(() => undefined)
  }

  /** Waits for `ms`. Ends early if `wake` is called or the link stops. */
  async sleep(ms: number): Promise<void> {
    const { platform, stopping } = this.#parts
    const waking = new AbortController()
    const wake = () => waking.abort()
    this.#wake = wake
    stopping.addEventListener('abort', wake, { once: true })
    await pause(platform.timers, ms, waking.signal).catch(() => undefined)
    stopping.removeEventListener('abort', wake)
    this.#wake = () => undefined
  }

  /** Ends `sleep` early. */
  wake(): void {
    this.#wake()
  }

  stop(): void {
    this.#soon?.()
  }
}

const FIRST_RETRY_MS = 250
/** Maximum pause between login attempts, ms (ADR agents). */
const LONGEST_RETRY_MS = 15_000
/** Interval of polls while the agent is online and no announcement arrives, ms. */
const POLL_MS = 15_000
/** The same without a broker, while gates wait for what people do about an alarm in the console, ms. */
const ALARM_POLL_MS = 3_000

interface LinkLoopParts {
  platform: Platform
  session: CloudSession
  renewal: KeyRenewal
  keyLogin: StoreKeyLogin
  time: TimeRequests
  trust: Pick<Trust, 'needsSignedTime'>
  documents: DocumentReceiver
  broker: BrokerLine
  sender: Sender
  polls: PollRequests
  log: Log
  stopping: AbortSignal
  /** Returns the password for the broker, made from this challenge. */
  password(challenge: string): string
  bindDevices(): Promise<void>
  areAlarmsAwaited(): boolean
  /** Called after a failed attempt, and when the link is online. */
  onSettled(): void
}

/** Runs the steps of the link in order, until the agent stops. */
export class LinkLoop {
  readonly #parts: LinkLoopParts
  #wasOnline = false
  #failedAttempts = 0

  constructor(parts: LinkLoopParts) {
    this.#parts = parts
  }

  get hasFailed(): boolean {
    return this.#failedAttempts > 0
  }

  async run(): Promise<void> {
    const { platform, session, sender, stopping, onSettled } = this.#parts
    const newDelays = () => retryDelays(platform.random, FIRST_RETRY_MS, LONGEST_RETRY_MS)
    let delays = newDelays()
    while (!stopping.aborted) {
      await this.#runLogin().catch((error: unknown) => this.#logFault(error))
      if (stopping.aborted) return
      // If the link was online after this login, the next pause is short again.
      if (session.isOnline || this.#wasOnline) delays = newDelays()
      this.#wasOnline = false
      this.#failedAttempts++
      onSettled()
      session.goOffline('the connection ended')
      sender.reset()
      // Broker messages must not shorten the backoff: one publisher could trigger a reconnect storm.
      await pause(platform.timers, delays.next().value, stopping).catch(() => undefined)
    }
  }

  /** Runs one login. Resolves when the login ends. */
  async #runLogin(): Promise<void> {
    const { renewal, time, polls, documents, session, sender, bindDevices, onSettled } = this.#parts
    const challenge = await renewal.login()
    if (challenge === undefined) return
    await time.request()
    // The policy names the agent of each device. So the agent reports its devices before it fetches the policy.
    await bindDevices()
    polls.begin()
    if (!(await documents.fetch('without items'))) return
    await this.#openBroker(challenge)
    session.goOnline()
    this.#wasOnline = true
    onSettled()
    sender.kick()
    // The items come last: they take long in a large store, and the agent works without them.
    polls.now()
    while (!this.#isOver && (await this.#runStep()));
  }

  /** Waits until a step is due, and runs it. Returns false if this login has ended. */
  async #runStep(): Promise<boolean> {
    const { polls, keyLogin, time, trust, documents, sender } = this.#parts
    if (!polls.isRequested) await polls.sleep(this.#waitMs)
    if (this.#isOver || !(await this.#renewLogin())) return false
    if (keyLogin.waitMs === 0) await keyLogin.run()
    if (time.isDue || trust.needsSignedTime) await time.request()
    await polls.spendOrPause()
    polls.begin()
    if (!(await documents.fetch('all'))) return false
    await this.#requestNeededTime()
    sender.kick()
    return true
  }

  get #isOver(): boolean {
    return !this.#parts.session.isOnline || this.#parts.stopping.aborted
  }

  get #waitMs(): number {
    const { broker, keyLogin, areAlarmsAwaited } = this.#parts
    const brokerMs = broker.isOpen ? POLL_MS : Math.max(broker.waitMs, FIRST_RETRY_MS)
    const alarmMs = !broker.isOpen && areAlarmsAwaited() ? ALARM_POLL_MS : POLL_MS
    return Math.min(alarmMs, brokerMs, keyLogin.waitMs ?? POLL_MS)
  }

  /** Logs in again when the login, the broker line or the key is due. Returns false if the login failed. */
  async #renewLogin(): Promise<boolean> {
    const { session, broker, renewal } = this.#parts
    if (!session.isLoginDue && (broker.isOpen || broker.waitMs > 0) && !renewal.isDue()) return true
    const challenge = await renewal.login()
    if (challenge === undefined) session.goOffline('the login could not be renewed')
    else await this.#openBroker(challenge)
    return challenge !== undefined
  }

  #openBroker(challenge: string): Promise<void> {
    return this.#parts.broker.open(() => this.#parts.password(challenge))
  }

  /**
   * If a new key set started a time epoch, requests a signed time. Then requests a poll for the documents that the
   * agent rejected because of the old time.
   */
  async #requestNeededTime(): Promise<void> {
    const { trust, time, polls } = this.#parts
    if (!trust.needsSignedTime) return
    await time.request()
    if (!trust.needsSignedTime) polls.now()
  }

  #logFault(error: unknown): void {
    const { log } = this.#parts
    if (error instanceof LedgerFull) log.warn({}, 'the disk is full: the agent reconnects to the cloud')
    else log.error({ err: error }, 'the link failed')
  }
}
