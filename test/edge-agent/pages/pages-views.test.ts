import type { AlarmStep } from '../../../policy/vocabulary.ts'
import {
  clockTime,
  deviceDetail,
  deviceState,
  lostView,
  statusView,
} from '../../../edge-agent/pages/model/status-view.ts'
import { STORE_TIME_ZONE } from '../../../policy/store-time-zone.ts'
import { describe, expect, it } from 'vitest'
import {
  arrangeLines,
  OPEN_KEPT,
  gateLine,
  gateReady,
  gateRest,
  gateView,
  goodsTexts,
  replaces,
} from '../../../edge-agent/pages/model/gate-view.ts'
import { resultView } from '../../../edge-agent/pages/model/result-view.ts'
import type { GateLight, NotUnderstood, PageAnswer, PageResult } from '../../../edge-agent/pages/model/wire.ts'
import { textsOf } from '../../../edge-agent/pages/texts/catalogue.ts'
import {
  DENY_REASONS,
  ITEM_STATUSES,
  OUTCOMES,
  PROTECTION_ACTIONS,
  type DenyReason,
  type ItemStatus,
} from '../../../policy/vocabulary.ts'
import { GATE, newStatus, STATION } from './pages-agent.ts'

const de = textsOf('de')
const en = textsOf('en')

const ANSWER: PageAnswer = {
  authorized: true,
  action: 'deactivate_label',
  itemCount: 1,
  remaining: 0,
  offline: false,
  outcome: 'confirmed',
}
const decision = (more: Partial<PageAnswer>): PageResult & { kind: 'decision' } => ({
  kind: 'decision',
  answer: { ...ANSWER, ...more },
})
const refused = (reason: DenyReason) => shown({ authorized: false, outcome: null, reason })
const shown = (more: Partial<PageAnswer>, texts = de) => resultView(decision(more), texts)

