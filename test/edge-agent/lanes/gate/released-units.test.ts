import { describe, expect, it } from 'vitest'
import type { StoredRelease } from '../../../../edge-agent/items/item-file.ts'
import { ReleasedUnits, type ReleasedUnit } from '../../../../edge-agent/lanes/gate/released-units.ts'
import { parseEpc } from '../../../../policy/gs1/epc.ts'
import { receiptEntry } from '../../../../policy/receipts/receipt-claims.ts'
import { virtualPlatform } from '../../../verification/simulation/virtual/virtual-platform.ts'

const CTI = Buffer.alloc(16, 7)
const GTIN = '04012345000016'
const HOUR_MS = 3_600_000
const epcOf = (serial: number) => parseEpc(`urn:epc:id:sgtin:4012345.000001.${serial}`)?.hex ?? ''

function openUnits() {
  const world = virtualPlatform({ seed: 1 })
  const disk = new Map<string, StoredRelease>()
  const over = { is: false }
  const open = () =>
    new ReleasedUnits({
      nowMs: world.clock.wall,
      timers: world.timers,
      memory: {
        releases: (nowMs) => [...disk.values()].filter(({ untilMs }) => untilMs > nowMs),
        saveReleases: (rows) => rows.forEach((row) => disk.set(row.id, row)),
      },
      hasPassed: () => false,
      isOver: () => over.is,
      safely: (work) => work(),
    })
  const unit = (ordinal: number, tag?: string): ReleasedUnit => ({
    proof: {
      kind: 'receipt',
      cti: CTI,
      ordinal,
      exp: world.clock.wall() / 1_000 + 86_400,
      entry: Buffer.from(receiptEntry(CTI, 'gtin', GTIN)).toString('hex'),
    },
    untilMs: world.clock.wall() + HOUR_MS,
    ...(tag !== undefined && { tag }),
  })
  return { world, disk, over, open, unit, units: open() }
}

describe('released units', () => {
  it('silence a gate for an hour', async () => {
    const { world, units, unit } = openUnits()
    units.add(unit(0, epcOf(1)))
    await world.advance(HOUR_MS - 1)
    expect(units.covers(epcOf(1))).toBe(true)
    await world.advance(1)
    expect(units.covers(epcOf(1))).toBe(false)
  })

  it('cover only the first tag that matches', () => {
    const { units, unit } = openUnits()
    for (const ordinal of [0, 1]) units.add(unit(ordinal))
    expect([1, 2, 3, 1, 2].map((n) => units.covers(epcOf(n)))).toEqual([true, true, false, true, true])
    expect(units.covers(parseEpc('urn:epc:id:sgtin:4012345.000002.1')?.hex ?? '')).toBe(false)
    expect(units.tagsOfReceipt(CTI)).toEqual([
      { tag: epcOf(1), entry: 0 },
      { tag: epcOf(2), entry: 1 },
    ])
  })

  it('keep their first tag if they are announced again', () => {
    const { units, unit } = openUnits()
    expect([units.add(unit(0, epcOf(1))), units.add(unit(0, epcOf(2))), units.add(unit(0))]).toEqual([
      true,
      false,
      false,
    ])
    expect([units.covers(epcOf(1)), units.covers(epcOf(2))]).toEqual([true, false])
  })

  it('end with the sale', () => {
    const { over, units, unit } = openUnits()
    for (const ordinal of [0, 1]) units.add(unit(ordinal))
    expect(units.covers(epcOf(1))).toBe(true)
    over.is = true
    expect([units.covers(epcOf(1)), units.covers(epcOf(2))]).toEqual([false, false])
  })

  it('silence nothing by what another agent says of tags that left', () => {
    const { world, units, unit } = openUnits()
    units.add(unit(0))
    const left = (ordinal: number) => ({ cti: CTI, ordinal, exp: world.clock.wall() / 1_000 + 86_400 })
    const other = parseEpc('urn:epc:id:sgtin:4012345.000002.1')?.hex ?? ''
    units.left(left(0), other, true)
    units.left(left(1), epcOf(3), true)
    units.add(unit(1))
    expect([other, epcOf(1), epcOf(3)].map((tag) => units.covers(tag))).toEqual([false, false, false])
  })

  it('end when the cloud sends a newer item, also after a restart', async () => {
    const { world, open, units, unit } = openUnits()
    for (const n of [1, 2]) units.add(unit(n, epcOf(n)))
    units.itemsChanged([{ epc: epcOf(1) }, { tagUid: 'AABBCCDD' }, {}])
    expect([units.covers(epcOf(1)), units.covers(epcOf(2))]).toEqual([false, true])
    expect(units.add(unit(1, epcOf(1)))).toBe(false)
    await world.advance(1_000)
    const again = open()
    expect([again.covers(epcOf(1)), again.covers(epcOf(2))]).toEqual([false, true])
    expect(again.add(unit(1))).toBe(false)
  })

  it('are limited: the oldest is dropped', () => {
    const { units, unit } = openUnits()
    for (let n = 0; n < 2_500; n++) units.add(unit(n, epcOf(n)))
    expect(units.size).toBe(2_000)
    expect([units.covers(epcOf(0)), units.covers(epcOf(499)), units.covers(epcOf(500))]).toEqual([false, false, true])
  })

  it('without a tag are limited to 500', () => {
    const { units, unit } = openUnits()
    units.add(unit(9_000, epcOf(9_000)))
    for (let n = 0; n < 700; n++) units.add(unit(n))
    expect(units.size).toBe(501)
    const passed = Array.from({ length: 600 }, (_, n) => units.covers(epcOf(n))).filter(Boolean)
    expect(passed).toHaveLength(500)
    expect(units.covers(epcOf(9_000))).toBe(true)
  })

  it('work without a disk', () => {
    const world = virtualPlatform({ seed: 1 })
    const fail = () => {
      throw new Error('no disk')
    }
    const safely = <T>(work: () => T): T | undefined => {
      try {
        return work()
      } catch {
        return undefined
      }
    }
    const memory = { releases: fail, saveReleases: fail }
    const units = new ReleasedUnits({
      nowMs: world.clock.wall,
      timers: world.timers,
      memory,
      hasPassed: () => false,
      isOver: () => false,
      safely,
    })
    units.add(openUnits().unit(0, epcOf(1)))
    units.stop()
    expect(units.covers(epcOf(1))).toBe(true)
  })
})
