import { pause, retryDelays, type Cancel, type Platform } from '../../policy/platform.ts'
import { agentTopic } from '../../policy/topics.ts'
import { LedgerFull } from '../ledger/file/commit.ts'
import type { Log } from '../log.ts'
import type { Identity } from '../identity/identity.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { AgentKey } from '../identity/agent-key.ts'
import type { StoreKeys } from '../identity/store-keys.ts'
import type { Trust } from '../trust/trust.ts'
import { timeQuestions } from './login/ask-time.ts'
import { brokerLine } from './wire/broker-line.ts'
import { budget } from './wire/budget.ts'
import type { CloudLink } from './cloud-link.ts'
import type { CommandTaken } from './documents/commands.ts'
import { openDocuments } from './documents/documents.ts'
import type { HttpClient } from './wire/http-client.ts'
import type { Greeting } from './login/ledger-greeting.ts'
import type { Messages } from './login/messages.ts'
import type { TellRefusal } from './documents/refusals.ts'
import type { OpenMqttLine } from './wire/mqtt-line.ts'
import type { Outbox } from './reports/outbox.ts'
import { sender } from './reports/sender.ts'
import { keyRenewal } from './login/renew-key.ts'
import { CALL_MS, openSession } from './login/session.ts'
import { storeKeyLogin } from './login/store-key-login.ts'

/**
 *   login ─ time ─ devices ─ documents ─ broker line ─▶ online ──▶ look every 15 s, or when told ──▶ any call fails, a socket closes
 *     ▲                                                                                                      │
 *     └──────────────────────────── pause with jitter, at most 15 s ◀───────────────────────────────────────┘
 *
 * Keeps the agent in touch for ever. The broker only makes it quick: with it gone everything still
 * goes over HTTP; with both gone the agent decides alone.
 */
export interface Connection extends CloudLink {
  start(): void
  /** Resolves once the agent has logged in and has the documents as they stand; false when the first try failed or after `limitMs`. */
  ready(limitMs: number): Promise<boolean>
  /** Asks once for what is newer, and takes it. */
  look(): Promise<void>
  /** Something was written to the journal. */
  kick(): void
  stop(): Promise<void>
  readonly hasBroker: boolean
}

export interface ConnectionParts {
  platform: Platform
  identity: Identity
  http: HttpClient
  openLine: OpenMqttLine
  messages: Messages
  outbox: Outbox
  trust: Trust
  key: AgentKey
  ledger: Pick<Ledger, 'marks' | 'commits' | 'journal' | 'cloudGeneration'>
  log: Log
  /** Where the broker is, when it is not where enrolment said. */
  mqttUrl: string | undefined
  /** Told to the cloud with every look: where other agents reach this one. */
  address: string | undefined
  /** Told to the cloud after each login: these are this agent's. */
  deviceIds(): readonly string[]
  /** For the retained state: what people see in a console. */
  describe(): object
  nowMs(): number
  onChange(): void
  /** A document or a batch was refused: to be reported. */
  onRefused: TellRefusal
  /** What the cloud says of our ledger, at each login. */
  onGreeting(ledger: Greeting): void
  /** Whether the cloud knows of two copies of our ledger, with every look. */
  onForked(isForked: boolean): void
  /** The cloud asks for something. */
  onCommand(command: string): CommandTaken
  storeKeys: StoreKeys
}

const FIRST_RETRY_MS = 250
/** Tries are at most this far apart (contracts §5). */
const LONGEST_RETRY_MS = 15_000
/** While online the documents are looked at this often even if nobody says that they changed. */
const POLL_MS = 15_000
/** Looks at the documents in a row, and a second from then on: hints come from anybody. */
const LOOKS = { most: 20, perSecond: 2, pauseMs: 500 }
/** What is missing may be on its way: it is fetched when it has not come within, ms. */
const MISSING_MS = 100