describe('a result at the station', () => {
  it('counts labels down with the right plural', () => {
    expect(shown({ itemCount: 3, remaining: 2 })).toMatchObject({
      tone: 'granted',
      left: 'Noch 2 Etiketten',
      again: 'next',
    })
    expect(shown({ itemCount: 3, remaining: 1 })).toMatchObject({ left: 'Noch 1 Etikett', again: 'next' })
    expect(shown({ itemCount: 3, remaining: 1 }, en)).toMatchObject({ left: '1 label left' })
    const done = { left: '', message: 'Alle 3 Etiketten erledigt.', again: null, seconds: 6 }
    expect(shown({ itemCount: 3, remaining: 0 })).toMatchObject(done)
  })

  it('calls staff for goods of the receipt that only they release, after the last label of the shopper', () => {
    const rest = (more: Partial<PageAnswer>, forStaff: number, texts = de) =>
      resultView({ ...decision(more), forStaff }, texts)
    // Also before: the shopper must not believe that all is done after the labels that are left.
    expect(rest({ itemCount: 2, remaining: 1 }, 2)).toMatchObject({
      tone: 'granted',
      again: 'next',
      left: 'Noch 1 Etikett',
      message: 'Danach zum Personal: Es gibt 2 weitere Artikel frei.',
    })
    expect(rest({ itemCount: 2, remaining: 1 }, 1, en)?.message).toBe('Then ask our staff: they release 1 more item.')
    expect(rest({ itemCount: 2, remaining: 1 }, 0)?.message).toBe('')
    expect(rest({ itemCount: 2 }, 2)).toMatchObject({
      tone: 'staff',
      headline: 'Bitte Personal fragen',
      left: 'Noch 2 Artikel',
      message: de.restNeedsStaff,
      again: 'approve',
    })
    expect(rest({}, 1, en)).toMatchObject({ tone: 'staff', left: '1 more item', message: en.restNeedsStaff })
  })

  it('says calmly that a receipt without tagged goods needs no release', () => {
    const nothing = { authorized: false, outcome: null, reason: 'no_tagged_goods' } as const
    expect(shown(nothing, en)).toMatchObject({
      tone: 'note',
      headline: 'Nothing to release',
      message: 'This purchase has no secured goods.',
    })
    expect(shown(nothing)).toMatchObject({ tone: 'note', headline: 'Nichts freizugeben' })
    expect(refused('item_not_paid')).toMatchObject({ tone: 'refused', headline: 'Noch nicht freigegeben' })
  })

  it('names the product, and counts the labels that are left once', () => {
    const named = { ...decision({ itemCount: 5, remaining: 3 }), product: 'Jacke' }
    expect(resultView(named, de)).toMatchObject({
      product: 'Jacke',
      left: 'Noch 3 Etiketten',
      message: '',
    })
    expect(shown({ itemCount: 1, remaining: 1 })).toMatchObject({ product: '', message: '' })
  })

  it('names the goods that come next, three kinds at most', () => {
    const goods = (category: string, brand: string, priceCent: number, quantity = 1) => ({
      category,
      brand,
      priceCent,
      quantity,
    })
    const next = [goods('hosen', 'Elbtuch', 6_990, 2), { ...goods('schals', '', 1_000), name: 'Wollschal' }]
    const named = { ...decision({ itemCount: 5, remaining: 3 }), next }
    const spaced = (view: ReturnType<typeof resultView>) => view?.next.replaceAll('\u00a0', ' ')
    expect(spaced(resultView(named, de))).toBe('Als Nächstes: 2 × Elbtuch Hosen (69,90 €), 1 × Wollschal (10,00 €)')
    expect(spaced(resultView({ kind: 'receipt', left: 3, next }, en))).toBe(
      'Next: 2 × Elbtuch Hosen (€69.90), 1 × Wollschal (€10.00)',
    )
    const many = { ...named, next: [...next, goods('', '', 1), goods('b', '', 1)] }
    expect(spaced(resultView(many, en))).toMatch(/1 × item \(€0\.01\) \+ 1 more$/)
    expect(resultView(many, de)?.shorterNext.map((text) => text.replace(/.*\+/, '+'))).toEqual([
      '+ 2 weitere',
      '+ 3 weitere',
    ])
    expect(resultView(decision({ remaining: 1 }), de)?.next).toBe('')
  })

  it('says in the headline what a code is, and only of an unknown code that it is not recognised', () => {
    const headlines = (why: NotUnderstood) =>
      [de, en].map((texts) => resultView({ kind: 'not_understood', why }, texts)?.headline)
    expect(headlines('purchase_not_paid')).toEqual(['Noch nicht bezahlt', 'Not paid yet'])
    expect(headlines('receipt_expired')).toEqual(['Beleg abgelaufen', 'Receipt expired'])
    const unknown = Object.entries(de.notUnderstood).filter(([, { headline }]) => headline === 'Nicht erkannt')
    expect(unknown.map(([why]) => why)).toEqual(['unknown_code'])
    for (const why of ['needs_staff', 'unknown_code_or_number'] as const) {
      expect(headlines(why)).toEqual(['Nur mit Personal', 'Staff only'])
      expect(resultView({ kind: 'not_understood', why }, de)?.again).toBe('sign_in')
    }
  })

  it('asks staff to check after an unknown outcome, without a button to send the scan again', () => {
    expect(shown({ outcome: 'unknown' })).toMatchObject({
      tone: 'unsure',
      headline: 'Ist das Etikett ab?',
      again: null,
    })
    expect(shown({ outcome: 'failed' })).toMatchObject({ tone: 'unsure', headline: 'Nicht ausgelöst', again: 'retry' })
  })

  it('distinguishes denials from calls for staff, and shows both longer than a success', () => {
    expect(refused('item_not_paid')).toMatchObject({ tone: 'refused', headline: 'Noch nicht freigegeben', again: null })
    // A repeat is no fault of the customer.
    expect(refused('already_redeemed')?.tone).toBe('staff')
    // A receipt differs from a tag: the shopper needs to know about all of its tags.
    const used = { headline: 'Schon freigegeben', advice: de.nothingLeftAdvice }
    expect(refused('already_redeemed')).toMatchObject({ ...used, message: de.nothingLeft })
    const at = '2026-11-27T13:02:30.000Z'
    const again = {
      ...decision({ authorized: false, reason: 'already_redeemed' }),
      used: { at, deviceName: 'Kasse 1' },
    }
    expect(resultView(again, de)?.message).toMatch(
      /sind ab, zuletzt am 27\. November um 14:02 an diesem Gerät: Kasse 1\.$/,
    )
    expect(resultView({ kind: 'receipt', left: 0, used: { at } }, en)).toMatchObject({
      headline: 'Already released',
      message: expect.stringMatching(/came off, last on November 27 at 14:02\.$/),
    })
    expect(refused('manual_assistance_required')).toMatchObject({
      tone: 'staff',
      headline: 'Bitte Personal fragen',
      again: 'approve',
    })
    for (const reason of DENY_REASONS) expect(refused(reason)?.seconds).toBeGreaterThan(6)
  })

  it('has its own text for every reason, in both languages', () => {
    for (const texts of [de, en]) {
      const reasonTexts = DENY_REASONS.map((reason) => texts.reasons[reason].what)
      expect(new Set(reasonTexts).size).toBe(DENY_REASONS.length)
      for (const text of reasonTexts) expect(text).not.toContain('_')
    }
  })

  it('has a text for every action, outcome and status', () => {
    const information = (itemStatus?: ItemStatus) =>
      shown({ action: 'verify_item_status', outcome: null, ...(itemStatus && { itemStatus }) })
    for (const texts of [de, en])
      for (const action of PROTECTION_ACTIONS)
        for (const outcome of [...OUTCOMES, null])
          for (const itemStatus of ITEM_STATUSES)
            expect(shown({ action, outcome, itemStatus }, texts)?.headline).toMatch(/\w/)
    expect(information('sellable')).toMatchObject({ tone: 'refused', headline: 'nicht bezahlt' })
    expect(information()).toMatchObject({ tone: 'note' })
  })
})

