import { expect, it } from 'vitest'
import { agentSlots, RESERVED_MS } from '../../../../cloud/service/messaging/embedded-broker.ts'
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

it('an agent whose connection ended keeps its slot, and a new agent is rejected', () => {
  const { connect, end } = open(2)
  expect([connect('a'), connect('b'), connect('c')]).toEqual([true, true, false])
  end('a')
  expect(connect('c')).toBe(false)
  expect(connect('a')).toBe(true)
  expect(connect('a')).toBe(true)
})

it('a new agent gets the slot of an agent that was disconnected for a day', async () => {
  const { world, connect, end } = open(2)
  connect('a')
  connect('b')
  end('b')
  await world.advance(RESERVED_MS)
  expect(connect('c')).toBe(true)
  expect(connect('d')).toBe(false)
  expect(connect('a')).toBe(true)
})

it('a new agent gets the slot of a revoked agent', () => {
  const { places, connect, end } = open(1)
  connect('a')
  places.release('a')
  end('a')
  expect(connect('b')).toBe(true)
})
