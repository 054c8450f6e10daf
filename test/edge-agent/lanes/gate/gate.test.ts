import { describe, expect, it } from 'vitest'
import { receiptEntry, type ReceiptClaims } from '../../../../policy/receipts/receipt-claims.ts'
import type { ItemStatus } from '../../../../policy/vocabulary.ts'
import {
  approaches,
  comesIn,
  gateWorld,
  goesOut,
  isCarriedOut,
  isNear,
  staysBetweenAntennas,
  lingers,
  newTag,
  nobody,
} from './gate-world.ts'

const at = (gate: ReturnType<typeof gateWorld>, reason: string) =>
  gate.events.filter((event) => event.reason === reason)

describe('the exit gate', () => {
  it.each([
    ['sellable', 'siren'],
    ['returned', 'siren'],
    ['cancelled', 'siren'],
    ['reserved_bopis', 'siren'],
    ['exception_hold', 'siren'],
    ['paid', 'pass'],
    ['picked_up', 'pass'],
    ['transfer_in_transit', 'pass'],
  ] as [ItemStatus, string][])('assesses a leaving item with status %s: %s', async (status, expected) => {
    const gate = gateWorld()
    const epc = gate.item(status)
    await gate.walk(goesOut(epc))
    expect(gate.sirens()).toBe(expected === 'siren' ? 1 : 0)
    expect(gate.events).toEqual([
      expect.objectContaining(
        expected === 'siren'
          ? {
              type: 'protection.exception.raised',
              reason: 'gate_alarm',
              epc,
              itemStatus: status,
              detail: `siren: not_paid; the item is ${status}`,
            }
          : { type: 'protection.action.completed', epc, itemStatus: status },
      ),
    ])
  })

  it('alarms in the same task as the first read outside', () => {
    const gate = gateWorld()
    const epc = gate.item('sellable')
    gate.lane.see(epc, 'inside', 0)
    expect(gate.commands).toEqual([])
    gate.lane.see(epc, 'outside', 0)
    expect(gate.commands).toEqual([{ atMs: 0, command: { kind: 'signal', signal: 'siren', seconds: 5 } }])
  })

  it('does not alarm for a tag that enters, stays or turns round, but alarms when it then leaves', async () => {
    const gate = gateWorld()
    const epc = gate.item('sellable')
    await gate.walk(comesIn(epc), lingers(40_000, gate.item('sellable')))
    await gate.walk(lingers(3_000, epc))
    expect(gate.events).toEqual([])
    await gate.walk(goesOut(epc))
    expect(gate.sirens()).toBe(1)
    expect(gate.lane.counts.entering).toBe(1)
  })

  it('alarms for a tag that stayed long near the gate as soon as it leaves', async () => {
    const gate = gateWorld()
    const epc = gate.item('sellable')
    await gate.walk(lingers(120_000, epc))
    expect(gate.sirens()).toBe(0)
    await gate.walk(goesOut(epc))
    expect(gate.sirens()).toBe(1)
  })

  it('counts every approach as leaving without antenna sides', async () => {
    const gate = gateWorld()
    const epc = gate.item('sellable')
    await gate.walk(approaches(epc))
    await gate.walk(nobody(20_000))
    await gate.walk(approaches(epc))
    expect([gate.sirens(), gate.alarms.length]).toEqual([2, 2])
  })

  it.each([1_000, 4_900, 6_000, 30_000, 55_000])(
    'alarms for a tag that was unread for %i ms between inside and outside',
    async (unreadMs) => {
      const gate = gateWorld()
      const epc = gate.item('sellable')
      await gate.walk(lingers(1_500, epc))
      await gate.walk(nobody(unreadMs))
      await gate.walk(isCarriedOut(epc))
      expect([gate.sirens(), gate.alarms.length]).toEqual([1, 1])
    },
  )

  it('does not alarm for an entering tag with any gap in its reads, but alarms when it leaves after that', async () => {
    const gate = gateWorld()
    const epc = gate.item('sellable')
    await gate.walk(isCarriedOut(epc))
    await gate.walk(nobody(8_000))
    await gate.walk(isCarriedOut(epc))
    await gate.walk(nobody(8_000))
    await gate.walk(lingers(800, epc))
    expect(gate.alarms).toEqual([])
    await gate.walk(nobody(8_000))
    await gate.walk(isCarriedOut(epc))
    expect(gate.alarms).toHaveLength(1)
  })

  it('alarms at most twice for a stationary tag between its antennas, and again when a person carries it out', async () => {
    const gate = gateWorld()
    const epc = gate.item('sellable')
    for (let n = 0; n < 60; n++) {
      gate.lane.see(epc, n % 3 === 1 ? 'outside' : 'inside', gate.world.clock.elapsed())
      await gate.walk(nobody(10_000))
    }
    expect(gate.alarms).toHaveLength(2)
    await gate.walk(isCarriedOut(epc))
    expect(gate.alarms).toHaveLength(3)
  })

  it('counts an approach of a stationary tag as leaving without antenna sides, also after a restart', async () => {
    for (const awayMs of [6_000, 30_000, 55_000, 70_000]) {
      const gate = gateWorld()
      const epc = gate.item('sellable')
      await gate.walk(isNear(25_000, epc))
      expect(gate.alarms).toHaveLength(1)
      await gate.walk(nobody(awayMs))
      await gate.walk(approaches(epc))
      expect([awayMs, gate.alarms.length]).toEqual([awayMs, 2])
    }
    const gate = gateWorld()
    const epc = gate.item('sellable')
    await gate.walk(isNear(25_000, epc))
    gate.restart()
    await gate.walk(nobody(40_000))
    await gate.walk(approaches(epc))
    expect(gate.alarms).toHaveLength(2)
  })

  it('alarms at most three times for a stationary tag with repeated gaps near a gate without antenna sides', async () => {
    const gate = gateWorld()
    const epc = gate.item('sellable')
    for (let n = 0; n < 20; n++) {
      await gate.walk(isNear(25_000, epc))
      await gate.walk(nobody(6_000))
    }
    expect(gate.alarms).toHaveLength(3)
    // Removed for over a minute, then near the gate again.
    await gate.walk(nobody(61_000))
    await gate.walk(approaches(epc))
    expect(gate.alarms).toHaveLength(4)
  })

  it('learns stationary tags with few alarms, stores them over a restart, and alarms when one is carried out', async () => {
    const gate = gateWorld({ isNew: true })
    const pile = Array.from({ length: 30 }, () => gate.item('sellable'))
    await gate.walk(staysBetweenAntennas(58_000, ...pile))
    // A gate that does not learn would alarm for each tag.
    expect(gate.alarms.length).toBeLessThanOrEqual(3)
    gate.alarms.length = 0
    await gate.walk(staysBetweenAntennas(300_000, ...pile))
    expect(gate.alarms).toEqual([])
    gate.restart()
    await gate.walk(staysBetweenAntennas(60_000, ...pile))
    expect(gate.alarms).toEqual([])
    const [taken, ...rest] = pile
    await gate.walk(isCarriedOut(taken ?? ''), staysBetweenAntennas(4_000, ...rest))
    expect(gate.alarms.map((alarm) => alarm.epc)).toEqual([taken])
    // Another tag is read beside the pile.
    const other = gate.item('sellable')
    await gate.walk(nobody(11_000), staysBetweenAntennas(11_000, ...rest))
    await gate.walk(goesOut(other), staysBetweenAntennas(2_000, ...rest))
    expect(gate.alarms.map((alarm) => alarm.epc)).toEqual([taken, other])
  })

  it('alarms from the first second of a new gate', async () => {
    for (let seed = 100; seed < 140; seed++) {
      const gate = gateWorld({ isNew: true, seed })
      await gate.walk(goesOut(gate.item('sellable')))
      expect([seed, gate.sirens()]).toEqual([seed, 1])
    }
  })

  it('alarms in the first minute of a new gate for a tag that the last reads show outside for only 240 ms', async () => {
    const gate = gateWorld({ isNew: true })
    const epc = gate.item('sellable')
    // Milliseconds of the reads of a recorded walk through a simulated gate.
    const inside = new Set([0, 60, 180, 240, 420, 480, 545, 605, 665, 790, 850, 970])
    const outside = new Set([360, 485, 545, 605, 665, 725, 790, 850, 910, 970, 1_030, 1_090, 1_150, 1_210])
    for (let ms = 0; ms <= 2_000; ms += 5) {
      if (inside.has(ms)) gate.lane.see(epc, 'inside', ms)
      if (outside.has(ms)) gate.lane.see(epc, 'outside', ms)
      await gate.world.advance(5)
    }
    expect(gate.alarms.map((alarm) => alarm.epc)).toEqual([epc])
  })

  it('counts one read outside, and then half a second of silence, as left in the first minute of a new gate', async () => {
    const gate = gateWorld({ isNew: true })
    const epcs = Array.from({ length: 5 }, () => gate.item('sellable'))
    for (const epc of epcs) {
      // A reader with a time to live of 500 ms for each tag reports three reads of a walk of 1.2 s.
      for (const zone of ['inside', 'inside', 'outside'] as const) {
        gate.lane.see(epc, zone, gate.world.clock.elapsed())
        await gate.walk(nobody(500))
      }
      await gate.walk(nobody(9_000))
    }
    expect(gate.alarms.map((alarm) => alarm.epc)).toEqual(epcs)
  })

  it('alarms at most twice in its first minute for a stationary tag that it reads rarely', async () => {
    const gate = gateWorld({ isNew: true })
    const epc = gate.item('sellable')
    for (let n = 0; n < 9; n++) {
      gate.lane.see(epc, n % 2 === 1 ? 'outside' : 'inside', gate.world.clock.elapsed())
      await gate.walk(nobody(6_000))
    }
    expect(gate.alarms).toHaveLength(2)
  })

  it('raises one bulk alarm for 40 items, names each, and sounds the siren for any policy', async () => {
    const gate = gateWorld({ gate: { severity: [{ severity: 'silent' }] } })
    await gate.walk(goesOut(gate.item('sellable')))
    expect(gate.commands).toEqual([])
    const trolley = Array.from({ length: 40 }, () => gate.item('sellable'))
    await gate.walk(goesOut(...trolley), nobody(15_000))
    expect(gate.sirens()).toBe(1)
    expect(at(gate, 'gate_alarm')).toHaveLength(41)
    expect(at(gate, 'gate_bulk_alarm').map((event) => event.detail)).toEqual([
      expect.stringMatching(/^siren: bulk; 4[01] unpaid items left within \d\.\d s$/),
    ])
  })

  it('mutes the siren once while staff move goods, reports it once, and alarms again afterwards', async () => {
    const gate = gateWorld({ gate: { replenishment: { tags: 60, seconds: 10, muteSeconds: 30 } } })
    for (let i = 0; i < 10; i++) await gate.walk(goesOut(...Array.from({ length: 20 }, () => gate.item('sellable'))))
    expect(at(gate, 'gate_replenishment')).toHaveLength(1)
    const before = gate.sirens()
    await gate.walk(goesOut(gate.item('sellable')))
    expect(gate.sirens()).toBe(before)
    await gate.walk(nobody(31_000))
    await gate.walk(goesOut(gate.item('sellable')))
    expect(gate.sirens()).toBe(before + 1)
  })

  it('is not silenced by tags without goods, and never silent for recalled, held or masked ones', async () => {
    const blank = (n: number) => `FADE${n.toString(16).padStart(20, '0')}`.toUpperCase()
    const silenced = gateWorld({ gate: { alarmMasks: ['FADE'] } })
    await silenced.walk(goesOut(...Array.from({ length: 120 }, (_, n) => blank(n))))
    await silenced.walk(nobody(20_000))
    expect(at(silenced, 'gate_replenishment')).toEqual([])
    const before = silenced.sirens()
    await silenced.walk(goesOut(silenced.item('sellable')))
    expect(silenced.sirens()).toBe(before + 1)

    const moving = gateWorld({
      gate: { alarmMasks: ['FADE'], replenishment: { tags: 60, seconds: 10, muteSeconds: 300 } },
    })
    for (let n = 0; n < 5; n++) await moving.walk(goesOut(...Array.from({ length: 20 }, () => moving.item('sellable'))))
    expect(at(moving, 'gate_replenishment')).toHaveLength(1)
    for (const epc of [moving.item('exception_hold'), moving.item('exception_hold', { recalled: true }), blank(999)]) {
      await moving.walk(nobody(20_000))
      const [sirens, alarms] = [moving.sirens(), at(moving, 'gate_alarm').length]
      await moving.walk(goesOut(epc))
      expect([moving.sirens() - sirens, at(moving, 'gate_alarm').length - alarms]).toEqual([1, 1])
    }
  })

  it('never alarms for buffered reads, and reports them in one line', async () => {
    const gate = gateWorld()
    const epcs = Array.from({ length: 50 }, () => gate.item('sellable'))
    await gate.world.advance(300_000)
    const now = gate.world.clock.elapsed()
    for (let n = 0; n < 1_000; n++) {
      const epc = epcs[n % 50] ?? ''
      gate.lane.see(epc, 'inside', now - 200_000 + n)
      gate.lane.see(epc, 'outside', now - 200_000 + n + 1)
    }
    await gate.world.advance(6_000)
    expect(gate.commands).toEqual([])
    expect(gate.events.map((event) => event.detail)).toEqual([
      '2000 reads came too late to alarm, the oldest 200 s; 50 unpaid items among them',
    ])
    expect(gate.lane.counts).toMatchObject({ late: 2_000, alarms: 0 })
  })

  describe('without certain facts', () => {
    it('lights amber for an item status older than 90 s; sounds the siren if unknown tags do', async () => {
      for (const [unknownTag, sirens] of [
        ['notify', 0],
        ['ignore', 0],
        ['siren', 1],
      ] as const) {
        const gate = gateWorld({ policy: { unknownTag } })
        gate.cloud.isOnline = false
        gate.cloud.ageMs = 95_000
        await gate.walk(goesOut(gate.item('sellable')))
        expect([unknownTag, gate.sirens(), gate.commands.length]).toEqual([unknownTag, sirens, 1])
        expect(gate.events[0]).toMatchObject({
          offline: true,
          detail: expect.stringMatching(/status_stale; the item is sellable; items are 9\d s old/),
        })
      }
    })

    it('signals an unknown tag as the policy demands', async () => {
      for (const [unknownTag, expected] of [
        ['notify', 'amber'],
        ['siren', 'siren'],
        ['ignore', undefined],
      ] as const) {
        const gate = gateWorld({ policy: { unknownTag } })
        await gate.walk(goesOut(newTag()))
        expect(gate.commands.map(({ command }) => command.kind === 'signal' && command.signal)).toEqual(
          expected ? [expected] : [],
        )
      }
    })

    it('alarms for an unpaid tag of the store in each scheme that shows its company prefix', async () => {
      const gate = gateWorld({ policy: { unknownTag: 'siren' }, gate: { ownPrefixes: ['9521141'] } })
      // The SGTIN+ of TDS 2.3 E.3 has the company prefix 9521141; that of another company passes silently.
      await gate.walk(goesOut('F73095212341234538566CB0AFC4'))
      expect([gate.commands, gate.events]).toEqual([[], []])
      await gate.walk(goesOut('F73795211411234538566CB0AFC4'))
      expect(gate.sirens()).toBe(1)
    })

    it('ignores a foreign tag, and alarms for a mask of hard tags', async () => {
      const gate = gateWorld({
        policy: { unknownTag: 'siren' },
        gate: { ownPrefixes: ['0614141'], alarmMasks: ['E280??FF'] },
      })
      await gate.walk(goesOut('3018E20A00AFFD1CBE991A14'), goesOut('E28011FE0000000000000001'))
      expect([gate.commands, gate.events]).toEqual([[], []])
      await gate.walk(goesOut('3074257BF7194E4000001A85'))
      expect(gate.sirens()).toBe(1)
      await gate.walk(nobody(10_000))
      await gate.walk(goesOut('E28011FF0000000000000001'))
      expect(gate.sirens()).toBe(2)
      expect(gate.events.at(-1)?.detail).toBe('siren: alarm_mask')
    })
  })

  describe('and payment', () => {
    const pay = (gate: ReturnType<typeof gateWorld>, epc: string) => {
      gate.items.set(epc, { status: 'paid', paying: false })
      gate.lane.itemsChanged()
    }

    it('syncs before it alarms for an item that is being paid, and passes it if it was paid', async () => {
      const gate = gateWorld()
      const epc = gate.item('sellable', { paying: true })
      gate.cloud.answer = async () => {
        await new Promise<void>((resolve) => gate.world.timers.after(100, resolve))
        pay(gate, epc)
      }
      await gate.walk(goesOut(epc))
      expect([gate.commands, gate.cloud.syncs, gate.lane.counts.passed]).toEqual([[], 1, 1])
    })

    it.each([
      ['is being paid', { paying: true }, false],
      ['may be paid, because the replica is behind', {}, true],
    ])('waits 250 ms at most for an item that %s', async (_name, fields, isBehind) => {
      const gate = gateWorld()
      gate.cloud.isBehind = isBehind
      gate.cloud.answer = () => new Promise(() => undefined)
      const epc = gate.item('sellable', fields)
      gate.lane.see(epc, 'inside', 0)
      gate.lane.see(epc, 'outside', 0)
      await gate.world.advance(249)
      expect(gate.commands).toEqual([])
      await gate.world.advance(2)
      expect(gate.commands.map((c) => c.atMs)).toEqual([250])
    })

    it('does not sync while offline or while the replica is complete', async () => {
      const gate = gateWorld()
      gate.cloud.isOnline = false
      await gate.walk(goesOut(gate.item('sellable', { paying: true })))
      gate.cloud.isOnline = true
      await gate.walk(goesOut(gate.item('sellable')))
      expect([gate.cloud.syncs, gate.alarms.length]).toEqual([0, 2])
    })

    it('ends the alarm only if the payment arrives within 10 s', async () => {
      for (const [afterMs, isEnded] of [
        [3_000, true],
        [11_000, false],
      ] as const) {
        const gate = gateWorld()
        const [first, second] = [gate.item('sellable'), gate.item('sellable')]
        await gate.walk(goesOut(first, second))
        await gate.walk(nobody(afterMs - 2_000))
        gate.commands.length = 0
        pay(gate, first)
        expect(gate.commands).toEqual([])
        pay(gate, second)
        expect(gate.commands.map(({ command }) => command)).toEqual(
          isEnded
            ? [
                { kind: 'signal', signal: 'siren', seconds: 0 },
                { kind: 'signal', signal: 'green', seconds: 4 },
              ]
            : [],
        )
        expect(at(gate, 'late_status').map((event) => event.epc)).toEqual(isEnded ? [first, second] : [])
      }
    })
  })

  describe('and receipts', () => {
    const cti = new Uint8Array(16).fill(7)
    const receipt = (entries: Uint8Array[]): ReceiptClaims => ({
      storeId: 's',
      exp: 1,
      cti,
      units: entries.length,
      riskClass: 0,
      policyVersion: 1,
      entries,
    })
    const gtin = '80614141123458'
    const serials = (n: number) => `3074257BF7194E40000000${n.toString(16).padStart(2, '0')}`.toUpperCase()

    it('sounds the siren for a recalled item whatever its value, its receipt and the age of its status are', async () => {
      for (const ageMs of [0, 600_000]) {
        const gate = gateWorld({ gate: { severity: [{ severity: 'silent' }] } })
        gate.cloud.ageMs = ageMs
        const epc = gate.item('exception_hold', { recalled: true, priceCent: 100 })
        gate.lane.acceptReceipt(receipt([receiptEntry(cti, 'epc', epc)]), [0])
        await gate.walk(goesOut(epc))
        expect(gate.sirens()).toBe(1)
        expect(gate.events).toMatchObject([
          { reason: 'gate_alarm', detail: 'siren: recalled; the item is exception_hold; 1.00 EUR' },
        ])
        gate.items.set(epc, { status: 'paid', paying: false })
        gate.lane.itemsChanged()
        expect(at(gate, 'late_status')).toHaveLength(1)
      }
    })

    it('passes as many tags as the receipt has unused entries, by EPC or product, and alarms for the rest', async () => {
      const gate = gateWorld()
      const mine = gate.item('sellable')
      const claims = receipt([
        receiptEntry(cti, 'epc', mine),
        receiptEntry(cti, 'gtin', gtin),
        receiptEntry(cti, 'gtin', gtin),
        receiptEntry(cti, 'gtin', gtin),
      ])
      // The fourth entry is used already.
      gate.lane.acceptReceipt(claims, [0, 1, 2])
      for (let n = 0; n < 3; n++) gate.items.set(serials(n), { status: 'sellable', paying: false })
      await gate.walk(goesOut(mine, serials(0), serials(1)))
      expect([gate.commands, gate.lane.counts.passed]).toEqual([[], 3])
      await gate.walk(goesOut(serials(2)))
      expect(gate.alarms.map((alarm) => alarm.epc)).toEqual([serials(2)])
    })

    it('accepts fewer tags than entries, and ends the pass of a receipt after 30 s', async () => {
      const gate = gateWorld()
      const epc = gate.item('sellable')
      gate.lane.acceptReceipt(receipt([receiptEntry(cti, 'epc', epc), receiptEntry(cti, 'gtin', gtin)]), [0, 1])
      await gate.walk(goesOut(epc))
      expect(gate.commands).toEqual([])
      await gate.walk(nobody(31_000))
      await gate.walk(goesOut(epc))
      expect(gate.sirens()).toBe(1)
    })

    it('matches nearby tags with a receipt, but none of a product with more tags than entries', async () => {
      const gate = gateWorld()
      const [mine, paid, lying] = [gate.item('sellable'), gate.item('paid'), gate.item('sellable')]
      for (let n = 0; n < 3; n++) gate.items.set(serials(n), { status: n === 2 ? 'paid' : 'sellable', paying: false })
      const claims = receipt([
        ...[mine, paid, lying].map((epc) => receiptEntry(cti, 'epc', epc)),
        receiptEntry(cti, 'gtin', gtin),
      ])
      await gate.walk(staysBetweenAntennas(30_000, lying))
      await gate.walk(lingers(1_000, mine, paid, serials(0), serials(2)))
      // A tag that another purchase paid does not take the entry of its product.
      expect(gate.lane.nearbyTagsOf(claims, [0, 1, 2, 3])).toEqual([
        { tag: mine, entry: 0 },
        { tag: paid, entry: 1 },
        { tag: serials(0), entry: 3 },
      ])
      expect(gate.lane.nearbyTagsOf(claims, [1, 2])).toEqual([{ tag: paid, entry: 1 }])
      await gate.walk(lingers(1_000, serials(1)))
      expect(gate.lane.nearbyTagsOf(claims, [0, 3])).toEqual([{ tag: mine, entry: 0 }])
      await gate.walk(nobody(6_000))
      expect(gate.lane.nearbyTagsOf(claims, [0, 1, 2, 3])).toEqual([])
    })

    it.each(['exception_hold', 'returned', 'cancelled', 'reserved_bopis'] as const)(
      'alarms for a tag that is %s although the receipt covers it, and does not end the alarm',
      async (status) => {
        const gate = gateWorld()
        const epc = gate.item(status)
        const claims = receipt([receiptEntry(cti, 'epc', epc)])
        gate.lane.acceptReceipt(claims, [0])
        await gate.walk(goesOut(epc))
        expect(gate.alarms.map((alarm) => alarm.epc)).toEqual([epc])
        gate.lane.acceptReceipt(claims, [0])
        expect(gate.commands.some(({ command }) => command.kind === 'signal' && command.signal === 'green')).toBe(false)
      },
    )

    it('ends the alarm of a tag that the receipt covers', async () => {
      const gate = gateWorld()
      const epc = gate.item('sellable')
      await gate.walk(goesOut(epc))
      gate.lane.acceptReceipt(receipt([receiptEntry(cti, 'epc', epc)]), [0])
      expect(gate.commands.at(-1)?.command).toEqual({ kind: 'signal', signal: 'green', seconds: 4 })
    })
  })

  it('treats UIDs like EPCs, and unknown cards as unknown tags', async () => {
    const uid = (n: number) => `E00401500000000${n}`
    const gate = gateWorld()
    gate.items.set(uid(1), { status: 'sellable', paying: false })
    gate.items.set(uid(2), { status: 'paid', paying: false })
    gate.items.set(uid(3), { status: 'sellable', paying: false })
    await gate.walk(goesOut(`U${uid(1)}`), goesOut(`U${uid(2)}`))
    expect([gate.sirens(), at(gate, 'gate_alarm')]).toEqual([
      1,
      [expect.objectContaining({ tagUid: uid(1), itemStatus: 'sellable' })],
    ])
    expect(gate.events.find(({ type }) => type === 'protection.action.completed')).toMatchObject({ tagUid: uid(2) })
    const cti = new Uint8Array(16).fill(9)
    gate.lane.acceptReceipt(
      {
        storeId: 's',
        exp: 1,
        cti,
        units: 1,
        riskClass: 0,
        policyVersion: 1,
        entries: [receiptEntry(cti, 'tagUid', uid(3))],
      },
      [0],
    )
    await gate.walk(goesOut(`U${uid(3)}`))
    expect(gate.sirens()).toBe(1)
    await gate.walk(goesOut('U08123456'))
    expect(gate.events.at(-1)?.detail).toMatch(/^notify: unknown_tag/)
    const own = gateWorld({ gate: { ownPrefixes: ['4012345'], alarmMasks: ['0'] } })
    await own.walk(goesOut('U08123456'))
    expect(own.commands).toEqual([])
  })

  describe('and paid tags that have left', () => {
    const goneTags = (gate: ReturnType<typeof gateWorld>) => gate.gone.map(({ tag }) => tag)

    it('reports each once, 30 s after its last read, with the time at which it left', async () => {
      const gate = gateWorld()
      const [paid, unpaid] = [gate.item('paid'), gate.item('sellable')]
      const beganMs = gate.world.clock.wall()
      await gate.walk(goesOut(paid, unpaid))
      await gate.walk(nobody(28_000))
      expect(gate.gone).toEqual([])
      await gate.walk(nobody(10_000))
      expect(goneTags(gate)).toEqual([paid])
      expect((gate.gone[0]?.leftMs ?? 0) - beganMs).toBeLessThan(2_000)
      await gate.walk(nobody(60_000))
      expect(goneTags(gate)).toEqual([paid])
    })

    it('does not report tags that are still read, returned inside or were covered by a receipt', async () => {
      const gate = gateWorld()
      const [stays, returns, covered] = [gate.item('paid'), gate.item('paid'), gate.item('paid')]
      await gate.walk(goesOut(stays, returns, covered))
      const cti = new Uint8Array(16).fill(7)
      gate.lane.acceptReceipt(
        {
          storeId: 's',
          exp: 1,
          cti,
          units: 1,
          riskClass: 0,
          policyVersion: 1,
          entries: [receiptEntry(cti, 'epc', covered)],
        },
        [0],
      )
      await gate.walk(comesIn(returns))
      await gate.walk({
        epcs: [stays],
        seen: (ms) => (ms > 40_000 ? undefined : { inside: 0, outside: 0.05, none: 0 }),
      })
      expect(goneTags(gate)).toEqual([])
      await gate.walk(nobody(40_000))
      expect(goneTags(gate)).toEqual([stays])
    })
  })

  it('counts a tag read only outside as left after a passage without a read inside', async () => {
    const gate = gateWorld()
    const [thief, visitor] = [gate.item('sellable'), gate.item('sellable')]
    const outside = (epc: string) => gate.lane.see(epc, 'outside', gate.world.clock.elapsed())
    outside(thief)
    outside(visitor)
    gate.lane.passage()
    await gate.world.advance(300)
    gate.lane.see(visitor, 'inside', gate.world.clock.elapsed())
    await gate.world.advance(300)
    expect(gate.alarms.map((alarm) => alarm.epc)).toEqual([thief])
  })
})
