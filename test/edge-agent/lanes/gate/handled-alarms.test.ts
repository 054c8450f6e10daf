import { describe, expect, it } from 'vitest'
import { ALARMS_LIMIT, HandledAlarms, RESTORED_LIMIT } from '../../../../edge-agent/lanes/gate/handled-alarms.ts'
import type { Journal } from '../../../../edge-agent/ledger/journal/journal.ts'
import { ALARM_STATES_LIMIT } from '../../../../policy/documents/agent-messages.ts'
import type { JournalBody } from '../../../../policy/journal.ts'
import type { AlarmStep } from '../../../../policy/vocabulary.ts'

function bench(before = 0) {
  const rows: JournalBody[] = []
  const steps: string[] = []
  let acked = 0
  let holdCommit: Promise<void> = Promise.resolve()
  const alarms = new HandledAlarms({
    ledger: {
      journal: {
        append: (body: JournalBody) => rows.push(body),
        alarmsSince: () =>
          Array.from({ length: before }, (_, seq) => ({
            seq,
            body: { event: { deviceId: 'gate', eventId: `evt_before_${seq}` } },
          })),
        get acked() {
          return acked
        },
      } as unknown as Journal,
      commits: {
        async durably(work) {
          const done = work()
          await holdCommit
          return done
        },
      } as ConstructorParameters<typeof HandledAlarms>[0]['ledger']['commits'],
    },
    journal: { write: async () => void steps.push('events') },
    operatorName: () => undefined,
    nowMs: () => 1_000,
    onAwaited: () => undefined,
    onHandled: (_deviceId, eventId, { step, by }) => steps.push(`${eventId} ${step} ${by}`),
  })
  const by = (step: AlarmStep, name = 'Anna') => ({ step, name, operatorId: `op_${name}` })
  return {
    alarms,
    rows,
    steps,
    by,
    hold: (until: Promise<void>) => (holdCommit = until),
    /** The cloud has all rows. */
    acknowledge: () => (acked = rows.length),
  }
}

