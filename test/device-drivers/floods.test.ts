import { expect, test } from 'vitest'
import { MQTT_LINE } from '../../device-drivers/kit/mqtt-line.ts'
import { mqttCodec } from '../../device-drivers/kit/protocol/mqtt-packet.ts'
import { message } from '../../device-drivers/llrp/protocol/elements.ts'
import { encodeMessage } from '../../device-drivers/llrp/protocol/binary.ts'
import { LlrpConversation } from '../../device-drivers/llrp/conversation.ts'
import { HttpConversation } from '../../device-drivers/kit/http/conversation.ts'
import { memoryPair } from '../../device-drivers/transports/memory.ts'
import type { ByteLink } from '../../device-drivers/transports/byte-link.ts'
import { virtualPlatform } from '../verification/simulation/virtual/virtual-platform.ts'
import { concat } from './pieces.ts'
import { forEver } from './workbench.ts'

/** A link that counts its writes. */
function counted(link: ByteLink): { link: ByteLink; writes: Uint8Array[] } {
  const writes: Uint8Array[] = []
  const write: ByteLink['write'] = (bytes, signal) => {
    writes.push(bytes)
    return link.write(bytes, signal)
  }
  return { link: { ...link, write }, writes }
}

/** Peers of readers may be anyone: what they send at once must not cost one write for each message. */
test('a flood of MQTT messages with QoS 1 is acknowledged in one write, each message once', async () => {
  const world = virtualPlatform()
  const { near, far } = memoryPair()
  const { link, writes } = counted(near)
  MQTT_LINE.start(link, { mqtt: '10.0.0.9' }, world)
  await world.advance(1)
  const before = writes.length
  const broker = mqttCodec()
  const flood = Array.from({ length: 5_000 }, (_, n) =>
    broker.encode({
      cmd: 'publish',
      topic: 'x',
      payload: Buffer.alloc(0),
      qos: 1,
      messageId: n + 1,
      retain: false,
      dup: false,
    }),
  )
  await far.write(concat(flood), forEver())
  await world.advance(1)
  expect(writes.length - before).toBe(1)
  const acknowledged = mqttCodec().push(writes.at(-1) ?? new Uint8Array())
  expect(acknowledged.map((packet) => packet.cmd === 'puback' && packet.messageId)).toEqual(flood.map((_, n) => n + 1))
})

test('an MQTT line reads only as many packets a second as readers send', async () => {
  const world = virtualPlatform()
  const { near, far } = memoryPair()
  MQTT_LINE.start(near, { mqtt: '10.0.0.9' }, world)
  await world.advance(1)
  let sent = 0
  const pongs = concat(Array.from({ length: 10_000 }, () => mqttCodec().encode({ cmd: 'pingresp' })))
  const flood = async () => {
    for (;;) {
      await far.write(pongs, forEver())
      sent += 10_000
    }
  }
  void flood().catch(() => undefined)
  await world.advance(10_000)
  // The link itself holds 65,536 bytes.
  expect(sent).toBeGreaterThan(50_000)
  expect(sent).toBeLessThan(10_000 + 10 * 5_000 + 2 * 32_768 + 10_000)
})

test('a flood of LLRP keepalives is answered once', async () => {
  const world = virtualPlatform()
  const { near, far } = memoryPair()
  const { link, writes } = counted(near)
  const nothing = () => undefined
  void new LlrpConversation(link, world, { onTags: nothing, onNotification: nothing, onNoise: nothing })
  const keepalives = Array.from({ length: 5_000 }, (_, n) => encodeMessage(message('KEEPALIVE', n, {})))
  await far.write(concat(keepalives), forEver())
  await world.advance(1)
  expect(writes).toEqual([encodeMessage(message('KEEPALIVE_ACK', 4_999, {}))])
})

test('an HTTP answer in very many parts is refused, whatever its size', async () => {
  const world = virtualPlatform()
  const { near, far } = memoryPair()
  const http = new HttpConversation(near, world)
  const answer = http.request({ method: 'GET', path: '/status', headers: { host: 'reader' }, timeoutMs: 60_000 })
  await far.write(Buffer.from('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n'), forEver())
  for (let n = 0; n < 20 && !http.isOver; n++) {
    await far.write(Buffer.from('1\r\nx\r\n'.repeat(1_000)), forEver()).catch(() => undefined)
    await world.advance(1)
  }
  expect(await answer).toMatchObject({ kind: 'lost', detail: 'an answer in over 16384 parts' })
})
