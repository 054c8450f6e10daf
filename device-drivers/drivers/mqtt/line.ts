import type { Cancel, Platform } from '../../../policy/platform.ts'
import { CONNECT_REFUSALS, mqttCodec } from '../../protocols/mqtt/packet.ts'
import type { MqttPacket } from '../../protocols/mqtt/packet.ts'
import type { ByteLink } from '../../transports/byte-link.ts'
import { linkKey } from '../../transports/link-settings.ts'
import type { AnyLink } from '../../transports/link-settings.ts'
import type { LinkProtocol, Speaker } from '../../transports/shared-links.ts'

/** One connection to a broker, for all devices on it. */
export interface MqttLine extends Speaker {
  /** Resolves when the broker has accepted us; rejects with its reason. */
  readonly accepted: Promise<void>
  /** Hears what is published to exactly these topics. Rejects when the broker refuses or the line is gone. */
  subscribe(topics: readonly string[], listener: (topic: string, payload: Uint8Array) => void): Promise<Cancel>
  /** For those who are there now. False when it could not be handed to the link; whoever it is for answers, or not. */
  publish(topic: string, payload: string): Promise<Published | false>
  /** Ends the line: what the broker has not taken is thrown away. */
  end(reason: string): void
}

/** A message that was handed to the link. */
export interface Published {
  /** Whether the broker has it by now; what it has it passes on, or has lost. */
  taken(): boolean
}

const KEEPALIVE_SECONDS = 10
/** Nothing heard for so many keepalives: the line is gone. */
const MISSED = 2
const MOST_LISTENERS = 1_024
const FOR_EVER = new AbortController().signal

function startMqtt(link: ByteLink, settings: AnyLink, platform: Platform): MqttLine {
  const { clock, timers } = platform
  const codec = mqttCodec()
  const listeners = new Map<string, Set<(topic: string, payload: Uint8Array) => void>>()
  const asked = new Map<number, { done: () => void; fail: (why: Error) => void }>()
  const { user, password }: { user?: string | undefined; password?: string | undefined } =
    'mqtt' in settings || 'mqtts' in settings ? settings : {}
  let heardAt = clock.elapsed()
  let id = 0
  let pings = 0
  let pongs = 0
  let over: string | null = null
  let cancelBeat: Cancel = () => {}
  let tellEnded = (_reason: string) => {}
  let accept = () => {}
  let refuse = (_why: Error) => {}
  const ended = new Promise<string>((resolve) => {
    tellEnded = resolve
  })
  const accepted = new Promise<void>((resolve, reject) => {
    accept = resolve
    refuse = reject
  })
  accepted.catch(() => {})

  function end(reason: string): void {
    if (over !== null) return
    over = reason
    cancelBeat()
    refuse(new Error(reason))
    for (const { fail } of asked.values()) fail(new Error(reason))
    asked.clear()
    tellEnded(reason)
  }

  async function send(packet: MqttPacket): Promise<boolean> {
    if (over !== null) return false
    try {
      await link.write(codec.encode(packet), FOR_EVER)
      return true
    } catch (error) {
      end(error instanceof Error ? error.message : String(error))
      return false
    }
  }

  function ping(): number {
    void send({ cmd: 'pingreq' })
    return ++pings
  }

  function beat(): void {
    cancelBeat = timers.after(KEEPALIVE_SECONDS * 1_000, () => {
      if (clock.elapsed() - heardAt > KEEPALIVE_SECONDS * MISSED * 1_000) return end('the broker says nothing any more')
      ping()
      beat()
    })
  }

  function onPacket(packet: MqttPacket): void {
    if (packet.cmd === 'connack' && packet.returnCode === 0) accept()
    else if (packet.cmd === 'connack')
      end(`the broker refuses the connection: ${CONNECT_REFUSALS[packet.returnCode] ?? `code ${packet.returnCode}`}`)
    else if (packet.cmd === 'suback') {
      const open = asked.get(packet.messageId)
      asked.delete(packet.messageId)
      if (packet.granted.some((code) => code > 2))
        open?.fail(new Error('the broker does not let this user read a topic; check its access list'))
      else open?.done()
    } else if (packet.cmd === 'pingresp') pongs++
    else if (packet.cmd === 'publish') {
      if (packet.messageId !== undefined) void send({ cmd: 'puback', messageId: packet.messageId })
      // What was kept on the broker is of no known age.
      if (!packet.retain)
        for (const listener of listeners.get(packet.topic) ?? []) listener(packet.topic, packet.payload)
    }
  }

  async function listen(): Promise<void> {
    try {
      for await (const chunk of link.bytes) {
        heardAt = clock.elapsed()
        for (const packet of codec.push(chunk)) if (over === null) onPacket(packet)
        if (codec.fault !== null) end(`what answers is no MQTT broker (${codec.fault})`)
        if (over !== null) return
      }
      end('the broker closed the connection')
    } catch (error) {
      end(error instanceof Error ? error.message : String(error))
    }
  }

  const nextId = (): number => {
    id = (id % 65_535) + 1
    return id
  }

  void listen()
  const clientId = `untag-${Buffer.from(platform.random.bytes(6)).toString('hex')}`
  void send({
    cmd: 'connect',
    clientId,
    keepalive: KEEPALIVE_SECONDS,
    ...(user !== undefined && { username: user }),
    ...(password !== undefined && { password: Buffer.from(password) }),
  })
  beat()

  return {
    ended,
    accepted,
    async subscribe(topics, listener) {
      if (over !== null) throw new Error(over)
      if (listeners.size + topics.length > MOST_LISTENERS)
        throw new Error(`${MOST_LISTENERS} topics are listened to already`)
      const mine = nextId()
      const told = new Promise<void>((done, fail) => asked.set(mine, { done, fail }))
      for (const topic of topics) listeners.set(topic, (listeners.get(topic) ?? new Set()).add(listener))
      const leave = () => {
        for (const topic of topics) {
          listeners.get(topic)?.delete(listener)
          if (listeners.get(topic)?.size === 0) listeners.delete(topic)
        }
      }
      told.catch(leave)
      await send({ cmd: 'subscribe', messageId: mine, subscriptions: topics.map((topic) => ({ topic, qos: 1 })) })
      await told
      return leave
    },
    // QoS 0: with 1 a broker keeps it for a reader that is away, and a barrier would open by itself once that is back.
    async publish(topic, payload) {
      const message = send({
        cmd: 'publish',
        topic,
        payload: Buffer.from(payload),
        qos: 0,
        retain: false,
        dup: false,
      })
      // Nothing confirms QoS 0, but a broker that answers what came behind it has it.
      const mine = ping()
      return (await message) && { taken: () => pongs >= mine }
    },
    end,
  }
}

/** One object for all: devices with the same broker and user share the connection. */
export const MQTT_LINE: LinkProtocol<MqttLine> = { name: 'MQTT', start: startMqtt }

/** Devices on one broker must agree on this. */
export function brokerUse(settings: AnyLink): string {
  return `MQTT, ${linkKey(settings)}`
}