/** Keeps a connection for as long as the agent runs; starts at once. */
export function connect(parts: ConnectionParts): Connection {
  const { platform, identity, http, trust, outbox, messages, log, nowMs } = parts
  const { agentId, storeId } = identity
  const stopping = new AbortController()
  let wake: () => void = () => undefined
  let isDirty = false
  let soon: Cancel | undefined
  let cameOnline = false
  const readyWaiters = new Set<(isReady: boolean) => void>()
  let triesFailed = 0
  let running: Promise<void> | undefined

  const onChange = () => {
    if (!session.isOnline) wake()
    parts.onChange()
  }
  const session = openSession({
    platform,
    identity,
    http,
    messages,
    log,
    nowMs,
    onChange,
    onRefused: parts.onRefused,
    onGreeting: parts.onGreeting,
    onStoreKey: parts.storeKeys.take,
    onCommand: parts.onCommand,
  })
  const documents = openDocuments({
    platform,
    trust,
    session,
    ledger: parts.ledger,
    address: parts.address,
    hasGate: () =>
      trust.policy?.devices.some(
        (device) => device.deviceType === 'exit_gate' && device.agentId === agentId && !device.revoked,
      ) === true,
    onTaken,
    onForked: parts.onForked,
    onCommand: parts.onCommand,
    onRefused: parts.onRefused,
    log,
  })
  const time = timeQuestions({ platform, http, trust, log, onRefused: parts.onRefused })
  const { key, ledger: marks, onRefused } = parts
  const renewal = keyRenewal({ agentId, key, session, marks, random: platform.random, nowMs, log, onRefused })
  const keyLogin = storeKeyLogin({ clock: platform.clock, trust, keys: parts.storeKeys, login: renewal.login })
  const broker = brokerLine({
    platform,
    identity,
    url: parts.mqttUrl ?? identity.mqttUrl,
    openLine: parts.openLine,
    timeoutMs: CALL_MS,
    log,
    state,
    onMessage,
    onLost(why) {
      // A closed socket counts at once: the next request is decided alone until a call has worked again.
      if (!stopping.signal.aborted) session.goOffline(`the broker line closed: ${why}`)
    },
    onRefused: parts.onRefused,
  })
  const looks = budget(platform.clock, LOOKS.most, LOOKS.perSecond)
  const sending = sender({
    platform,
    outbox,
    log,
    nowMs,
    isOnline: () => session.isOnline,
    publish: broker.publishEvents,
    onPublished: broker.noteEvents,
    report: (batch) => session.call('reportProtectionEvents', { batch }),
    // The last row that was told again is acknowledged: the cloud waits for that word.
    onChange: onTaken,
    onRefused(what) {
      parts.onRefused(what)
      // It may be that there are two of this ledger: the cloud says so to who looks.
      lookNow()
    },
  })

  async function bindDevices(): Promise<void> {
    for (const deviceId of parts.deviceIds()) {
      const answer = await session.call('reportDeviceHeartbeat', { deviceId })
      if (answer.kind === 'unreachable') return
      // A scanner that only feeds another device need not be in the registry.
      if (answer.kind === 'refused' && answer.status !== 404) parts.onRefused(`device ${deviceId}: ${answer.message}`)
    }
  }

  function state(online: boolean): string {
    return JSON.stringify({ online, observedAt: new Date(nowMs()).toISOString(), ...(online && parts.describe()) })
  }

  /** Whoever calls this can do nothing about a full disk: it is told, and the message comes again. */
  function onMessage(topic: string, payload: string): void {
    try {
      takeMessage(topic, payload)
    } catch (error) {
      if (error instanceof LedgerFull) log.warn({ topic }, 'the disk is full: a message from the broker was not kept')
      else log.error({ err: error, topic }, 'a message from the broker could not be taken')
    }
  }

  function takeMessage(topic: string, payload: string): void {
    if (topic === agentTopic(storeId, agentId, 'ack')) return sending.onAck(payload)
    if (topic === agentTopic(storeId, agentId, 'command')) {
      if (parts.onCommand(payload) === 'look') lookNow()
      return
    }
    documents.take(payload)
    onTaken()
    if (trust.isBehind) lookWithin(MISSING_MS)
  }

  /** What the cloud waits for is confirmed by asking with what we have, whichever way it came. */
  function onTaken(): void {
    parts.onChange()
    const withinMs = documents.confirmWithinMs
    if (withinMs !== undefined) lookWithin(withinMs)
    if (keyLogin.waitMs === 0) lookNow()
  }

  /** Once for all that comes meanwhile, and not at all when another look has settled it. */
  function lookWithin(ms: number): void {
    if (ms === 0) return lookNow()
    soon ??= platform.timers.after(ms, () => {
      soon = undefined
      if (trust.isBehind || documents.confirmWithinMs !== undefined) lookNow()
    })
  }

  function lookNow(): void {
    isDirty = true
    wake()
  }

  /** A key set has just said that another time counts: what the former one keeps out is fetched once it is here. */
  async function askTimeAwaited(): Promise<void> {
    if (!trust.isTimeAwaited) return
    await time.ask()
    isDirty ||= !trust.isTimeAwaited
  }

  /** One life of a login; resolves when it is over. */
  async function live(): Promise<void> {
    const challenge = await renewal.login()
    if (challenge === undefined) return
    await time.ask()
    // With the cloud in reach the agent has bound its devices before it looks at the documents, which name them.
    await bindDevices()
    isDirty = false
    if (!(await documents.fetch('without items'))) return
    await broker.open(() => messages.assertion(challenge, nowMs()))
    session.goOnline()
    cameOnline = true
    for (const done of readyWaiters) done(true)
    sending.kick()
    // The items come next: with a whole store of them that takes a while, and the agent is of use before.
    isDirty = true
    while (session.isOnline && !stopping.signal.aborted) {
      const brokerMs = broker.isOpen ? POLL_MS : Math.max(broker.waitMs, FIRST_RETRY_MS)
      if (!isDirty) await sleep(Math.min(POLL_MS, brokerMs, keyLogin.waitMs ?? POLL_MS))
      if (stopping.signal.aborted || !session.isOnline) return
      if (session.isOld || (!broker.isOpen && broker.waitMs === 0) || renewal.isDue()) {
        const renewed = await renewal.login()
        if (renewed === undefined) return session.goOffline('the login could not be renewed')
        await broker.open(() => messages.assertion(renewed, nowMs()))
      }
      if (keyLogin.waitMs === 0) await keyLogin.run()
      if (time.isDue || trust.isTimeAwaited) await time.ask()
      // Whoever calls for a look all the time is heard now and then.
      if (!looks.spend()) await pause(platform.timers, LOOKS.pauseMs, stopping.signal).catch(() => undefined)
      isDirty = false
      if (!(await documents.fetch('all'))) return
      await askTimeAwaited()
      sending.kick()
    }
  }

  /** Waits, or less when something happens. */
  async function sleep(ms: number): Promise<void> {
    const waking = new AbortController()
    const stop = () => waking.abort()
    wake = stop
    stopping.signal.addEventListener('abort', stop, { once: true })
    await pause(platform.timers, ms, waking.signal).catch(() => undefined)
    stopping.signal.removeEventListener('abort', stop)
    wake = () => undefined
  }

  async function run(): Promise<void> {
    let delays = retryDelays(platform.random, FIRST_RETRY_MS, LONGEST_RETRY_MS)
    while (!stopping.signal.aborted) {
      await live().catch((error: unknown) => {
        if (error instanceof LedgerFull) log.warn({}, 'the disk is full: the link begins anew')
        else log.error({ err: error }, 'the link failed')
      })
      if (stopping.signal.aborted) return
      // A life that came as far as being online begins the pauses anew.
      if (session.isOnline || cameOnline) delays = retryDelays(platform.random, FIRST_RETRY_MS, LONGEST_RETRY_MS)
      cameOnline = false
      triesFailed++
      for (const done of readyWaiters) done(false)
      session.goOffline('the connection ended')
      sending.reset()
      // Nothing shortens this: whoever has a word with the broker could have every agent storm a cloud that is down.
      await pause(platform.timers, delays.next().value, stopping.signal).catch(() => undefined)
    }
  }

  return {
    get isOnline() {
      return session.isOnline
    },
    get offlineSinceMs() {
      return session.offlineSinceMs
    },
    get hasBroker() {
      return broker.isOpen
    },
    ask: session.call,
    told: sending.told,
    look: documents.look,
    // Somebody waits for it, however slow the line is.
    catchUp: () =>
      session.isOnline && looks.spend()
        ? Promise.race([documents.look().catch(() => undefined), pause(platform.timers, CALL_MS)])
        : Promise.resolve(),
    start: () => void (running ??= run()),
    ready(limitMs) {
      if (session.isOnline || triesFailed > 0) return Promise.resolve(session.isOnline)
      return new Promise((resolve) => {
        const done = (isReady: boolean) => {
          readyWaiters.delete(done)
          cancel()
          resolve(isReady)
        }
        const cancel = platform.timers.after(limitMs, () => done(false))
        readyWaiters.add(done)
      })
    },
    kick: sending.kick,
    async stop() {
      stopping.abort()
      soon?.()
      await sending.stop()
      broker.close()
      await running
    },
  }
}
