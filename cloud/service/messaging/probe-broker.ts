import { MAX_PACKET_BYTES } from '../../../policy/mqtt-framing.ts'
import { cloudTopic, type CloudTopic } from '../../../policy/mqtt-topics.ts'
import { pause, type Timers } from '../../../policy/platform.ts'
import type { BrokerConnection } from './broker-connection.ts'

interface ProbeParts {
  connection: Pick<BrokerConnection, 'publish' | 'subscribe'>
  /** Id of this cloud process. */
  id: string
  timers: Timers
}

/** Maximum time until a message returns, ms. */
const ANSWER_MS = 2_000
/** A retained message, or one of a shared subscription, may arrive this much later than other messages, ms. */
const GRACE_MS = 300
const REFUSED = 128
/** Bytes for the topic and header of a message. */
const HEADER_BYTES = 1_024
/**
 * All processes of a cloud share one retained message. If it is missing after a reconnect, the broker lost its retained
 * messages.
 */
const ALL = 'all'

/** A weakness by which a broker loses messages. */
type BrokerLoss = 'qos' | 'size' | 'retained' | 'persistence'

/** What an administrator must change at the broker. */
export const LOSS_TEXTS: Readonly<Record<BrokerLoss, string>> = {
  qos: 'the broker grants only QoS 0, so it may lose messages: allow QoS 1',
  size: `the broker does not deliver messages of ${MAX_PACKET_BYTES} bytes: raise its limit, or long batches use HTTP`,
  retained: 'the broker keeps no retained messages, so agents get documents later: allow them',
  persistence: 'the broker lost its retained messages: turn its persistence on',
}

/** Tests what a broker can do: the cloud publishes to itself and waits for the messages. */
export class BrokerProbe {
  readonly #parts: ProbeParts
  readonly #waiting = new Map<CloudTopic, () => void>()

  constructor(parts: ProbeParts) {
    this.#parts = parts
  }

  /** Call it with each message on a topic of a cloud process. */
  onMessage(processId: string, name: CloudTopic): void {
    if (processId === this.#parts.id || processId === ALL) this.#waiting.get(name)?.()
  }

  /**
   * True if the broker delivers messages to shared subscriptions. Some brokers accept a shared subscription but deliver
   * nothing.
   */
  async hasSharedSubscriptions(): Promise<boolean> {
    const { id, timers } = this.#parts
    const [shared = REFUSED] = await this.#subscribe(`$share/untag-${id}/${cloudTopic(id, 'probe-shared')}`)
    await this.#subscribe(cloudTopic(id, 'probe'))
    if (shared >= REFUSED) return false
    const sharedArrives = this.#arrival('probe-shared', ANSWER_MS + GRACE_MS)
    const plainArrives = this.#arrival('probe', ANSWER_MS)
    this.#publish(id, 'probe-shared')
    this.#publish(id, 'probe')
    await Promise.race([sharedArrives, plainArrives])
    return Promise.race([sharedArrives, pause(timers, GRACE_MS).then(() => false)])
  }

  /** `wasConnected`: this process was connected before, so the broker should have its retained message. */
  async findLosses(wasConnected: boolean): Promise<BrokerLoss[]> {
    const { id } = this.#parts
    const losses: BrokerLoss[] = []
    const marker = cloudTopic(ALL, 'probe-retained')
    const kept = this.#arrival('probe-retained', GRACE_MS)
    const [qos = REFUSED] = await this.#subscribe(marker)
    if (qos === 0) losses.push('qos')
    const wasKept = await kept
    if (!wasKept && !(await this.#retains(marker))) losses.push('retained')
    else if (!wasKept && wasConnected) losses.push('persistence')
    // A broker may close the connection after a message that is too long, so this test runs last, and
    // only after the first connect.
    if (wasConnected) return losses
    await this.#subscribe(cloudTopic(id, 'probe-size'))
    const arrives = this.#arrival('probe-size', ANSWER_MS)
    this.#publish(id, 'probe-size', 'x'.repeat(MAX_PACKET_BYTES - HEADER_BYTES))
    if (!(await arrives)) losses.push('size')
    return losses
  }

  async #retains(marker: string): Promise<boolean> {
    const live = this.#arrival('probe-retained', ANSWER_MS)
    this.#parts.connection.publish(marker, '1', { retain: true })
    await live
    // A new subscription delivers the retained message again.
    const again = this.#arrival('probe-retained', ANSWER_MS)
    await this.#subscribe(marker)
    return again
  }

  /** Resolves to true when the message arrives, or to false after `limitMs`. */
  #arrival(name: CloudTopic, limitMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const cancel = this.#parts.timers.after(limitMs, () => resolve(false))
      this.#waiting.set(name, () => {
        cancel()
        resolve(true)
      })
    })
  }

  #subscribe(filter: string): Promise<readonly number[]> {
    return this.#parts.connection.subscribe([filter])
  }

  #publish(processId: string, name: CloudTopic, payload = ''): void {
    this.#parts.connection.publish(cloudTopic(processId, name), payload, { retain: false })
  }
}
