import { cloudTopic } from '../../policy/mqtt-topics.ts'
import { pause, type Platform } from '../../policy/platform.ts'
import type { Log } from '../foundation/log.ts'
import type { BrokerConnection } from './broker-connection.ts'

export interface ProbeParts {
  connection: BrokerConnection
  /** Id of this cloud process. */
  id: string
  platform: Pick<Platform, 'timers'>
  log: Log
}

/** Maximum time for the answer of the broker to one question, ms. */
const ANSWER_MS = 2_000
/** A shared subscription may deliver a message somewhat later than a plain one, ms. */
const GRACE_MS = 300

/** Asks a broker what it can do: the cloud publishes to itself and looks what arrives. */
export interface ProbeLine {
  /** Call it with each probe message that arrives. */
  onMessage(processId: string, name: string): void
  hasSharedSubscriptions(): Promise<boolean>
}

/** Makes a probe on this connection. */
export function probeBroker({ connection, id, platform }: ProbeParts): ProbeLine {
  const waiting = new Map<string, () => void>()
  /** Resolves to true when the message arrives, or to false after `limitMs`. */
  function arrival(name: string, limitMs: number): Promise<boolean> {
    const stop = new AbortController()
    const arrived = new Promise<boolean>((resolve) => waiting.set(name, () => resolve(true)))
    const tooLate = pause(platform.timers, limitMs, stop.signal).then(
      () => false,
      () => false,
    )
    return Promise.race([arrived, tooLate]).finally(() => stop.abort())
  }

  return {
    onMessage: (processId, name) => void (processId === id && waiting.get(name)?.()),
    async hasSharedSubscriptions() {
      const granted = await connection.subscribe([
        `$share/untag-${id}/${cloudTopic(id, 'probe-shared')}`,
        cloudTopic(id, 'probe'),
      ])
      if ((granted[0] ?? 128) >= 128) return false
      const shared = arrival('probe-shared', ANSWER_MS + GRACE_MS)
      const plain = arrival('probe', ANSWER_MS)
      connection.publish(cloudTopic(id, 'probe-shared'), '', { retain: false })
      connection.publish(cloudTopic(id, 'probe'), '', { retain: false })
      await Promise.race([shared, plain])
      return Promise.race([shared, pause(platform.timers, GRACE_MS).then(() => false)])
    },
  }
}
