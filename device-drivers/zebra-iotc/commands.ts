import type { Cancel, Platform } from '../../policy/platform.ts'
import { zebraCommand, zebraResponse } from './protocol/messages.ts'
import type { ZebraCommand, ZebraResponse, ZebraTopics } from './protocol/messages.ts'
import type { MqttLine, Published } from '../kit/mqtt-line.ts'

export type ZebraAnswer =
  | { readonly kind: 'answered'; readonly payload: Record<string, unknown> }
  | { readonly kind: 'refused'; readonly detail: string }
  /** No answer. `possiblySent`: the reader may have received the command. */
  | { readonly kind: 'lost'; readonly possiblySent: boolean; readonly detail: string }

/** Sends commands to one reader and matches the responses by id. */
export interface ZebraCommands {
  /** Never rejects. */
  request(by: 'management' | 'control', command: ZebraCommand, payload?: object): Promise<ZebraAnswer>
  /** Handles a message of a response topic. False if the message is no response. */
  onResponse(value: unknown): boolean
  /** Ends all pending commands as lost. */
  end(reason: string): void
}

const MAX_WAITING = 64

/** Makes the client, which sends each command once. */
export function zebraCommands(
  line: MqttLine,
  topics: ZebraTopics,
  platform: Platform,
  timeoutMs: number,
): ZebraCommands {
  const waiting = new Map<string, { settle: (answer: ZebraAnswer) => void; cancel: Cancel }>()
  const prefix = Buffer.from(platform.random.bytes(4)).toString('hex')
  let count = 0
  let over: string | null = null

  function settle(id: string, answer: ZebraAnswer): void {
    const open = waiting.get(id)
    waiting.delete(id)
    open?.cancel()
    open?.settle(answer)
  }

  const answerOf = ({ isSuccess, payload }: ZebraResponse): ZebraAnswer =>
    isSuccess
      ? { kind: 'answered', payload }
      : { kind: 'refused', detail: `the reader refuses: ${JSON.stringify(payload).slice(0, 200)}` }

  return {
    request(by, command, payload = {}) {
      const topic = topics[`${by}Command`]
      const unsent = (detail: string): Promise<ZebraAnswer> =>
        Promise.resolve({ kind: 'lost', possiblySent: false, detail })
      if (over !== null) return unsent(over)
      if (topic === undefined) return unsent(`no topic for ${by} is configured`)
      if (waiting.size >= MAX_WAITING) return unsent(`${MAX_WAITING} commands wait for this reader already`)
      const id = `${prefix}-${++count}`
      return new Promise((settled) => {
        let published: Published | false = false
        const late = () => {
          settle(id, { kind: 'lost', possiblySent: true, detail: `no answer to ${command} within ${timeoutMs} ms` })
          // Without an acknowledgement the command may still wait in a queue, and the reader may execute it too late.
          // Therefore the connection ends, which discards the command. After an acknowledgement the connection stays
          // open for the other devices.
          if (!published || !published.isAcknowledged())
            line.end(`the broker did not acknowledge ${command} within ${timeoutMs} ms`)
        }
        waiting.set(id, { settle: settled, cancel: platform.timers.after(timeoutMs, late) })
        void line.publish(topic, zebraCommand(command, id, payload)).then((message) => {
          published = message
          if (!message)
            settle(id, { kind: 'lost', possiblySent: true, detail: 'the connection to the broker has ended' })
        })
      })
    },
    onResponse(value) {
      const response = zebraResponse(value)
      if (response) settle(response.id, answerOf(response))
      return response !== null
    },
    end(reason) {
      over = reason
      for (const id of waiting.keys()) settle(id, { kind: 'lost', possiblySent: true, detail: reason })
    },
  }
}
