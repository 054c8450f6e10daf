import type { Codec } from '../codec.ts'

/** The packets of MQTT 3.1.1 that a client needs for QoS 0 and 1, and what a broker answers (OASIS standard, 2014). */
export type MqttPacket =
  | {
      readonly kind: 'connect'
      readonly clientId: string
      readonly keepaliveSeconds: number
      readonly user?: string
      readonly password?: string
    }
  /** `code` 0: accepted. */
  | { readonly kind: 'connack'; readonly code: number }
  /** `id` only with QoS 1. */
  | {
      readonly kind: 'publish'
      readonly topic: string
      readonly payload: Uint8Array
      readonly qos: 0 | 1
      readonly retain: boolean
      readonly id: number
    }
  | { readonly kind: 'puback'; readonly id: number }
  | { readonly kind: 'subscribe'; readonly id: number; readonly topics: readonly string[] }
  /** One code for each topic; 128: refused. */
  | { readonly kind: 'suback'; readonly id: number; readonly codes: readonly number[] }
  | { readonly kind: 'pingreq' }
  | { readonly kind: 'pingresp' }
  | { readonly kind: 'disconnect' }

/** On a connection that is no MQTT there is no way back: after a fault nothing more is read. */
export interface MqttCodec extends Codec<MqttPacket> {
  readonly fault: string | null
  readonly held: number
}

/** Readers send at most 256 KB at a time. */
export const MOST_PACKET_BYTES = 1_048_576

/** Why a broker refuses a connection, by the code of its answer. */
export const CONNECT_REFUSALS: Readonly<Record<number, string>> = {
  1: 'it does not speak MQTT 3.1.1',
  2: 'it does not accept the client id',
  3: 'it is unavailable',
  4: 'user or password is wrong',
  5: 'this user may not connect',
}

const TYPES = [
  '',
  'connect',
  'connack',
  'publish',
  'puback',
  '',
  '',
  '',
  'subscribe',
  'suback',
  '',
  '',
  'pingreq',
  'pingresp',
  'disconnect',
] as const
const text = new TextEncoder()
const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Reads fields; throws on what is too short, which the codec turns into its fault. */
function fields(body: Uint8Array) {
  let at = 0
  const take = (length: number): Uint8Array => {
    if (at + length > body.length) throw new RangeError('a packet that is too short')
    at += length
    return body.subarray(at - length, at)
  }
  const byte = () => take(1)[0] ?? 0
  const word = () => byte() * 256 + byte()
  return {
    byte,
    word,
    string: () => utf8.decode(take(word())),
    rest: () => take(body.length - at),
    isOver: () => at === body.length,
  }
}

function decodeConnect(body: Uint8Array): MqttPacket {
  const f = fields(body)
  if (f.string() !== 'MQTT' || f.byte() !== 4) throw new RangeError('another version of MQTT')
  const flags = f.byte()
  const keepaliveSeconds = f.word()
  const clientId = f.string()
  if (flags & 0x04) {
    f.string()
    f.string()
  }
  return {
    kind: 'connect',
    clientId,
    keepaliveSeconds,
    ...(flags & 0x80 && { user: f.string() }),
    ...(flags & 0x40 && { password: f.string() }),
  }
}

function decodePublish(flags: number, body: Uint8Array): MqttPacket {
  const f = fields(body)
  const qos = (flags >> 1) & 3
  if (qos > 1) throw new RangeError('a message with QoS 2, which was not asked for')
  const topic = f.string()
  return {
    kind: 'publish',
    topic,
    qos: qos === 1 ? 1 : 0,
    retain: (flags & 1) === 1,
    id: qos === 1 ? f.word() : 0,
    payload: f.rest().slice(),
  }
}

function decodeTopics(body: Uint8Array): MqttPacket {
  const f = fields(body)
  const id = f.word()
  const topics: string[] = []
  while (!f.isOver()) {
    topics.push(f.string())
    f.byte()
  }
  return { kind: 'subscribe', id, topics }
}

