import { describe, expect, it } from 'vitest'
import { agentTopic, mayPublish, maySubscribe, parseTopic, storeTopic, STORE_TOPICS } from '../../policy/mqtt-topics.ts'

const me = { storeId: 'st_1', agentId: 'agt_1' }

describe('topics', () => {
  it('lets an agent publish its events and state, and nothing else', () => {
    expect(mayPublish(me, agentTopic('st_1', 'agt_1', 'events'))).toBe(true)
    expect(mayPublish(me, agentTopic('st_1', 'agt_1', 'state'))).toBe(true)
    const others = [
      agentTopic('st_1', 'agt_1', 'ack'),
      agentTopic('st_1', 'agt_1', 'command'),
      agentTopic('st_1', 'agt_2', 'events'),
      agentTopic('st_2', 'agt_1', 'events'),
      ...STORE_TOPICS.map((name) => storeTopic('st_1', name)),
      '$SYS/broker',
      'untag/v1/st_1/agt_1/events/x',
      'untag/v2/st_1/agt_1/events',
      '',
    ]
    expect(others.filter((topic) => mayPublish(me, topic))).toEqual([])
  })

  it('lets an agent subscribe to its own topics and its store’s, without wildcards', () => {
    for (const name of STORE_TOPICS) expect(maySubscribe(me, storeTopic('st_1', name))).toBe(true)
    expect(maySubscribe(me, agentTopic('st_1', 'agt_1', 'ack'))).toBe(true)
    expect(maySubscribe(me, agentTopic('st_1', 'agt_1', 'command'))).toBe(true)
    const others = [
      '#',
      '+',
      'untag/v1/+/policy',
      'untag/v1/st_1/#',
      'untag/v1/st_1/+/ack',
      'untag/v1/st_2/policy',
      agentTopic('st_1', 'agt_2', 'command'),
      agentTopic('st_1', 'agt_1', 'events'),
      '$SYS/#',
    ]
    expect(others.filter((topic) => maySubscribe(me, topic))).toEqual([])
  })

  it('parses the topics that it formats', () => {
    expect(parseTopic(agentTopic('s', 'a', 'ack'))).toEqual({ storeId: 's', agentId: 'a', name: 'ack' })
    expect(parseTopic(storeTopic('s', 'deny'))).toEqual({ storeId: 's', agentId: null, name: 'deny' })
    for (const topic of ['', '/', 'untag/v1', 'untag/v1/s', 'untag/v1/s/x', 'untag/v1//policy', 'untag/v1/s/a/ack/x'])
      expect(parseTopic(topic)).toBeUndefined()
  })
})
