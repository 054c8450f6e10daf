import { pause, type Cancel, type Platform } from '../../policy/platform.ts'
import { CONNECT_REFUSALS, mqttCodec } from './protocol/mqtt-packet.ts'
import type { MqttPacket } from './protocol/mqtt-packet.ts'
import type { ByteLink } from '../transports/byte-link.ts'
import { linkKey } from '../transports/link-settings.ts'
import type { AnyLink } from '../transports/link-settings.ts'
import type { LinkProtocol, ProtocolClient } from '../transports/shared-links.ts'

/** A published message that was passed to the link. */
export interface Published {
  /** True if the broker has received the message. */
  isAcknowledged(): boolean
}

const KEEPALIVE_SECONDS = 10
/** The connection ends after this many keepalive intervals without a packet. */
const MISSED = 2
const MAX_LISTENERS = 1_024
/** Packets at once, and a second: some readers send one for each tag. The line reads no further meanwhile. */
const PACKETS = { most: 10_000, perSecond: 5_000 }
const NEVER_ABORTED = new AbortController().signal

/** An MQTT 3.1.1 client with QoS 0 and 1. All devices of a broker share this connection. */
export class MqttLine implements ProtocolClient {
  readonly #link: ByteLink
  readonly #platform: Platform
  readonly #codec = mqttCodec()
  readonly #listeners = new Map<string, Set<(topic: string, payload: Uint8Array) => void>>()
  readonly #pendingSubscriptions = new Map<number, { done: () => void; fail: (why: Error) => void }>()
  /** Acknowledgements of the messages of one chunk, which one write sends. */
  #acknowledgements: Uint8Array[] = []
  #lastReceivedAt: number
  #id = 0
  #pings = 0
  #pongs = 0
  #endReason: string | null = null
  #cancelKeepalive: Cancel = () => {}
  #resolveEnded = (_reason: string) => {}
  #resolveAccepted = () => {}
  #rejectAccepted = (_why: Error) => {}
  readonly ended = new Promise<string>((resolve) => {
    this.#resolveEnded = resolve
  })
  /** Resolves when the broker has accepted the connection; rejects with the broker's reason. */
  readonly accepted = new Promise<void>((resolve, reject) => {
    this.#resolveAccepted = resolve
    this.#rejectAccepted = reject
  })

