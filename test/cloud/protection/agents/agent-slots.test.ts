import { expect, it } from 'vitest'
import { agentSlots, RESERVED_MS } from '../../../../cloud/service/messaging/embedded-broker.ts'
import { virtualPlatform } from '../../../verification/simulation/virtual/virtual-platform.ts'

function open(limit: number) {
  const world = virtualPlatform()
  const connected = new Set<string>()
  const places = agentSlots(limit, world.clock, (agentId) => connected.has(agentId))
  const connect = (agentId: string, accountId = agentId) => {
    const isTaken = places.reserve(agentId, accountId)
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

it('an account gets half of the slots, so that it keeps no agent of others out', () => {
  const { places, connect, end } = open(4)
  expect(['a1', 'a2', 'a3'].map((agent) => connect(agent, 'a'))).toEqual([true, true, false])
  expect([connect('b1', 'b'), connect('c1', 'c')]).toEqual([true, true])
  end('a1')
  expect(connect('a1', 'a')).toBe(true)
  places.release('a2')
  end('a2')
  expect([connect('a3', 'a'), connect('a4', 'a')]).toEqual([true, false])
})
