import { expect, it } from 'vitest'
import { waitingConnections } from '../../../../cloud/platform/foundation/waiting-connections.ts'

function open(limit: { most: number; mostOfNetwork: number }) {
  const cut: string[] = []
  const waiting = waitingConnections(limit)
  return { cut, add: (address: string, name = address) => waiting.add(address, () => void cut.push(name)) }
}

it('the connection limit closes the oldest connection of the network with the most', () => {
  const { cut, add } = open({ most: 6, mostOfNetwork: 100 })
  add('10.0.0.1', 'agent')
  for (let n = 0; n < 4; n++) add('10.0.0.2', `b${n}`)
  for (let n = 0; n < 40; n++) add('10.0.0.3', `c${n}`)
  expect(cut).not.toContain('agent')
  expect(cut).toHaveLength(45 - 6)
  expect(cut.slice(0, 2)).toEqual(['b0', 'b1'])
})

it('the connection limit closes the oldest of a network that has too many', () => {
  const { cut, add } = open({ most: 100, mostOfNetwork: 3 })
  for (let n = 0; n < 5; n++) add('10.0.0.2', `b${n}`)
  for (let n = 0; n < 5; n++) add(`2001:db8:0:1::${n}`, `v${n}`)
  expect(cut).toEqual(['b0', 'b1', 'v0', 'v1'])
})

it('the connection limit does not count authenticated callers', () => {
  const { cut, add } = open({ most: 2, mostOfNetwork: 2 })
  for (let n = 0; n < 100; n++) {
    const leave = add('10.0.0.2', `b${n}`)
    leave()
    leave()
  }
  add('10.0.0.2', 'x')
  add('10.0.0.2', 'y')
  expect(cut).toEqual([])
})
