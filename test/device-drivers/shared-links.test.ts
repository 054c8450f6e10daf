import { describe, expect, test } from 'vitest'
import type { ByteLink } from '../../device-drivers/transports/byte-link.ts'
import { memoryPort } from '../../device-drivers/transports/memory.ts'
import { SharedLinks, type LinkProtocol, type ProtocolClient } from '../../device-drivers/transports/shared-links.ts'
import { pause } from '../../policy/platform.ts'
import { virtualPlatform } from '../verification/simulation/virtual/virtual-platform.ts'
import { forEver } from './workbench.ts'

const LINK = { tcp: 'board:502' }
const quiet = () => {}

function protocol(name: string): LinkProtocol<ProtocolClient> {
  const drain = async (link: ByteLink) => {
    try {
      for await (const _ of link.bytes) continue
    } catch {
      return 'broken'
    }
    return 'closed'
  }
  return { name, start: (link) => ({ ended: drain(link) }) }
}

function links() {
  const world = virtualPlatform()
  const port = memoryPort(quiet)
  const shared = new SharedLinks((_, signal) => port.open(signal), world)
  return { world, port, shared, one: protocol('one') }
}

describe('shared links', () => {
  test('opens a link once for devices that join at the same time, with the same client', async () => {
    const { port, shared, one } = links()
    const [a, b] = await Promise.all([
      shared.join(LINK, one, forEver(), quiet),
      shared.join(LINK, one, forEver(), quiet),
    ])
    expect(port.opened).toBe(1)
    expect(a.client).toBe(b.client)
  })

  test('asserts that a link has only one protocol', async () => {
    const { shared, one } = links()
    await shared.join(LINK, one, forEver(), quiet)
    const other = shared.join(LINK, protocol('two'), forEver(), quiet)
    await expect(other).rejects.toThrow('tcp:board:502 is used for one and cannot carry two too')
  })

  test('closes a link when the last device leaves', async () => {
    const { shared, one } = links()
    const [a, b] = [await shared.join(LINK, one, forEver(), quiet), await shared.join(LINK, one, forEver(), quiet)]
    let lost = ''
    void a.lost.then((reason) => (lost = reason))
    a.leave()
    await Promise.resolve()
    expect(lost).toBe('')
    b.leave()
    expect(await a.lost).toBe('no device uses the link any more')
  })

  test('sends the last bytes when its devices leave, and closes at once when no device answers', async () => {
    const world = virtualPlatform()
    const port = memoryPort(quiet)
    const closed: string[] = []
    const open = async (_: unknown, signal: AbortSignal): Promise<ByteLink> => {
      const link = await port.open(signal)
      const flushed = (flush: AbortSignal) =>
        new Promise<void>((resolve) => flush.addEventListener('abort', () => resolve(), { once: true }))
      const close = async (flush?: AbortSignal) => {
        closed.push(flush ? 'in order' : 'at once')
        if (flush) await flushed(flush)
        await link.close()
      }
      return { ...link, close }
    }
    const shared = new SharedLinks(open, world)
    const one = protocol('one')
    ;(await shared.join(LINK, one, forEver(), quiet)).leave()
    await world.advance(500)
    const silent = await shared.join(LINK, one, forEver(), quiet)
    silent.markUnresponsive('no answer')
    silent.leave()
    await shared.join(LINK, one, forEver(), quiet)
    const all = shared.close()
    await world.advance(500)
    await all
    expect(closed).toEqual(['in order', 'at once', 'in order'])
  })

  test('gives a link up only when all its devices are unresponsive', async () => {
    const { shared, one } = links()
    const [a, b] = [await shared.join(LINK, one, forEver(), quiet), await shared.join(LINK, one, forEver(), quiet)]
    a.markUnresponsive('a is silent')
    a.markResponsive()
    b.markUnresponsive('b is silent')
    expect(await Promise.race([a.lost, Promise.resolve('still open')])).toBe('still open')
    a.markUnresponsive('both are silent')
    expect(await b.lost).toBe('both are silent')
  })

  test('reopens a port only after it was released', async () => {
    const world = virtualPlatform()
    const port = memoryPort(quiet)
    let held = 0
    let most = 0
    const shared = new SharedLinks(async (_, signal) => {
      const link = await port.open(signal)
      most = Math.max(most, ++held)
      const close = async () => {
        await pause(world.timers, 400)
        held--
        await link.close()
      }
      return { ...link, close }
    }, world)
    const one = protocol('one')
    const first = await shared.join(LINK, one, forEver(), quiet)
    first.markUnresponsive('gone')
    await world.settle(shared.join(LINK, one, forEver(), quiet))
    expect([port.opened, most]).toEqual([2, 1])
  })

  test('stops opening when the last waiting device gives up', async () => {
    const { world, port, shared, one } = links()
    port.unplug()
    const [stop, failures] = [new AbortController(), new Set<string>()]
    const a = shared.join(LINK, one, stop.signal, (detail) => failures.add(detail))
    const b = shared.join(LINK, one, forEver(), quiet)
    await world.advance(2_000)
    stop.abort(new Error('enough'))
    await expect(a).rejects.toThrow('enough')
    expect([...failures]).toEqual(['the memory port is unplugged'])
    port.plug()
    await world.settle(b)
    const late = new AbortController()
    await shared.close()
    port.unplug()
    const c = shared.join(LINK, one, late.signal, quiet)
    await world.advance(2_000)
    late.abort(new Error('enough'))
    await expect(c).rejects.toThrow('enough')
    await world.advance(60_000)
    expect(world.pending).toBe(0)
  })
})
