import { describe, expect, test } from 'vitest'
import { decodeSgtin } from '../../policy/gs1/sgtin.ts'
import { memoryPair } from '../../device-drivers/transports/memory.ts'
import { decodeMessage, encodeMessage } from '../../device-drivers/llrp/protocol/binary.ts'
import { first, message, parameter } from '../../device-drivers/llrp/protocol/elements.ts'
import type { Message } from '../../device-drivers/llrp/protocol/elements.ts'
import { llrpCodec } from '../../device-drivers/llrp/protocol/frames.ts'
import { crowd, epcsOfShop } from '../../simulators/devices/llrp-crowd.ts'
import type { Walk } from '../../simulators/devices/llrp-crowd.ts'
import { llrpReader } from '../../simulators/devices/llrp.ts'
import { virtualPlatform } from '../verification/simulation/virtual/virtual-platform.ts'

const FOR_EVER = new AbortController().signal

/** A client that uses only the codec, not the driver. */
function connect(reader: ReturnType<typeof llrpReader>, world: ReturnType<typeof virtualPlatform>) {
  const { near, far } = memoryPair()
  const received: Message[] = []
  let isOver = false
  void reader.serve(far)
  void (async () => {
    const codec = llrpCodec()
    for await (const chunk of near.bytes)
      for (const frame of codec.push(chunk)) received.push(decodeMessage(frame) as Message)
    isOver = true
  })()
  return {
    received,
    get isOver() {
      return isOver
    },
    async request(request: Message): Promise<Message | undefined> {
      const from = received.length
      await near.write(encodeMessage(request), FOR_EVER)
      await world.advance(1)
      return received.slice(from).find(({ id }) => id === request.id)
    },
  }
}

const statusOf = (request: Message | undefined) => first(request, 'LLRPStatus')?.fields.StatusCode

describe('the simulated reader', () => {
  test('accepts one client, and rejects what it does not support', async () => {
    const world = virtualPlatform()
    const reader = llrpReader({ platform: world })
    const one = connect(reader, world)
    await world.advance(1)
    expect(first(first(one.received[0], 'ReaderEventNotificationData'), 'ConnectionAttemptEvent')?.fields.Status).toBe(
      0,
    )
    expect(statusOf(await one.request(message('ENABLE_ROSPEC', 7, { ROSpecID: 3 })))).toBe(101)
    expect(
      statusOf(
        await one.request(
          message(
            'SET_READER_CONFIG',
            8,
            { ResetToFactoryDefault: false },
            parameter('GPOWriteData', { GPOPortNumber: 9, GPOData: true }),
          ),
        ),
      ),
    ).toBe(301)
    expect(await one.request(message('KEEPALIVE', 9, {}))).toMatchObject({ name: 'ERROR_MESSAGE' })
    const two = connect(reader, world)
    await world.advance(1)
    expect(first(first(two.received[0], 'ReaderEventNotificationData'), 'ConnectionAttemptEvent')?.fields.Status).toBe(
      2,
    )
    expect([two.isOver, one.isOver]).toEqual([true, false])
    expect(
      first(first(one.received.at(-1), 'ReaderEventNotificationData'), 'ConnectionAttemptEvent')?.fields.Status,
    ).toBe(4)
  })
})

describe('the crowd', () => {
  test('makes EPCs of articles', () => {
    const epcs = epcsOfShop(200)
    expect(new Set(epcs).size).toBe(200)
    expect(decodeSgtin(epcs[199]!)).toMatchObject({
      ok: true,
      sgtin: { companyPrefix: '4012345', itemReference: '000004', serial: '1199' },
    })
  })

  test('moves a walker out from the inside antenna to the outside one, and breaks the beam once', async () => {
    const world = virtualPlatform({ seed: 4 })
    const received: { antenna: number; ms: number }[] = []
    const beam: boolean[] = []
    const walks: Walk[] = []
    const people = crowd({
      platform: world,
      reader: {
        see: (_, look) => void received.push({ antenna: look?.antenna ?? 0, ms: world.clock.elapsed() }),
        setInput: (_, on) => void beam.push(on),
      },
      tags: 1,
      walkersPerMinute: 0,
      onWalk: (walk) => void walks.push(walk),
    })
    const middle = (antenna: number) => {
      const at = received.filter((each) => each.antenna === antenna).map(({ ms }) => ms)
      return at.reduce((sum, ms) => sum + ms, 0) / at.length
    }
    await world.settle(people.walk({ epcs: ['30AA'], direction: 'out' }))
    expect(middle(1)).toBeLessThan(middle(2))
    expect([received.length > 10, beam, walks.length]).toEqual([true, [true, false], 1])
    people.stop()
    expect(world.pending).toBe(0)
  })

  test('sends about the requested number of walkers a minute', async () => {
    const world = virtualPlatform({ seed: 9 })
    let walks = 0
    const people = crowd({
      platform: world,
      reader: { see: () => {}, setInput: () => {} },
      tags: 200,
      walkersPerMinute: 30,
      onWalk: () => walks++,
    })
    await world.advance(10 * 60_000)
    people.stop()
    expect(walks).toBeGreaterThan(270)
    expect(walks).toBeLessThan(330)
  })
})
