import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkDevices } from '../../../../device-drivers/kit/check-devices.ts'
import { bulkDetector } from '../../../../edge-agent/lanes/gate/gate-alarms.ts'
import { deduplicator, type Zone } from '../../../../edge-agent/lanes/gate/tags/deduplicate.ts'
import { Presence } from '../../../../edge-agent/lanes/gate/tags/presence.ts'
import { wiringOf } from '../../../../edge-agent/devices/wiring.ts'
import { DEFAULT_GATE_POLICY, GatePolicy, tagOwnerOf, severityOf } from '../../../../policy/store-policy.ts'

describe('the parts of a gate', () => {
  const zone = fc.constantFrom<Zone>('inside', 'outside', 'none')
  const reads = fc.array(fc.record({ tag: fc.nat(5).map(String), zone, afterMs: fc.nat(400) }), { maxLength: 200 })

  it('pass each tag and zone once in 250 ms, and always the first time', () => {
    fc.assert(
      fc.property(reads, (list) => {
        const seen = deduplicator()
        const last = new Map<string, { atMs: number; zone: Zone }>()
        let atMs = 0
        for (const read of list) {
          atMs += read.afterMs
          const before = last.get(read.tag)
          const expected = before?.zone !== read.zone || atMs - before.atMs >= 250
          expect(seen.isNew(read.tag, read.zone, atMs)).toBe(expected)
          if (expected) last.set(read.tag, { atMs, zone: read.zone })
        }
      }),
    )
  })

  it('detect every tag that was inside a moment ago and is outside for two seconds, after any history', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.record({ zone: fc.constantFrom<Zone>('inside', 'outside'), afterMs: fc.integer({ min: 20, max: 3_000 }) }),
          { maxLength: 60 },
        ),
        (before) => {
          const around = new Presence({ stationaryTags: [], calibratingUntilMs: 30_000, nowMs: 0 })
          let atMs = 0
          for (const read of before) {
            atMs += read.afterMs
            around.see('x', read.zone, atMs)
          }
          // The tag comes from inside: it is read there for more than a second.
          for (let i = 0; i < 6; i++) around.see('x', 'inside', (atMs += 250))
          const leaving = Array.from({ length: 60 }, () => around.see('x', 'outside', (atMs += 250)))
          expect(leaving.filter((movement) => movement === 'leaving')).toHaveLength(1)
          expect(leaving.slice(0, around.isStray('x') ? 26 : 5)).toContain('leaving')
        },
      ),
    )
  })

  it('stay within their limits for any input', () => {
    const around = new Presence({ stationaryTags: [], calibratingUntilMs: 0, nowMs: 0 })
    const seen = deduplicator()
    const many = bulkDetector(() => DEFAULT_GATE_POLICY)
    for (let n = 0; n < 50_000; n++) {
      around.see(`t${n}`, 'inside', n / 100)
      seen.isNew(`t${n}`, 'inside', n / 100)
    }
    for (let n = 0; n < 2_000; n++) many.add(`t${n}`, n, true)
    expect(around.size).toBeLessThanOrEqual(20_000)
    expect(seen.size).toBeLessThanOrEqual(40_001)
    around.tidy(100_000)
    expect(around.size).toBe(0)
  })

  it('apply the first rule that matches', () => {
    const policy = GatePolicy.parse({
      severity: [
        { category: 'Socken', fromValue: 20, severity: 'siren' },
        { category: 'Socken', severity: 'notify' },
        { fromValue: 500, severity: 'siren' },
        { severity: 'silent' },
      ],
    })
    const cases = [
      [{ category: 'Socken', priceCent: 499 }, 'notify', 2],
      [{ category: 'Socken', priceCent: 2_000 }, 'siren', 1],
      [{ category: 'Socken' }, 'notify', 2],
      [{ category: 'Uhren', priceCent: 50_000 }, 'siren', 3],
      [{}, 'silent', 4],
    ] as const
    for (const [item, severity, rule] of cases) expect(severityOf(policy, item)).toEqual({ severity, rule })
    expect(severityOf(DEFAULT_GATE_POLICY, {})).toEqual({ severity: 'siren', rule: 0 })
  })

  it('recognize own, foreign and alarm tags', () => {
    const policy = GatePolicy.parse({ ownPrefixes: ['0614141'], ownMasks: ['e28a?1'], alarmMasks: ['FFFF'] })
    expect(
      ['3074257BF7194E4000001A85', 'E28AF1000000', 'E28AF2000000', 'FFFF0000', 'FF', '3018E20A00AFFD1CBE991A14'].map(
        (epc) => tagOwnerOf(policy, epc),
      ),
    ).toEqual(['own', 'own', 'foreign', 'alarm', 'foreign', 'foreign'])
    expect(tagOwnerOf(DEFAULT_GATE_POLICY, 'ABCD')).toBe('unclear')
    expect(GatePolicy.safeParse({ ownMasks: ['*'] }).success).toBe(false)
  })

  it('detect whether the gate or a device that feeds it can open; a gate without an entry is a fault', () => {
    const reader = { driver: 'llrp', link: { tcp: '10.0.0.7:5084' } }
    const [release, kill] = [{ release: { gpo: 4 } }, { kill: { password: '12AB34CD' } }]
    const scanner = { deviceId: 'scan', driver: 'scanner', link: { tcp: '10.0.0.8:4000' }, feeds: 'gate' }
    const push = {
      deviceId: 'gate',
      driver: 'http-ingest',
      link: { push: 'gate-1' },
      secret: 'k3ep-th1s-to-y0urself',
      mapping: 'keonn',
    }
    const cases: [boolean, boolean, object[]][] = [
      [false, false, [{ deviceId: 'gate', ...reader }, scanner]],
      [true, true, [{ deviceId: 'gate', ...reader, ...release }]],
      [true, true, [push, { deviceId: 'arm', ...reader, ...release, feeds: 'gate' }]],
      [false, true, [{ deviceId: 'gate', ...reader, ...kill }]],
      // A device that feeds the gate does not write to tags.
      [false, false, [push, { deviceId: 'pad', ...reader, ...kill, feeds: 'gate' }]],
      [true, true, [scanner]],
    ]
    for (const [alone, withTag, entries] of cases) {
      const checked = checkDevices(entries)
      if (!('devices' in checked)) throw new Error(checked.errors.join())
      const wiring = wiringOf(checked.devices)
      expect([wiring.canRelease('gate', false), wiring.canRelease('gate', true)], JSON.stringify(entries)).toEqual([
        alone,
        withTag,
      ])
    }
  })
})
