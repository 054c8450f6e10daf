import { describe, expect, it } from 'vitest'
import { SetupPage } from '../../../edge-agent/pages/components/setup-page.tsx'
import { faultText } from '../../../edge-agent/pages/model/setting-fault.ts'
import { textsOf } from '../../../edge-agent/pages/texts/catalogue.ts'
import type { Texts } from '../../../edge-agent/pages/texts/texts.ts'
import { LANGUAGES, otherLanguage } from '../../../policy/page-language.ts'
import { GATE, newStatus, STATION } from './pages-agent.ts'

const { devices } = newStatus()

function page(texts: Texts, more: Partial<Parameters<typeof SetupPage>[0]> = {}): string {
  return String(
    SetupPage({
      localization: {
        texts,
        own: texts.language,
        other: { ...textsOf(otherLanguage(texts.language)), href: '?lang=x' },
      },
      devices,
      attached: [],
      configFile: 'edge.json',
      testable: () => ['release'],
      changeable: () => undefined,
      nameIn: () => undefined,
      changedId: undefined,
      isRemoved: () => false,
      isRestartDue: false,
      hasFireAlarm: false,
      addedId: undefined,
      warning: undefined,
      notes: [],
      ...more,
    }),
  )
}

describe('the fault of a field', () => {
  const pulse = { value: '10', limits: [20, 10_000] as const }
  const raw = 'give milliseconds, 20 to 10000'

  it('is a sentence in each language', () => {
    expect(faultText(pulse, raw, textsOf('en'))).toBe('Please give a number: 20 to 10000.')
    expect(faultText(pulse, raw, textsOf('de'))).toBe('Bitte eine Zahl angeben: 20 bis 10000.')
    expect(faultText({ ...pulse, value: 'ten' }, raw, textsOf('en'))).toBe('Please give a number: 20 to 10000.')
    expect(faultText({ ...pulse, value: ' ' }, raw, textsOf('en'))).toBe('Please fill in this field.')
    // The number is allowed, so that the reason is another one.
    const used = 'output 1 is used twice'
    expect(faultText({ ...pulse, value: '20,5' }, used, textsOf('en'))).toBe('Output 1 is used twice.')
    expect(faultText({ value: 'x', limits: undefined }, used, textsOf('de'))).toBe('Dieser Wert passt nicht.')
  })

  it('mentions a code only where a form has one', () => {
    for (const language of LANGUAGES) {
      const { correct, codeUnused, problems } = textsOf(language).setup
      for (const text of [correct('X'), problems['entry_fault']]) expect(text).not.toContain('Code')
      expect(codeUnused).toMatch(/code/i)
    }
  })
})

describe.each(LANGUAGES)('the set-up page in %s', (language) => {
  const texts = textsOf(language)
  const { setup } = texts

  it('marks each required field in the same way', () => {
    const hintOf = (html: string, driver: string, path: string) =>
      new RegExp(`<template data-driver="${driver}">.*?data-path="${path}".*?<span class="ids">([^<]*)<`, 's').exec(
        html,
      )?.[1]
    const plain = page(texts)
    expect(hintOf(plain, 'llrp', 'link.tcp')).toMatch(setup.required)
    expect(hintOf(plain, 'modbus', 'pulseMs')).not.toMatch(setup.required)
    expect(hintOf(plain, 'modbus', 'opensInEmergency')).toBe('')
    expect(hintOf(page(texts, { hasFireAlarm: true }), 'modbus', 'opensInEmergency')).toBe(setup.required)
  })

  it('says of an exit without a reader that it sees no goods, and asks for the reader', () => {
    const blind = { code: 'no_tag_reader' as const, detail: 'add a reader', isWarning: true }
    const bare = devices.map((each) => (each.deviceId === GATE ? { ...each, findings: [blind] } : each))
    const shown = page(texts, { devices: bare, addedId: GATE })
    for (const text of [texts.findings.no_tag_reader, setup.next.reader, setup.noWalk])
      expect(shown).toContain(text.replaceAll('"', '&quot;'))
    expect(shown).not.toContain('data-walk')
    expect(page(texts, { addedId: GATE })).toContain('data-walk')
  })

  it('says that a device is removed with the next start, and offers no release of it', () => {
    const before = page(texts)
    expect(before).toContain('data-test="release"')
    const after = page(texts, { isRemoved: (deviceId) => deviceId === STATION, isRestartDue: true })
    const card = after.split('<li>').find((each) => each.includes(STATION)) ?? ''
    expect(card).toContain(setup.removed)
    expect(card).not.toMatch(/data-test|data-found|data-remove/)
    expect(after).toContain(setup.next.restart)
    expect(before).not.toContain(setup.next.restart)
  })
})
