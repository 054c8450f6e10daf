import { retryDelays, type Platform } from '../../../policy/platform.ts'
import { agentTopic, storeTopic, STORE_TOPICS } from '../../../policy/topics.ts'
import type { Log } from '../../log.ts'
import type { Identity } from '../../identity/identity.ts'
import { budget } from './budget.ts'
import type { MqttLine, OpenMqttLine } from './mqtt-line.ts'

/**
 *   open ── hints ──▶ agent          closes soon, floods, takes nothing ──▶ left alone for a while, at most 15 s
 *
 * The line to the broker, which may be anybody's. All it can do is make the agent quicker: one that
 * closes every line, floods or swallows what it is told must not keep the agent from the cloud.
 */
export interface BrokerLine {
  readonly isOpen: boolean
  /** How long the broker is left alone, ms; 0: it may be tried. */
  readonly waitMs: number
  /** Opens it unless it is open or left alone; `password` signs the broker's challenge. Never rejects. */
  open(password: () => string): Promise<void>
  /** Hands a batch of events over; false when there is no line, or when the broker swallowed the last one. */
  publishEvents(batch: string): boolean
  /** What was published last: it was acknowledged, or was not in time. */
  noteEvents(wereAcknowledged: boolean): void
  /** Says good-bye. */
  close(): void
}

export interface BrokerLineParts {
  platform: Platform
  identity: Pick<Identity, 'agentId' | 'storeId'>
  url: string
  openLine: OpenMqttLine
  timeoutMs: number
  log: Log
  /** The text for the retained state. */
  state(online: boolean): string
  onMessage(topic: string, payload: string): void
  /** The line is gone, not by us. */
  onLost(why: string): void
  onRefused(what: string): void
}

const FIRST_WAIT_MS = 250
/** Tries are at most this far apart (contracts §5). */
const LONGEST_WAIT_MS = 15_000
/** A line that lived this long was a good one. */
const GOOD_LINE_MS = 60_000
/** A busy store has some tens of messages a second; a large one costs as much as many small ones. */
const MESSAGES = { most: 2_000, perSecond: 200, charactersOfOne: 8_192 }
/** Batches go over HTTP for so long after the broker has swallowed one. */
const SWALLOWED_MS = 5 * 60_000

/** A line to one broker, opened anew as often as it takes. */
export function brokerLine(parts: BrokerLineParts): BrokerLine {
  const { platform, log } = parts
  const { clock, random } = platform
  const { agentId, storeId } = parts.identity
  const messages = budget(clock, MESSAGES.most, MESSAGES.perSecond)
  let waits = retryDelays(random, FIRST_WAIT_MS, LONGEST_WAIT_MS)
  let aloneUntilMs = 0
  let httpUntilMs = 0
  let line: MqttLine | undefined

  /** One line's life. It may end before it was handed over, so it is known by an object of its own. */
  async function openOnce(password: string): Promise<void> {
    const life = { isOver: false, sinceMs: clock.elapsed() }
    const end = () => {
      if (life.isOver) return false
      life.isOver = true
      line = undefined
      if (clock.elapsed() - life.sinceMs >= GOOD_LINE_MS) waits = retryDelays(random, FIRST_WAIT_MS, LONGEST_WAIT_MS)
      else aloneUntilMs = clock.elapsed() + waits.next().value
      return true
    }
    const opened = await parts.openLine(
      {
        url: parts.url,
        clientId: agentId,
        username: agentId,
        password,
        will: { topic: agentTopic(storeId, agentId, 'state'), payload: parts.state(false) },
        onMessage(topic, payload) {
          if (life.isOver) return
          if (messages.spend(1 + payload.length / MESSAGES.charactersOfOne)) return parts.onMessage(topic, payload)
          const flooding = line
          if (!flooding || !end()) return
          parts.onRefused('the broker: more messages than a store has')
          flooding.close()
        },
        onClosed(why) {
          if (end()) parts.onLost(why)
        },
      },
      parts.timeoutMs,
    )
    if (life.isOver) return
    line = opened
    opened.subscribe([
      ...STORE_TOPICS.map((name) => storeTopic(storeId, name)),
      agentTopic(storeId, agentId, 'ack'),
      agentTopic(storeId, agentId, 'command'),
    ])
    opened.publish(agentTopic(storeId, agentId, 'state'), parts.state(true), { retain: true })
  }

  const waitMs = () => Math.max(0, aloneUntilMs - clock.elapsed())
  return {
    get isOpen() {
      return line !== undefined
    },
    get waitMs() {
      return waitMs()
    },
    async open(password) {
      if (line || waitMs() > 0) return
      try {
        await openOnce(password())
      } catch (error) {
        aloneUntilMs = clock.elapsed() + waits.next().value
        log.warn({ why: (error as Error).message }, 'no broker: events and documents go over HTTP')
      }
    },
    publishEvents(batch) {
      if (!line || clock.elapsed() < httpUntilMs) return false
      line.publish(agentTopic(storeId, agentId, 'events'), batch, { retain: false })
      // It may just have ended over it.
      return line !== undefined
    },
    noteEvents(wereAcknowledged) {
      httpUntilMs = wereAcknowledged ? 0 : clock.elapsed() + SWALLOWED_MS
    },
    close() {
      line?.publish(agentTopic(storeId, agentId, 'state'), parts.state(false), { retain: true })
      line?.close()
    },
  }
}
