import { expect, it } from 'vitest'
import { agentSlots, RESERVED_MS } from '../../../cloud/messaging/agent-slots.ts'
import { virtualPlatform } from '../../../verification/simulation/virtual/virtual-platform.ts'

function open(limit: number) {
  const world = virtualPlatform()
  const connected = new Set<string>()
  const places = agentSlots(limit, world.clock, (agentId) => connected.has(agentId))
  const connect = (agentId: string) => {
    const isTaken = places.reserve(agentId)
    if (isTaken) connected.add(agentId)
    return isTaken
  }
  const end = (agentId: string) => {
    connected.delete(agentId)
    places.disconnected(agentId)
  }
  return { world, places, connect, end }
}

it('keeps the place of an agent whose connection ended, and refuses a new agent', () => {
  const { connect, end } = open(2)
  expect([connect('a'), connect('b'), connect('c')]).toEqual([true, true, false])
  end('a')
  expect(connect('c')).toBe(false)
  expect(connect('a')).toBe(true)
  expect(connect('a')).toBe(true)
})

it('gives the place of an agent that was away for a day to a new one, and never that of a connected agent', async () => {
  const { world, connect, end } = open(2)
  connect('a')
  connect('b')
  end('b')
  await world.advance(RESERVED_MS)
  expect(connect('c')).toBe(true)
  expect(connect('d')).toBe(false)
  expect(connect('a')).toBe(true)
})

it('gives the place of a revoked agent to a new one', () => {
  const { places, connect, end } = open(1)
  connect('a')
  places.release('a')
  end('a')
  expect(connect('b')).toBe(true)
})