describe('an alarm at the display of its gate', () => {
  it('is stored in the journal after the row of the alarm, with the operator', async () => {
    const { alarms, rows, steps, by } = bench()
    alarms.raised('gate', 'evt_1')
    expect(alarms.stateOf('evt_1')).toBeUndefined()
    expect(await alarms.handle('gate', 'evt_1', by('acknowledged'))).toEqual({
      state: { step: 'acknowledged', by: 'Anna' },
      isChanged: false,
    })
    expect(rows).toEqual([
      {
        atMs: 1_000,
        evidence: { kind: 'alarm_handled', eventId: 'evt_1', step: 'acknowledged', operatorId: 'op_Anna' },
      },
    ])
    expect(steps).toEqual(['events', 'evt_1 acknowledged Anna'])
  })

  it('is rejected if another gate raised it, or no gate of this agent', async () => {
    const { alarms, rows, by } = bench()
    alarms.raised('gate', 'evt_1')
    expect(await alarms.handle('other', 'evt_1', by('phantom'))).toBeUndefined()
    expect(await alarms.handle('gate', 'evt_2', by('phantom'))).toBeUndefined()
    expect(rows).toEqual([])
  })

  it('keeps the last disposition of two operators, and no acknowledgement replaces a disposition', async () => {
    const { alarms, rows, by } = bench()
    alarms.raised('gate', 'evt_1')
    await alarms.handle('gate', 'evt_1', by('real'))
    expect(await alarms.handle('gate', 'evt_1', by('acknowledged', 'Ben'))).toMatchObject({
      state: { step: 'real', by: 'Anna' },
    })
    expect(await alarms.handle('gate', 'evt_1', by('phantom', 'Ben'))).toMatchObject({
      state: { step: 'phantom', by: 'Ben' },
    })
    expect(await alarms.handle('gate', 'evt_1', by('phantom', 'Anna'))).toMatchObject({
      state: { step: 'phantom', by: 'Ben' },
    })
    expect(rows).toHaveLength(2)
  })

  it('keeps the disposition if another operator acknowledges during its commit', async () => {
    const { alarms, by, hold } = bench()
    alarms.raised('gate', 'evt_1')
    let release = () => {}
    hold(new Promise((resolve) => (release = resolve)))
    const both = [by('real'), by('acknowledged', 'Ben')].map((what) => alarms.handle('gate', 'evt_1', what))
    release()
    expect(await Promise.all(both)).toMatchObject([1, 2].map(() => ({ state: { step: 'real', by: 'Anna' } })))
  })

  it('is forgotten after many newer alarms', async () => {
    const { alarms, by } = bench()
    for (let n = 0; n <= ALARMS_LIMIT; n++) alarms.raised('gate', `evt_${n}`)
    expect(await alarms.handle('gate', 'evt_0', by('real'))).toBeUndefined()
    expect(await alarms.handle('gate', 'evt_1', by('real'))).toBeDefined()
  })

  it('is not disposed of again by an operator who has not seen the disposition', async () => {
    const { alarms, rows, by } = bench()
    alarms.raised('gate', 'evt_1')
    await alarms.handle('gate', 'evt_1', by('acknowledged'))
    await alarms.handle('gate', 'evt_1', { ...by('real'), seen: 'none' })
    const unseen = await alarms.handle('gate', 'evt_1', { ...by('phantom', 'Ben'), seen: 'none' })
    expect(unseen).toEqual({ state: { step: 'real', by: 'Anna' }, isChanged: true })
    expect(rows).toHaveLength(2)
    const seen = await alarms.handle('gate', 'evt_1', { ...by('phantom', 'Ben'), seen: 'real' })
    expect(seen).toEqual({ state: { step: 'phantom', by: 'Ben' }, isChanged: false })
  })

  it('has the disposition that the cloud reports, once the cloud has every row about it', async () => {
    const { alarms, steps, by, acknowledge } = bench()
    alarms.raised('gate', 'evt_1')
    alarms.raised('gate', 'evt_2')
    const report = [
      { eventId: 'evt_1', step: 'unintentional', by: 'Gustav' },
      { eventId: 'evt_of_another_agent', step: 'real', by: 'Gustav' },
    ]
    alarms.receive(alarms.request(), report)
    alarms.receive(alarms.request(), report)
    expect(alarms.stateOf('evt_1')).toEqual({ step: 'unintentional', by: 'Gustav' })
    expect(steps).toEqual(['evt_1 unintentional Gustav'])
    // The report in an answer that is on its way does not know what Anna does now.
    const early = alarms.request()
    await alarms.handle('gate', 'evt_1', { ...by('real'), seen: 'unintentional' })
    alarms.receive(early, report)
    expect(alarms.stateOf('evt_1')).toEqual({ step: 'real', by: 'Anna' })
    expect([...alarms.request().keys()]).toEqual(['evt_2'])
    acknowledge()
    expect([...alarms.request().keys()]).toEqual(['evt_1', 'evt_2'])
    // The order of the cloud counts.
    alarms.receive(alarms.request(), report)
    expect(alarms.stateOf('evt_1')).toEqual({ step: 'unintentional', by: 'Gustav' })
  })

  it('ignores a report of another form', () => {
    const { alarms } = bench()
    alarms.raised('gate', 'evt_1')
    for (const answer of [undefined, 'x', [{ eventId: 'evt_1', step: 'eaten', by: 'Gustav' }]])
      alarms.receive(alarms.request(), answer)
    expect(alarms.stateOf('evt_1')).toBeUndefined()
  })

  it('says if alarms before the start are missing', () => {
    const [all, cut] = [RESTORED_LIMIT, RESTORED_LIMIT + 1].map((before) => bench(before).alarms)
    expect([all?.isBeforeCut, cut?.isBeforeCut, cut?.before.length]).toEqual([false, true, RESTORED_LIMIT])
  })

  it('asks the cloud about all open alarms of several gates, in turns if they are too many for a request', () => {
    const { alarms } = bench()
    const ids = ['gate', 'other'].flatMap((gate) => Array.from({ length: ALARMS_LIMIT }, (_, n) => `${gate}_${n}`))
    for (const id of ids) alarms.raised(id.split('_')[0] ?? '', id, `tag of ${id}`)
    const asked = new Set<string>()
    for (let n = 0; n < 2; n++) {
      const awaited = alarms.request()
      expect(awaited.size).toBe(ALARM_STATES_LIMIT)
      for (const id of awaited.keys()) asked.add(id)
    }
    expect([...asked].toSorted()).toEqual(ids.toSorted())
  })

  it('learns that one cause ended all, also where the tag caused a newer alarm at another gate', () => {
    const { alarms, steps } = bench()
    alarms.raised('gate', 'evt_earlier', 'tag 7')
    for (let n = 0; n < 120; n++) alarms.raised('other', `evt_${n}`, `tag ${n}`)
    const awaited = alarms.request()
    alarms.receive(
      awaited,
      [...awaited.keys()].flatMap((eventId) =>
        eventId === 'evt_earlier' ? [] : [{ eventId, step: 'phantom', by: 'Gustav' }],
      ),
    )
    expect(steps).toHaveLength(121)
    expect(alarms.stateOf('evt_earlier')).toEqual({ step: 'phantom', by: 'Gustav' })
    expect(alarms.isAwaited()).toBe(false)
  })

  it('is kept as long as it is open, while newer alarms have causes', async () => {
    const { alarms, by } = bench()
    alarms.raised('gate', 'evt_open', 'tag')
    for (let n = 0; n < ALARMS_LIMIT; n++) {
      alarms.raised('gate', `evt_${n}`, `tag ${n}`)
      await alarms.handle('gate', `evt_${n}`, by('phantom'))
    }
    expect(alarms.request().has('evt_open')).toBe(true)
  })
})
