import { describe, expect, it } from 'vitest'
import { openWalkRecorder, WALK_TAG_LIMIT } from '../../../edge-agent/lanes/gate/walk-recorder.ts'
import { isPrintable } from '../../../policy/printable.ts'
import { gateFault, reportHtml, reportLines, walkTestResult, type Walk } from '../../../edge-agent/setup/walk-test.ts'

const UNPAID: Walk = {
  position: 'hip, flat',
  kind: 'unpaid',
  tag: '3034',
  reads: 12,
  hasLeft: true,
  hasAlarmed: true,
  reason: 'not_paid',
}
const PAID: Walk = { ...UNPAID, kind: 'paid', tag: '3035', hasAlarmed: false, reason: 'paid' }
const missed = (walk: Walk): Walk => ({ ...walk, reads: 0, hasLeft: false, hasAlarmed: false, reason: null })

describe('the result of a walk test', () => {
  it('passes a gate that alarms for unpaid tags only', () => {
    const result = walkTestResult([UNPAID, UNPAID, PAID], 95)
    expect(result).toMatchObject({ detectionPercent: 100, faults: [], unpaid: { walks: 2, alarmed: 2 } })
    expect(result.positions).toEqual([{ position: 'hip, flat', walks: 3, detected: 3 }])
  })

  it.each([
    ['detects too few walks', [UNPAID, missed(UNPAID), PAID], /detected 2 of 3 walks \(66 %\)/],
    ['stays silent for an unpaid tag', [{ ...UNPAID, hasAlarmed: false }, PAID], /stayed silent for 1 unpaid/],
    ['alarms for a paid tag', [UNPAID, { ...PAID, hasAlarmed: true }], /alarmed for 1 paid/],
    ['never detects the paid tag', [...Array.from({ length: 30 }, () => UNPAID), missed(PAID)], /proves nothing/],
    ['was tested without a paid tag', [UNPAID], /name one with --paid/],
    ['was not tested', [], /no unpaid tag was carried/],
  ])('fails a gate that %s', (_, walks, fault) => {
    expect(walkTestResult(walks, 95).faults.join('; ')).toMatch(fault)
  })

  it('is printed as text and as a page, without the markup of names', () => {
    const report = {
      testedAt: '2026-11-23T09:00:00.000Z',
      operator: 'A. <b>Klein</b>',
      gate: {
        deviceId: 'dev_g',
        name: 'Exit',
        driver: 'llrp',
        reader: 'FX9600',
        firmware: '3.10',
        serialNumber: '84:24',
      },
      store: 'Hafenkante',
      agentId: 'agt_1',
      release: '0.1.0',
      policyVersion: 3,
      settings: { dev_g: { session: 1 } },
      minPercent: 95,
      result: walkTestResult([UNPAID, PAID], 95),
      walks: [UNPAID, PAID],
    }
    expect(reportLines(report).join('\n')).toMatch(
      /Result +PASSED[\s\S]*firmware 3\.10[\s\S]*Carried: hip, flat +2 of 2/,
    )
    expect(reportHtml(report)).toContain('A. &lt;b&gt;Klein&lt;/b&gt;')
    const gate = { ...report.gate, firmware: '3\nResult  PASSED\u001b[2J\u202e' }
    const lines = reportLines({ ...report, gate })
    expect(lines.filter((line) => line.startsWith('Result'))).toHaveLength(1)
    expect(lines.filter((line) => !isPrintable(line))).toEqual([])
  })
})

describe('the recording of a walk', () => {
  it('counts reads and antennas of each tag until its time is over, and states how the tag left', () => {
    let nowMs = 0
    const walks = openWalkRecorder({ elapsed: () => nowMs })
    expect(walks.recording('dev_g')).toBeUndefined()
    walks.start('dev_g', 5)
    walks.onRead('dev_g', '3034', 2)
    walks.onRead('dev_g', '3034', 1)
    walks.onAssessed('dev_g', '3034', { reason: 'not_paid', severity: 'siren' })
    nowMs = 5_000
    walks.onRead('dev_g', '3035', 1)
    expect(walks.recording('dev_g')).toMatchObject({
      isOver: true,
      tags: [{ reads: 2, antennas: [1, 2], left: { reason: 'not_paid', severity: 'siren' } }],
    })
    expect(walks.recording('dev_g')?.tags).toHaveLength(1)
  })

  it('has a limit of tags', () => {
    const walks = openWalkRecorder({ elapsed: () => 0 })
    walks.start('dev_g', 5)
    for (let n = 0; n <= WALK_TAG_LIMIT; n++) walks.onRead('dev_g', `E2${n}`, 1)
    expect(walks.recording('dev_g')?.tags).toHaveLength(WALK_TAG_LIMIT)
  })
})

it('is not begun at a gate that is not ready, or has no reader of tags', () => {
  const gate = { state: 'ready' as const, detail: 'Modbus', findings: [] }
  expect(gateFault(gate)).toBeUndefined()
  expect(gateFault({ ...gate, state: 'absent', detail: 'no answer' })).toBe('the gate is absent, not ready: no answer')
  const blind = { code: 'no_tag_reader' as const, detail: 'no device reads tags at this gate', isWarning: true }
  expect(gateFault({ ...gate, findings: [blind] })).toBe(blind.detail)
})
