import { describe, expect, test } from 'vitest'
import { deviceLink } from '../../device-drivers/kit/device-link.ts'
import { memoryPort } from '../../device-drivers/transports/memory.ts'
import { SharedLinks, type LinkProtocol, type ProtocolClient } from '../../device-drivers/transports/shared-links.ts'
import { virtualPlatform } from '../verification/simulation/virtual/virtual-platform.ts'
import { forEver } from './workbench.ts'

function bench() {
  const world = virtualPlatform()
  const port = memoryPort(() => {})
  const lost: string[] = []
  const protocol: LinkProtocol<ProtocolClient> = {
    name: 'test',
    start: (link) => ({
      ended: (async () => {
        try {
          for await (const _ of link.bytes);
          return 'closed'
        } catch (error) {
          return (error as Error).message
        }
      })(),
    }),
  }
  const links = new SharedLinks((_, signal) => port.open(signal), world)
  const line = deviceLink(links, { tcp: '10.0.0.7:502' }, protocol, (reason) => void lost.push(reason))
  return { world, port, lost, line, connect: () => world.settle(line.connect(forEver(), () => {})) }
}

describe('DeviceLink', () => {
  test('has a member after connect, and reports the reason of a loss', async () => {
    const { world, port, lost, line, connect } = bench()
    expect(() => line.joined()).toThrow('the link was lost')
    const member = await connect()
    expect(line.joined()).toBe(member)
    const gone = line.lost()
    port.cut()
    expect(await world.settle(gone)).toBe('the memory link was cut')
    expect([lost, line.member]).toEqual([['the memory link was cut'], null])
    expect(() => line.joined()).toThrow('the memory link was cut')
  })

  test('leaves the old link at connect, without reporting a loss', async () => {
    const { world, port, lost, line, connect } = bench()
    const first = await connect()
    const second = await connect()
    await world.advance(1_000)
    expect([first === second, line.member === second, port.opened, lost]).toEqual([false, true, 2, []])
  })

  test('reports no loss after leave, and ends the wait for one', async () => {
    const { world, lost, line, connect } = bench()
    await connect()
    line.leave()
    expect(await line.lost()).toBe('the link was lost')
    await world.advance(1_000)
    expect([lost, line.member]).toEqual([[], null])
  })
})
