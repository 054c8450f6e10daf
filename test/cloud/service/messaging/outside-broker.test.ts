import { expect, it } from 'vitest'
import type { BrokerConnection } from '../../../../cloud/service/messaging/broker-connection.ts'
import { ANNOUNCE_MS, CloudMembers } from '../../../../cloud/service/messaging/outside-broker.ts'
import { BrokerProbe } from '../../../../cloud/service/messaging/outside-broker.ts'
import { parseCloudTopic } from '../../../../policy/mqtt-topics.ts'

const STORES = Array.from({ length: 300 }, (_, i) => `st_${i}`)

it('gives each store one owner among the cloud processes, and another one when that process is silent', () => {
  let nowMs = 0
  const clock = { elapsed: () => nowMs }
  const [a, b] = [new CloudMembers('a', clock), new CloudMembers('b', clock)]
  expect([a.add('b'), b.add('a'), a.add('b'), a.add('a')]).toEqual([true, true, false, false])
  const owned = STORES.filter((store) => a.owns(store))
  expect(owned.length).toBeGreaterThan(100)
  expect(STORES.filter((store) => b.owns(store))).toEqual(STORES.filter((store) => !owned.includes(store)))
  nowMs = 3 * ANNOUNCE_MS + 1
  expect(STORES.every((store) => a.owns(store))).toBe(true)
  a.add('b')
  a.remove('b')
  expect(STORES.every((store) => a.owns(store))).toBe(true)
})

/** A probe at a broker with these faults. Waiting ends at once. */
function probeAt(faults: { qos?: number; retains?: boolean; maxLength?: number; shares?: boolean } = {}): BrokerProbe {
  const { qos = 1, retains = true, maxLength = 1_000_000, shares = true } = faults
  const filters = new Set<string>()
  const retained = new Set<string>()
  const deliver = (topic: string) => {
    const parsed = parseCloudTopic(topic)
    if (parsed) probe.onMessage(parsed.processId, parsed.name)
  }
  const connection: Pick<BrokerConnection, 'publish' | 'subscribe'> = {
    subscribe([filter = '']) {
      const topic = filter.replace(/^\$share\/[^/]+\//, '')
      if (topic === filter || shares) filters.add(topic)
      if (retained.has(topic)) deliver(topic)
      return Promise.resolve([qos])
    },
    publish(topic, payload, { retain }) {
      if (payload.length > maxLength) return
      if (retain && retains) retained.add(topic)
      if (filters.has(topic)) queueMicrotask(() => deliver(topic))
    },
  }
  const timers = {
    after(_ms: number, task: () => void) {
      const timer = setTimeout(task, 20)
      return () => clearTimeout(timer)
    },
  }
  const probe = new BrokerProbe({ connection, id: 'own', timers })
  return probe
}

it('finds what a broker would lose', async () => {
  expect(await probeAt().findLosses(false)).toEqual([])
  expect(await probeAt().findLosses(true)).toEqual(['persistence'])
  expect(await probeAt({ qos: 0 }).findLosses(false)).toEqual(['qos'])
  expect(await probeAt({ retains: false }).findLosses(false)).toEqual(['retained'])
  expect(await probeAt({ maxLength: 100_000 }).findLosses(false)).toEqual(['size'])
})

it('uses shared subscriptions only if the broker delivers to them', async () => {
  expect(await probeAt().hasSharedSubscriptions()).toBe(true)
  expect(await probeAt({ shares: false }).hasSharedSubscriptions()).toBe(false)
  expect(await probeAt({ qos: 128 }).hasSharedSubscriptions()).toBe(false)
})
