import { createServer } from 'node:http'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { once } from 'node:events'
import { getRequestListener, type HttpBindings } from '@hono/node-server'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openFeed, type Feed, type FeedEvent } from '../../../edge-agent/feed.ts'
import {
  BACKLOG_LIMIT,
  eventStream,
  LISTENER_LIMIT,
  LISTENERS_OF_CALLER,
  type EventStream,
} from '../../../edge-agent/http/routes/status-routes.ts'
import { letPromisesSettle } from '../../verification/simulation/virtual/virtual-platform.ts'

const always = () => true
const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }
const operator = (name: string): FeedEvent => ({ type: 'operator', deviceId: 'dev_1', name })

describe('the events of the agent', () => {
  let feed: Feed
  let stream: EventStream
  let described: number
  let disconnections: number

  beforeEach(() => {
    feed = openFeed()
    described = 0
    disconnections = 0
    const describeEvent = (event: FeedEvent) => {
      described++
      return event
    }
    stream = eventStream(feed, describeEvent, () => ({ type: 'status' }), silent)
  })
  afterEach(() => feed.close())

  let callers = 0
  const open = () =>
    stream
      .open(`browser ${callers++}`, () => void disconnections++, always)
      ?.body?.getReader() as ReadableStreamDefaultReader<Uint8Array>
  const textOf = async (reader: ReadableStreamDefaultReader<Uint8Array>) =>
    new TextDecoder().decode((await reader.read()).value)

  it('reach every listener after the present state, and are serialized once for all', async () => {
    const readers = Array.from({ length: LISTENER_LIMIT }, open)
    feed.publish(operator('Ada'))
    for (const reader of readers) {
      expect(await textOf(reader)).toBe('event: status\ndata: {"type":"status"}\n\n')
      expect(await textOf(reader)).toBe(`event: operator\ndata: ${JSON.stringify(operator('Ada'))}\n\n`)
    }
    expect(described).toBe(1)
  })

  it('reach at most 32 listeners; after one disconnects, another can connect', async () => {
    const readers = Array.from({ length: LISTENER_LIMIT }, open)
    expect(stream.open('another', () => undefined, always)).toBe(undefined)
    await readers[0]?.cancel()
    expect(stream.open('another', () => undefined, always)).toBeInstanceOf(Response)
    expect(stream.open('another', () => undefined, always)).toBe(undefined)
  })

  it('reach at most 12 listeners of one browser or program, so that it cannot displace the screens of others', () => {
    const ofOne = () => stream.open('program', () => undefined, always)
    for (let n = 0; n < LISTENERS_OF_CALLER; n++) expect(ofOne()).toBeInstanceOf(Response)
    expect(ofOne()).toBe(undefined)
    expect(stream.open('gate', () => undefined, always)).toBeInstanceOf(Response)
  })

  it('disconnect only the listener that does not read', async () => {
    const idle = open()
    const reading = open()
    await textOf(reading)
    for (let i = 0; i < BACKLOG_LIMIT; i++) {
      feed.publish(operator(String(i)))
      expect(await textOf(reading)).toContain(`"name":"${i}"`)
    }
    feed.publish(operator('one too many'))
    await textOf(reading)
    expect(disconnections).toBe(1)
    for (let i = 0; i < BACKLOG_LIMIT; i++) expect((await idle.read()).done).toBe(false)
    expect((await idle.read()).done).toBe(true)
    expect(stream.open('another', () => undefined, always)).toBeInstanceOf(Response)
  })

  it('end for a listener that lost its access, before the next event', async () => {
    let mayListen = true
    const revoked = stream
      .open(
        'revoked',
        () => void disconnections++,
        () => mayListen,
      )
      ?.body?.getReader() as ReadableStreamDefaultReader<Uint8Array>
    const other = open()
    for (const reader of [revoked, other]) await textOf(reader)
    mayListen = false
    feed.publish(operator('Ada'))
    expect(await revoked.read()).toEqual({ done: true, value: undefined })
    expect(await textOf(other)).toContain('Ada')
    expect(disconnections).toBe(1)
  })

  it('end for all when the agent stops', async () => {
    const reader = open()
    await textOf(reader)
    feed.close()
    expect(await reader.read()).toEqual({ done: true, value: undefined })
  })

  it('close the connection of a client that does not read', async () => {
    const server = createServer(
      getRequestListener(
        (_, env) => stream.open('slow', () => (env as HttpBindings).outgoing.destroy(), always) ?? new Response(),
      ),
    )
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const socket: Socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
    socket.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n')
    await once(socket, 'readable')
    socket.pause()
    const closed = once(socket, 'close')
    const long = 'x'.repeat(100_000)
    for (let i = 0; i < 2 * BACKLOG_LIMIT; i++) {
      feed.publish(operator(long))
      await letPromisesSettle()
    }
    socket.resume()
    socket.on('error', () => undefined)
    await closed
    server.close()
  })
})