describe('a result at the gate', () => {
  it('names the product instead of its tag, and counts goods that leave together', () => {
    const event = { type: 'result', deviceId: GATE, atMs: 0, light: 'siren' } as const
    const result = { ...decision({ authorized: false, reason: 'item_not_paid' }), item: '3034', product: 'Jacke' }
    expect(gateView({ ...event, result }, de)).toMatchObject({ item: 'Jacke' })
    expect(gateLine({ ...event, result }, de)).toMatchObject({ item: 'Jacke' })
    const { product: _, ...unnamed } = result
    expect(gateView({ ...event, result: unnamed }, de)).toMatchObject({ item: '3034' })
    expect(goodsTexts(['Jacke', 'Schal', '', 'Jacke'], de)).toEqual(['2 × Jacke, Schal', '2 × Jacke + 1 weitere'])
    expect(goodsTexts(['a', 'b', 'c', 'd', 'e', 'e'], en)).toEqual([
      'a, b, c, d + 2 more',
      'a, b, c + 3 more',
      'a, b + 4 more',
      'a + 5 more',
    ])
    expect(goodsTexts([], de)).toEqual([])
  })

  const at = (result: PageResult, light: GateLight) => ({
    type: 'result' as const,
    deviceId: 'g',
    atMs: 0,
    result,
    light,
  })
  const exit = (more: Partial<PageAnswer>) => decision({ action: 'authorize_exit', ...more })
  const unpaid: PageResult = {
    ...exit({ authorized: false, outcome: null, reason: 'item_not_paid', itemStatus: 'sellable' }),
    item: 'E280AA',
  }

  it('alarms with reason and tag if the gate alarmed', () => {
    const alarm = {
      tone: 'alarm',
      headline: 'Alarm',
      message: 'Für diese Ware liegt noch keine Zahlung vor.',
      item: 'E280AA',
    }
    expect(gateView(at(unpaid, 'siren'), de)).toMatchObject(alarm)
  })

  it('shows amber if the gate showed amber, and nothing if the gate showed no light', () => {
    expect(gateView(at(unpaid, 'amber'), de)).toMatchObject({ tone: 'amber', item: '' })
    expect(gateView(at(unpaid, null), de)).toBeUndefined()
  })

  it('is green only if the gate opened', () => {
    expect(gateView(at(exit({}), 'green'), de)).toMatchObject({ tone: 'green', headline: 'Danke, auf Wiedersehen' })
    expect(gateView(at(exit({ outcome: 'failed' }), 'green'), de)).toMatchObject({ tone: 'amber' })
  })

  it('keeps an alarm although paid goods of the same bag follow', () => {
    expect(replaces('green', 'alarm', 200)).toBe(false)
    expect(replaces('alarm', 'alarm', 200)).toBe(true)
    expect(replaces('green', 'alarm', 8_000)).toBe(true)
    expect(replaces('green', 'amber', 0)).toBe(true)
  })

  it('names the reason in the list for staff', () => {
    expect(gateLine(at(unpaid, 'siren'), en)).toMatchObject({
      tone: 'alarm',
      text: 'We have no payment for this item yet.',
      item: 'E280AA',
    })
    expect(gateLine(at({ kind: 'operator', name: 'x' }, null), en)).toBeUndefined()
  })

  it('says in each list that recalled and held goods stay, and that an alarm is of an emergency', () => {
    const DENIED = { authorized: false, outcome: null, reason: 'item_not_paid' } as const
    const lineOf = (result: PageResult, texts = en) => gateLine(at(result, 'siren'), texts)
    expect(lineOf(unpaid)).toMatchObject({ isTextNeeded: false })
    expect(lineOf(decision({ ...DENIED, reason: 'recalled' }), de)).toMatchObject({
      text: 'Zurückgerufen: bleibt hier, auch wenn sie bezahlt ist',
      isTextNeeded: true,
    })
    expect(lineOf(decision({ ...DENIED, itemStatus: 'exception_hold' }))).toMatchObject({
      text: 'On hold: stays here until the office releases it',
      isTextNeeded: true,
    })
    expect(lineOf({ ...decision(DENIED), emergency: true })).toMatchObject({
      text: 'During an emergency · We have no payment for this item yet.',
      isTextNeeded: true,
    })
  })

  it('keeps open alarms above the last decisions, until their cause or a newer alarm of the tag comes', () => {
    const alarm = (n: number, step?: AlarmStep, tag = `tag ${n}`) => ({ n, tag, alarmId: `alarm ${n}`, step })
    const other = (n: number) => ({ n, tag: `tag ${n}`, alarmId: undefined, step: undefined })
    const arranged = (lines: ReturnType<typeof alarm | typeof other>[]) => {
      const { shown, hidden, openCount } = arrangeLines(lines, (line) => line)
      return [shown.map(({ n }) => n), hidden.map(({ n }) => n), openCount]
    }
    const decisions = [9, 8, 7, 6, 5, 4].map(other)
    expect(arranged([...decisions, alarm(3), alarm(2, 'phantom'), alarm(1, 'acknowledged')])).toEqual([
      [3, 1, 9, 8, 7],
      [6, 5],
      2,
    ])
    // Open alarms take all places before a handled one has one.
    expect(arranged([alarm(9, 'real'), other(8), ...[7, 6, 5, 4, 3, 2].map((n) => alarm(n))])).toEqual([
      [7, 6, 5, 4, 3, 2],
      [9, 8],
      6,
    ])
    expect(arranged([alarm(3, 'real', 'same'), alarm(2, undefined, 'same'), alarm(1, undefined, 'same')])).toEqual([
      [3, 2, 1],
      [],
      0,
    ])
  })

  it('says if open alarms are missing in the list', () => {
    const open = (count: number) =>
      Array.from({ length: count }, (_, n) => ({ tag: `${n}`, alarmId: `a${n}`, step: undefined }))
    expect(arrangeLines(open(OPEN_KEPT), (line) => line)).toMatchObject({ openCount: OPEN_KEPT, isCut: false })
    expect(arrangeLines(open(OPEN_KEPT + 1), (line) => line)).toMatchObject({ openCount: OPEN_KEPT, isCut: true })
    expect(en.gate.moreOpen(100, true)).toBe('At least 100 more open alarms')
    expect(de.gate.moreOpen(1, true)).toBe('Mindestens 1 weiterer offener Alarm')
  })
})

