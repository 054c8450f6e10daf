import { mqttCodec } from '../../device-drivers/kit/protocol/mqtt-packet.ts'
import type { MqttPacket } from '../../device-drivers/kit/protocol/mqtt-packet.ts'
import type { ByteLink } from '../../device-drivers/transports/byte-link.ts'

/** The part of the broker that a simulated device uses. */
export interface MessageBus {
  publish(topic: string, payload: string | Uint8Array): void
  subscribe(topic: string, listener: (payload: string) => void): void
}

/** A small broker for simulations: exact topics, QoS 0 and 1, no retained messages. */
interface MqttBroker extends MessageBus {
  serve(link: ByteLink): Promise<void>
  /** While `on` is true, the broker ignores all packets and sends none. */
  mute(on: boolean): void
  /** Leaves packets of this kind without an answer. */
  ignore(kind: MqttPacket['cmd']): void
  /** Sets the required login; default: none. */
  login(user: string, password: string): void
  readonly clients: number
}

const MAX_CLIENTS = 64
const NEVER_ABORTED = new AbortController().signal

/** Makes a broker. Devices use the broker directly, and clients use it over links. */
export function mqttBroker(): MqttBroker {
  const clients = new Map<ByteLink, Set<string>>()
  const listeners = new Map<string, Set<(payload: string) => void>>()
  const codec = mqttCodec()
  let isMute = false
  let ignored: MqttPacket['cmd'] | null = null
  let login: { user: string; password: string } | null = null
  let id = 0

  function publish(topic: string, payload: string | Uint8Array): void {
    if (isMute) return
    id = (id % 65_535) + 1
    const packet = codec.encode({
      cmd: 'publish',
      topic,
      payload: Buffer.from(payload),
      qos: 1,
      retain: false,
      dup: false,
      messageId: id,
    })
    for (const [link, topics] of clients) if (topics.has(topic)) link.write(packet, NEVER_ABORTED).catch(() => {})
  }

  async function take(link: ByteLink, topics: Set<string>, packet: MqttPacket): Promise<boolean> {
    const answer = (reply: MqttPacket) => link.write(codec.encode(reply), NEVER_ABORTED)
    if (packet.cmd === 'connect') {
      const { username, password } = packet
      const isWelcome = !login || (username === login.user && password?.toString() === login.password)
      await answer({ cmd: 'connack', returnCode: isWelcome ? 0 : 4, sessionPresent: false })
      if (isWelcome) clients.set(link, topics)
      return isWelcome
    }
    if (!clients.has(link)) return false
    if (packet.cmd === ignored) return true
    if (packet.cmd === 'subscribe') {
      const { messageId, subscriptions } = packet
      for (const { topic } of subscriptions) topics.add(topic)
      await answer({ cmd: 'suback', messageId, granted: subscriptions.map(() => 1) })
    } else if (packet.cmd === 'pingreq') await answer({ cmd: 'pingresp' })
    else if (packet.cmd === 'publish') {
      if (packet.messageId !== undefined) await answer({ cmd: 'puback', messageId: packet.messageId })
      publish(packet.topic, packet.payload)
      for (const listener of listeners.get(packet.topic) ?? []) listener(new TextDecoder().decode(packet.payload))
    }
    return packet.cmd !== 'disconnect'
  }

  return {
    publish,
    subscribe: (topic, listener) => void listeners.set(topic, (listeners.get(topic) ?? new Set()).add(listener)),
    mute: (on) => void (isMute = on),
    ignore: (kind) => void (ignored = kind),
    login: (user, password) => void (login = { user, password }),
    get clients() {
      return clients.size
    },
    async serve(link) {
      if (clients.size >= MAX_CLIENTS) return link.close()
      const reading = mqttCodec()
      const topics = new Set<string>()
      try {
        for await (const chunk of link.bytes) {
          for (const packet of reading.push(chunk)) if (!isMute && !(await take(link, topics, packet))) return
          if (reading.fault !== null) return
        }
      } catch {
        // Ignores the error, because a broken link is like an unplugged client.
      } finally {
        clients.delete(link)
        await link.close()
      }
    },
  }
}