  constructor(link: ByteLink, settings: AnyLink, platform: Platform) {
    this.#link = link
    this.#platform = platform
    const { user, password }: { user?: string | undefined; password?: string | undefined } =
      'mqtt' in settings || 'mqtts' in settings ? settings : {}
    this.#lastReceivedAt = platform.clock.elapsed()
    this.accepted.catch(() => {})
    void this.#listen()
    const clientId = `untag-${Buffer.from(platform.random.bytes(6)).toString('hex')}`
    void this.#send({
      cmd: 'connect',
      clientId,
      keepalive: KEEPALIVE_SECONDS,
      ...(user !== undefined && { username: user }),
      ...(password !== undefined && { password: Buffer.from(password) }),
    })
    this.#scheduleKeepalive()
  }

  /** Subscribes to exactly these topics. Rejects if the broker refuses or the connection ends. */
  async subscribe(topics: readonly string[], listener: (topic: string, payload: Uint8Array) => void): Promise<Cancel> {
    if (this.#endReason !== null) throw new Error(this.#endReason)
    if (this.#listeners.size + topics.length > MAX_LISTENERS)
      throw new Error(`this connection already has ${MAX_LISTENERS} subscriptions`)
    const messageId = this.#nextId()
    const granted = new Promise<void>((done, fail) => this.#pendingSubscriptions.set(messageId, { done, fail }))
    for (const topic of topics) this.#listeners.set(topic, (this.#listeners.get(topic) ?? new Set()).add(listener))
    const leave = () => {
      for (const topic of topics) {
        this.#listeners.get(topic)?.delete(listener)
        if (this.#listeners.get(topic)?.size === 0) this.#listeners.delete(topic)
      }
    }
    granted.catch(leave)
    await this.#send({
      cmd: 'subscribe',
      messageId,
      subscriptions: topics.map((topic) => ({ topic, qos: 1 })),
    })
    await granted
    return leave
  }

  /**
   * Publishes a message to the subscribers that are online now. Resolves with false if the connection has ended.
   * Success does not mean that a subscriber received the message.
   */
  async publish(topic: string, payload: string): Promise<Published | false> {
    // With QoS 1 a broker would store the message for an offline reader. After its reconnect the reader would then open
    // a barrier too late.
    const message = this.#send({
      cmd: 'publish',
      topic,
      payload: Buffer.from(payload),
      qos: 0,
      retain: false,
      dup: false,
    })
    // QoS 0 has no acknowledgement, but a broker that answers a later ping has received the message.
    const pingNumber = this.#ping()
    return (await message) && { isAcknowledged: () => this.#pongs >= pingNumber }
  }

  /** Ends the connection; messages that the broker has not received are discarded. */
  end(reason: string): void {
    if (this.#endReason !== null) return
    this.#endReason = reason
    this.#cancelKeepalive()
    this.#rejectAccepted(new Error(reason))
    for (const { fail } of this.#pendingSubscriptions.values()) fail(new Error(reason))
    this.#pendingSubscriptions.clear()
    this.#resolveEnded(reason)
  }

  #send(packet: MqttPacket): Promise<boolean> {
    return this.#write(this.#codec.encode(packet))
  }

  async #write(bytes: Uint8Array): Promise<boolean> {
    if (this.#endReason !== null) return false
    try {
      await this.#link.write(bytes, NEVER_ABORTED)
      return true
    } catch (error) {
      this.end(error instanceof Error ? error.message : String(error))
      return false
    }
  }

  #ping(): number {
    void this.#send({ cmd: 'pingreq' })
    return ++this.#pings
  }

  #scheduleKeepalive(): void {
    this.#cancelKeepalive = this.#platform.timers.after(KEEPALIVE_SECONDS * 1_000, () => {
      if (this.#platform.clock.elapsed() - this.#lastReceivedAt > KEEPALIVE_SECONDS * MISSED * 1_000)
        return this.end('the broker stopped answering')
      this.#ping()
      this.#scheduleKeepalive()
    })
  }

  #onPacket(packet: MqttPacket): void {
    if (packet.cmd === 'connack' && packet.returnCode === 0) this.#resolveAccepted()
    else if (packet.cmd === 'connack')
      this.end(
        `the broker refuses the connection: ${CONNECT_REFUSALS[packet.returnCode] ?? `code ${packet.returnCode}`}`,
      )
    else if (packet.cmd === 'suback') {
      const open = this.#pendingSubscriptions.get(packet.messageId)
      this.#pendingSubscriptions.delete(packet.messageId)
      if (packet.granted.some((code) => code > 2))
        open?.fail(new Error('the broker does not allow this user to read a topic; check its access list'))
      else open?.done()
    } else if (packet.cmd === 'pingresp') this.#pongs++
    else if (packet.cmd === 'publish') {
      if (packet.messageId !== undefined)
        this.#acknowledgements.push(this.#codec.encode({ cmd: 'puback', messageId: packet.messageId }))
      // Ignores retained messages, because their age is unknown.
      if (!packet.retain)
        for (const listener of this.#listeners.get(packet.topic) ?? []) listener(packet.topic, packet.payload)
    }
  }

  async #listen(): Promise<void> {
    const { clock, timers } = this.#platform
    let left = PACKETS.most
    let atMs = clock.elapsed()
    try {
      for await (const chunk of this.#link.bytes) {
        this.#lastReceivedAt = this.#platform.clock.elapsed()
        const packets = this.#codec.push(chunk)
        for (const packet of packets) if (this.#endReason === null) this.#onPacket(packet)
        const acknowledgements = this.#acknowledgements.splice(0)
        if (acknowledgements.length > 0) void this.#write(Buffer.concat(acknowledgements))
        if (this.#codec.fault !== null) this.end(`the peer is no MQTT broker (${this.#codec.fault})`)
        if (this.#endReason !== null) return
        left = Math.min(PACKETS.most, left + ((clock.elapsed() - atMs) / 1_000) * PACKETS.perSecond) - packets.length
        atMs = clock.elapsed()
        if (left < 0) await pause(timers, (-left / PACKETS.perSecond) * 1_000)
      }
      this.end('the broker closed the connection')
    } catch (error) {
      this.end(error instanceof Error ? error.message : String(error))
    }
  }

  #nextId(): number {
    this.#id = (this.#id % 65_535) + 1
    return this.#id
  }
}

/** All devices use this protocol object, so devices with the same broker and user share a connection. */
export const MQTT_LINE: LinkProtocol<MqttLine> = {
  name: 'MQTT',
  start: (link, settings, platform) => new MqttLine(link, settings, platform),
}

/** Value of `linkUse` for a broker: devices with the same broker and user share a connection. */
export function brokerUse(settings: AnyLink): string {
  return `MQTT, ${linkKey(settings)}`
}
