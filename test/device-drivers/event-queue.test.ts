import { expect, test } from 'vitest'
import type { DeviceEvent, TagRead } from '../../device-drivers/kit/device.ts'
import { EventQueue } from '../../device-drivers/kit/event-queue.ts'

const read = (n: number): TagRead => ({ tag: { epc: String(n) }, seenAtMs: n })

async function all(queue: EventQueue): Promise<DeviceEvent[]> {
  queue.end()
  const events: DeviceEvent[] = []
  for await (const event of queue.events) events.push(event)
  return events
}

const numbers = (events: readonly DeviceEvent[]) =>
  events.flatMap((event) => (event.type === 'tags' ? event.reads.map(({ seenAtMs }) => seenAtMs) : []))

test('joins tag reads in events of at most 1,000, in order with other events', async () => {
  const queue = new EventQueue()
  for (let n = 0; n < 2_500; n++) queue.putReads([read(n)])
  queue.put({ type: 'passage' })
  queue.putReads([read(2_500)])
  queue.put({ type: 'tags', reads: [read(2_501)] })
  const events = await all(queue)
  expect(events.map((event) => (event.type === 'tags' ? event.reads.length : event.type))).toEqual([
    1_000,
    1_000,
    500,
    'passage',
    2,
  ])
  expect(numbers(events)).toEqual(Array.from({ length: 2_502 }, (_, n) => n))
})

test('drops the oldest reads of a full queue, reports them in one fault, and keeps other events', async () => {
  const queue = new EventQueue()
  queue.put({ type: 'passage' })
  for (let n = 0; n < 150_000; n += 1_000) queue.putReads(Array.from({ length: 1_000 }, (_, i) => read(n + i)))
  const [fault, passage, ...rest] = await all(queue)
  expect(fault).toEqual({
    type: 'fault',
    detail: '50000 tag reads were lost because the agent did not read them in time',
  })
  expect(passage).toEqual({ type: 'passage' })
  expect(numbers(rest)).toEqual(Array.from({ length: 100_000 }, (_, n) => 50_000 + n))
})

test('also bounds reads between many other events', async () => {
  const queue = new EventQueue()
  for (let n = 0; n < 1_500; n++) {
    queue.put({ type: 'passage' })
    queue.putReads([read(n)])
  }
  const [fault, ...events] = await all(queue)
  expect(events).toHaveLength(1_000)
  expect(numbers(events)).toEqual(Array.from({ length: 500 }, (_, n) => 1_000 + n))
  expect(fault).toEqual({
    type: 'fault',
    detail: '1000 events and 1000 tag reads were lost because the agent did not read them in time',
  })
})
