import { afterEach, beforeEach, expect, it } from 'vitest'
import { BrokerLease, GIVE_UP_MS, TAKE_OVER_MS } from '../../../../cloud/service/messaging/elected-broker.ts'
import { newDatabase, onEveryDatabase, type TestDatabase } from '../../../support/databases.ts'

onEveryDatabase('the lease of the embedded broker', (kind) => {
  let place: TestDatabase
  let nowMs: number
  let ended: Set<string>
  const platform = { clock: { wall: () => 0, elapsed: () => nowMs, bootId: 'test' } }
  const lease = (holder: string, database = place.database) =>
    new BrokerLease({ database, platform, holder, hasEnded: (id) => ended.has(id) })

  beforeEach(async () => {
    place = await newDatabase(kind)
    nowMs = 1_000
    ended = new Set()
  })
  afterEach(async () => {
    await place.database.close()
    await place.remove()
  })

  it('has one holder among processes that ask at once', async () => {
    const held = await Promise.all(Array.from({ length: 8 }, (_, n) => lease(`run.${n}`).hold()))
    expect(held.filter(Boolean)).toHaveLength(1)
  })

  it('stays with a holder that raises its beat', async () => {
    const [one, two] = [lease('one'), lease('two')]
    for (let n = 0; n < 5; n++) {
      nowMs += TAKE_OVER_MS - 1
      expect([await one.hold(), await two.hold()]).toEqual([true, false])
    }
    expect(two.isHeldElsewhere()).toBe(true)
  })

  it('has a living holder for others only after they saw it raise the beat', async () => {
    const [one, two] = [lease('one'), lease('two')]
    await one.hold()
    await two.hold()
    expect([one.livingHolder, two.livingHolder]).toEqual([undefined, undefined])
    await one.hold()
    await two.hold()
    expect([one.livingHolder, two.livingHolder]).toEqual([undefined, 'one'])
  })

  it('moves after the holder was silent for the whole time, and the former holder learns it', async () => {
    const [one, two] = [lease('one'), lease('two')]
    await one.hold()
    await two.hold()
    nowMs += GIVE_UP_MS
    expect([one.isLost(), await two.hold()]).toEqual([true, false])
    nowMs += TAKE_OVER_MS - GIVE_UP_MS
    expect(two.isHeldElsewhere()).toBe(false)
    expect([await two.hold(), await one.hold()]).toEqual([true, false])
  })

  it('moves at once if the holder has ended or released it', async () => {
    const [one, two, three] = [lease('one'), lease('two'), lease('three')]
    await one.hold()
    ended.add('one')
    expect(await two.hold()).toBe(true)
    await two.release()
    expect(await three.hold()).toBe(true)
  })
})
