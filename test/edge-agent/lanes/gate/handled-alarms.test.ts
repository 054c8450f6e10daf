import { describe, expect, it } from 'vitest'
import { ALARMS_LIMIT, HandledAlarms } from '../../../../edge-agent/lanes/gate/handled-alarms.ts'
import type { Journal } from '../../../../edge-agent/ledger/journal/journal.ts'
import type { JournalBody } from '../../../../policy/journal.ts'
import type { AlarmStep } from '../../../../policy/vocabulary.ts'

function bench() {
  const rows: JournalBody[] = []
  const steps: string[] = []
  let holdCommit: Promise<void> = Promise.resolve()
  const alarms = new HandledAlarms({
    ledger: {
      journal: { append: (body: JournalBody) => rows.push(body) } as unknown as Journal,
      commits: {
        async durably(work) {
          const done = work()
          await holdCommit
          return done
        },
      } as ConstructorParameters<typeof HandledAlarms>[0]['ledger']['commits'],
    },
    journal: { write: async () => void steps.push('events') },
    nowMs: () => 1_000,
    onHandled: (_deviceId, eventId, { step, by }) => steps.push(`${eventId} ${step} ${by}`),
  })
  const by = (step: AlarmStep, name = 'Anna') => ({ step, name, operatorId: `op_${name}` })
  return { alarms, rows, steps, by, hold: (until: Promise<void>) => (holdCommit = until) }
}

describe('an alarm at the display of its gate', () => {
  it('is stored in the journal after the row of the alarm, with the operator', async () => {
    const { alarms, rows, steps, by } = bench()
    alarms.raised('gate', 'evt_1')
    expect(alarms.stateOf('evt_1')).toBeUndefined()
    expect(await alarms.handle('gate', 'evt_1', by('acknowledged'))).toEqual({ step: 'acknowledged', by: 'Anna' })
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
    expect(await alarms.handle('gate', 'evt_1', by('acknowledged', 'Ben'))).toEqual({ step: 'real', by: 'Anna' })
    expect(await alarms.handle('gate', 'evt_1', by('phantom', 'Ben'))).toEqual({ step: 'phantom', by: 'Ben' })
    expect(await alarms.handle('gate', 'evt_1', by('phantom', 'Anna'))).toEqual({ step: 'phantom', by: 'Ben' })
    expect(rows).toHaveLength(2)
  })

  it('keeps the disposition if another operator acknowledges during its commit', async () => {
    const { alarms, by, hold } = bench()
    alarms.raised('gate', 'evt_1')
    let release = () => {}
    hold(new Promise((resolve) => (release = resolve)))
    const both = [by('real'), by('acknowledged', 'Ben')].map((what) => alarms.handle('gate', 'evt_1', what))
    release()
    expect(await Promise.all(both)).toEqual([1, 2].map(() => ({ step: 'real', by: 'Anna' })))
  })

  it('is forgotten after many newer alarms', async () => {
    const { alarms, by } = bench()
    for (let n = 0; n <= ALARMS_LIMIT; n++) alarms.raised('gate', `evt_${n}`)
    expect(await alarms.handle('gate', 'evt_0', by('real'))).toBeUndefined()
    expect(await alarms.handle('gate', 'evt_1', by('real'))).toBeDefined()
  })
})