describe('the state of the agent', () => {
  const status = newStatus()
  const viewOf = (more: object, nowMs = 0) => statusView({ ...status, ...more }, STATION, de, { nowMs, isStaff: true })
  const badgeTexts = (more: object, nowMs = 0) => viewOf(more, nowMs).badges.map(({ text }) => text)

  it('shows times of the store, whatever the time zone of the browser', () => {
    const atMs = Date.parse('2026-07-01T12:00:00Z')
    const inStore = new Date(atMs).toLocaleTimeString('de', { timeZone: STORE_TIME_ZONE })
    expect(clockTime(atMs, 'de')).toBe(inStore)
  })

  it('shows two good badges without a fault, and no number that only technicians know', () => {
    expect(viewOf({})).toEqual({
      badges: ['Online', 'Gerät bereit'].map((text) => ({ tone: 'good', text })),
      banners: [],
    })
  })

  it('shows an emergency on every page, and which board the agent cannot read', () => {
    const emergency = { opened: [GATE], lost: [] as string[] }
    const banners = (deviceId: string, more = emergency) =>
      statusView({ ...status, emergency: { ...emergency, ...more } }, deviceId, en, {
        nowMs: 0,
        isStaff: true,
      }).banners.map(({ text }) => text)
    expect(banners(GATE)).toEqual([en.emergency.opened])
    expect(banners(STATION)).toEqual([en.emergency.elsewhere])
    expect(banners(GATE, { opened: [GATE], lost: [GATE] })).toEqual([
      `${en.emergency.opened} ${en.emergency.lost(GATE)}`,
    ])
  })

  it('shows how long it has been offline, and how many events wait', () => {
    const offline = { online: false, offlineSince: new Date(0).toISOString(), queueDepth: 3 }
    expect(badgeTexts(offline, 12 * 60_000)).toContain('Offline seit 12 min')
    expect(badgeTexts(offline, 0)).toContain('Offline seit weniger als 1 min')
    expect(badgeTexts(offline, 185 * 60_000)).toContain('Offline seit 3 h 5 min')
    expect(badgeTexts(offline, 72 * 3_600_000)).toContain('Offline seit 3 Tagen')
    expect(badgeTexts({ ...offline, queueDepth: 1 })).toContain('1 Ereignis wartet')
    expect(badgeTexts(offline)).toContain('3 Ereignisse warten')
  })

  it('shows outdated rules, uncertain time and faults', () => {
    expect(badgeTexts({ stage: 'stale', clock: 'none' })).toEqual(
      expect.arrayContaining(['Regeln veraltet', 'Uhrzeit nicht bestätigt']),
    )
    expect(badgeTexts({ stage: 'expired' })).toContain('Regeln abgelaufen')
    expect(badgeTexts({ neededRelease: '9.0.0' })).toContain('Regeln veraltet')
    expect(badgeTexts({ policyVersion: null })).toContain('Keine Regeln')
    expect(viewOf({ items: { known: 0, ageSeconds: null } }).banners).toEqual([{ tone: 'warn', text: de.withoutItems }])
    expect(viewOf({ fault: 'disk I/O error' }).banners).toEqual([
      {
        tone: 'bad',
        text: 'Das Protokoll der Freigaben ist gestört. Es wird nichts freigegeben. Bitte die Technik rufen.',
      },
    ])
    const devices = status.devices.map((device) => ({ ...device, state: 'degraded' as const, detail: 'no answer' }))
    // The driver's message is in English: it is on the set-up page.
    expect(viewOf({ devices }).banners).toEqual([
      { tone: 'bad', text: de.deviceAway },
      { tone: 'bad', text: de.feederAway('dev_scanner') },
    ])
  })

  it.each(['absent', 'degraded', 'identifying'] as const)('shows no ready gate while a reader of it is %s', (state) => {
    const reader = { ...status.devices[0]!, deviceId: 'dev_reader', feeds: GATE, state: 'ready' as const }
    const devices = [...status.devices, reader]
    expect(gateRest({ devices, emergency: null }, GATE, en)).toEqual(gateReady(en))
    const away = {
      emergency: null,
      devices: devices.map((device) => (device === reader ? { ...reader, state } : device)),
    }
    expect(gateRest(away, GATE, en)).toMatchObject({ tone: 'amber', message: en.gate.outHint, seconds: 0 })
    expect(statusView({ ...status, ...away }, GATE, en, { nowMs: 0, isStaff: true }).banners).toEqual([
      { tone: 'bad', text: en.feederAway('dev_reader') },
    ])
    const own = {
      emergency: null,
      devices: devices.map((device) => (device.deviceId === GATE ? { ...device, state } : device)),
    }
    expect(gateRest(own, GATE, de).message).toBe(de.gate.outHint)
  })

  it.each([
    ['German', de, 'Der Agent kann nicht lesen, was ein Gerät sendet. Bitte die Technik rufen.'],
    ['English', en, 'The agent cannot read what a device sends. Please call a technician.'],
  ])(
    'shows findings of a device and of the readers that feed it in %s, with code, and in English with detail',
    (_, texts, text) => {
      const finding = { code: 'unreadable_data' as const, detail: 'set "mapping"', isWarning: false }
      const warning = { code: 'reader_session' as const, detail: 'set "session": 0', isWarning: true }
      const devices = status.devices.map((device) =>
        device.deviceId === 'dev_scanner'
          ? { ...device, state: 'degraded' as const, detail: 'set "mapping"', findings: [finding] }
          : device.deviceId === STATION
            ? { ...device, findings: [warning] }
            : device,
      )
      const { banners } = statusView({ ...status, devices }, STATION, texts, { nowMs: 0, isStaff: true })
      const [session, mapping] = texts === en ? [': set "session": 0', ': set "mapping"'] : ['', '']
      expect(banners).toEqual([
        { tone: 'warn', text: `${texts.findings.reader_session} (dev_station, reader_session${session})` },
        { tone: 'bad', text: `${text} (dev_scanner, unreadable_data${mapping})` },
      ])
      expect(statusView({ ...status, devices }, GATE, texts, { nowMs: 0, isStaff: true }).banners).toEqual([])
      const scanner = devices.find(({ deviceId }) => deviceId === 'dev_scanner')!
      expect(deviceState(scanner, texts)).toBe(`${texts.deviceStates.degraded}: ${text}`)
      expect(deviceDetail(scanner, texts)).toBe('unreadable_data: set "mapping"')
    },
  )

  it('shows no old status without a connection to the agent', () => {
    const lost = lostView(de, Date.UTC(2026, 10, 20, 9, 5), true)
    expect(lost.badges).toEqual([{ tone: 'bad', text: 'Agent nicht erreichbar' }])
    expect(lost.banners[0]?.text).toMatch(/die Technik rufen\.$/)
  })

  it('tells shoppers to ask staff, and only signed-in staff whom to call', () => {
    const faulty = status.devices.map((device) => ({ ...device, state: 'degraded' as const }))
    const states = [
      { devices: faulty },
      { fault: 'disk I/O error' },
      { ledgerDoubt: 'forked' as const },
      { neededRelease: '9.0.0' },
      { items: { ageSeconds: null } },
    ]
    for (const texts of [de, en]) {
      const banners = (more: object, isStaff: boolean) =>
        statusView({ ...status, ...more }, STATION, texts, { nowMs: 0, isStaff }).banners.map(({ text }) => text)
      expect(states.map((more) => banners(more, false))).toEqual([
        [texts.forShoppers.fault],
        [texts.forShoppers.fault],
        [texts.forShoppers.fault],
        [texts.forShoppers.note],
        [texts.forShoppers.note],
      ])
      expect(banners({ devices: faulty }, true)).toEqual([texts.deviceAway, texts.feederAway('dev_scanner')])
      expect(lostView(texts, 0, false).banners[0]?.text).toContain(texts.forShoppers.lost)
      for (const text of Object.values(texts.forShoppers)) expect(text).not.toMatch(/Technik|technician/)
    }
  })

  it('does not call a lane ready whose reader is away', () => {
    const devices = status.devices.map((each) =>
      each.feeds === STATION ? { ...each, state: 'absent' as const } : each,
    )
    expect(badgeTexts({ devices })).toEqual(['Online', 'Gerätestörung'])
  })

  it('says that an exit has no reader of tags, and to staff what to do', () => {
    const blind = { code: 'no_tag_reader' as const, detail: 'add a reader', isWarning: true }
    const devices = status.devices.map((each) => (each.deviceId === GATE ? { ...each, findings: [blind] } : each))
    const viewFor = (isStaff: boolean) => statusView({ ...status, devices }, GATE, de, { nowMs: 0, isStaff })
    expect(viewFor(false).badges).toContainEqual({ tone: 'warn', text: 'Ohne Etikettenleser' })
    expect(viewFor(true).banners).toEqual([
      { tone: 'warn', text: `${de.findings.no_tag_reader} (dev_gate, no_tag_reader)` },
    ])
    // A barrier for goods without tags works for shoppers.
    expect(viewFor(false).banners).toEqual([])
  })

  it('shows one way out in an emergency, at the devices that it opens and at others', () => {
    const emergency = { opened: [GATE], lost: ['dev_panel'] }
    const shown = [GATE, STATION].flatMap((deviceId) => [
      ...statusView({ ...status, emergency }, deviceId, de, { nowMs: 0, isStaff: false }).banners.map(
        ({ text }) => text,
      ),
      gateRest({ devices: status.devices, emergency }, deviceId, de).message,
    ])
    expect(shown).toEqual([
      de.emergency.opened,
      'Notfall: Bitte hier hinausgehen.',
      'Notfall: Bitte gehen Sie jetzt durch einen offenen Ausgang.',
      'Bitte gehen Sie jetzt durch einen offenen Ausgang.',
    ])
  })
})