function decode(first: number, body: Uint8Array): MqttPacket {
  const kind = TYPES[first >> 4] ?? ''
  const f = fields(body)
  if (kind === 'connect') return decodeConnect(body)
  if (kind === 'publish') return decodePublish(first & 0x0f, body)
  if (kind === 'subscribe') return decodeTopics(body)
  if (kind === 'connack') {
    f.byte()
    return { kind, code: f.byte() }
  }
  if (kind === 'puback') return { kind, id: f.word() }
  if (kind === 'suback') return { kind, id: f.word(), codes: [...f.rest()] }
  if (kind === '') throw new RangeError('a packet of no known type')
  return { kind }
}

const word = (n: number): number[] => [(n >> 8) & 0xff, n & 0xff]

function string(value: string): number[] {
  const bytes = text.encode(value)
  if (bytes.length > 65_535) throw new RangeError('a text over 65,535 bytes')
  return [...word(bytes.length), ...bytes]
}

function bodyOf(packet: MqttPacket): { flags: number; body: Iterable<number> & { length: number } } {
  switch (packet.kind) {
    case 'connect': {
      const { user, password } = packet
      const flags = 0x02 | (user === undefined ? 0 : 0x80) | (password === undefined ? 0 : 0x40)
      const login = [...(user === undefined ? [] : string(user)), ...(password === undefined ? [] : string(password))]
      return {
        flags: 0,
        body: [...string('MQTT'), 4, flags, ...word(packet.keepaliveSeconds), ...string(packet.clientId), ...login],
      }
    }
    case 'connack':
      return { flags: 0, body: [0, packet.code] }
    case 'publish':
      return {
        flags: (packet.qos << 1) | (packet.retain ? 1 : 0),
        body: [...string(packet.topic), ...(packet.qos === 1 ? word(packet.id) : []), ...packet.payload],
      }
    case 'puback':
      return { flags: 0, body: word(packet.id) }
    case 'subscribe':
      return { flags: 2, body: [...word(packet.id), ...packet.topics.flatMap((topic) => [...string(topic), 1])] }
    case 'suback':
      return { flags: 0, body: [...word(packet.id), ...packet.codes] }
    default:
      return { flags: 0, body: [] }
  }
}

/** Packets in both directions. */
export function mqttCodec(): MqttCodec {
  let held: Uint8Array = new Uint8Array(0)
  let parts: Uint8Array[] = []
  let size = 0
  let fault: string | null = null

  /** The length of the packet that begins in `held`, with its head; 0 while it is not known. */
  function lengthOf(): { head: number; whole: number } {
    let length = 0
    for (let i = 1; i < 5; i++) {
      const byte = held[i]
      if (byte === undefined) return { head: 0, whole: 0 }
      length += (byte & 0x7f) * 128 ** (i - 1)
      if ((byte & 0x80) === 0) return { head: i + 1, whole: i + 1 + length }
    }
    throw new RangeError('a packet whose length cannot be')
  }

  function gather(): void {
    held = parts.length === 1 ? (parts[0] ?? held) : Uint8Array.from(Buffer.concat(parts))
    parts = [held]
  }

  function take(): MqttPacket | null {
    if (size < 2) return null
    if (held.length < Math.min(size, 5)) gather()
    const { head, whole } = lengthOf()
    if (whole > MOST_PACKET_BYTES) throw new RangeError(`a packet over ${MOST_PACKET_BYTES} bytes`)
    if (whole === 0 || size < whole) return null
    gather()
    const packet = decode(held[0] ?? 0, held.subarray(head, whole))
    held = held.slice(whole)
    parts = held.length > 0 ? [held] : []
    size = held.length
    return packet
  }

  return {
    push(chunk) {
      const packets: MqttPacket[] = []
      if (fault !== null || chunk.length === 0) return packets
      parts.push(chunk.slice())
      size += chunk.length
      try {
        for (let packet = take(); packet; packet = take()) packets.push(packet)
      } catch (error) {
        fault = error instanceof RangeError ? error.message : 'a text that is no UTF-8'
        parts = []
        held = new Uint8Array(0)
        size = 0
      }
      return packets
    },
    encode(packet) {
      const { flags, body } = bodyOf(packet)
      const length: number[] = []
      let left = body.length
      do {
        length.push((left & 0x7f) | (left > 0x7f ? 0x80 : 0))
        left >>= 7
      } while (left > 0)
      return Uint8Array.from([(TYPES.indexOf(packet.kind) << 4) | flags, ...length, ...body])
    },
    get fault() {
      return fault
    },
    get held() {
      return size
    },
  }
}
