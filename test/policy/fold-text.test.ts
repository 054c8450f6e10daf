import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decide } from '../../policy/decide.ts'
import { foldText } from '../../policy/fold-text.ts'
import { GatePolicy, severityOf, ProtectionPolicy } from '../../policy/store-policy.ts'
import { explainPolicy } from '../../policy/policy-explanation.ts'
import { decisionVectors } from '../support/decision-vectors.ts'
import { anyTypedText, anyVariantOf } from '../support/text-variants.ts'

/** A text, one of its variants, and another variant. */
const anySpellings = anyTypedText.chain((text) => fc.tuple(fc.constant(text), anyVariantOf(text), anyVariantOf(text)))

describe('foldText', () => {
  it('gives every character and its variants one value', () => {
    const differing: string[] = []
    for (let code = 0x20; code < 0x2_0000; code++) {
      if (code >= 0xd800 && code < 0xe000) continue
      const text = `a${String.fromCodePoint(code)}b`
      const variants = [text.toUpperCase(), text.toLowerCase(), text.normalize('NFD'), ` ${text}\u00A0`]
      if (variants.some((variant) => foldText(variant) !== foldText(text))) differing.push(code.toString(16))
    }
    expect(differing).toEqual([])
  })

  it('gives texts one value that differ in case, blanks or Unicode form, and leaves a folded text as it is', () => {
    fc.assert(
      fc.property(anySpellings, ([text, variant]) => {
        expect(foldText(variant)).toBe(foldText(text))
        expect(foldText(foldText(text))).toBe(foldText(text))
      }),
    )
  })

  it('keeps other texts apart', () => {
    const texts = ['Alkohol', 'Alkohole', 'Al kohol', 'Öl', 'Ol', 'Masse', 'Maß', 'a-b', 'a b', 'ab', '']
    expect(new Set(texts.map(foldText)).size).toBe(texts.length)
    expect(['Süßwaren', 'SÜSSWAREN', 'SÜẞWAREN', ' su\u0308ßwaren\u00A0'].map(foldText)).toEqual(
      Array.from({ length: 4 }, () => 'süsswaren'),
    )
  })
})

describe('a rule for a category or brand', () => {
  const base = decisionVectors().find(({ expect: result }) => result === 'allowed')
  if (!base?.facts.device) throw new Error('no vector is allowed')
  const { facts } = base
  const device = { ...base.facts.device, workflowType: 'self_service' as const }
  const action = 'detach_hard_tag'
  const everywhere = { '*': { [action]: ['self_service'] } }
  const decisions = (policy: Record<string, unknown>, item: { category: string; brand: string }) => {
    const parsed = ProtectionPolicy.parse(policy)
    const decision = decide(
      { ...facts, action, device, item: { status: 'paid', priceCent: 100, ...item }, hasOperator: false },
      parsed,
    )
    const scenario = { device, action, priceCent: 100, hasOperator: false, ...item } as const
    const { stages, offline } = explainPolicy(scenario, parsed)
    const explained = stages.find(({ stage }) => stage === 'fresh')
    return [
      decision.allowed ? 'granted' : decision.reason,
      explained?.authorized ? 'granted' : explained?.reason,
      offline.authorized ? 'granted' : offline.reason,
    ]
  }
  const everyPath = (result: string) => [result, result, result]

  it('applies to every spelling of the category', () => {
    fc.assert(
      fc.property(anySpellings, ([, ruled, typed]) => {
        const strict = { allowedActionsByCategory: { ...everywhere, [ruled]: { [action]: ['staff_assisted'] } } }
        expect(decisions(strict, { category: typed, brand: '' })).toEqual(everyPath('workflow_not_allowed'))
        expect(decisions(strict, { category: `${typed}x`, brand: '' })).toEqual(everyPath('granted'))
      }),
      { examples: [[['Alkohol', 'Alkohol', 'alkohol']], [['Öl', 'Öl', 'O\u0308l']]] },
    )
  })

  it('applies to every spelling of the brand', () => {
    fc.assert(
      fc.property(anySpellings, ([, ruled, typed]) => {
        const strict = { allowedActionsByCategory: everywhere, requiresStaffForBrand: [ruled] }
        expect(decisions(strict, { category: '', brand: typed })).toEqual(everyPath('manual_assistance_required'))
        expect(decisions(strict, { category: '', brand: `${typed}x` })).toEqual(everyPath('granted'))
      }),
      { examples: [[['Götz', 'Götz', 'Go\u0308tz']]] },
    )
  })

  it('applies to every spelling at a gate', () => {
    fc.assert(
      fc.property(anySpellings, ([, ruled, typed]) => {
        const gate = GatePolicy.parse({ severity: [{ category: ruled, severity: 'silent' }] })
        expect(severityOf(gate, { category: typed })).toEqual({ severity: 'silent', rule: 1 })
        expect(severityOf(gate, { category: `${typed}x` })).toEqual({ severity: 'siren', rule: 0 })
        expect(severityOf(gate, {})).toEqual({ severity: 'siren', rule: 0 })
      }),
    )
  })

  it('is refused if another has the same name, and both are named', () => {
    const faultOf = (policy: object) => ProtectionPolicy.safeParse(policy).error?.issues.map(({ message }) => message)
    const rule = { [action]: ['staff_assisted'] }
    for (const [first, second] of [
      ['Alkohol', 'ALKOHOL '],
      ['Öl', 'O\u0308l'],
      ['*', ' *'],
    ] as const) {
      for (const policy of [
        { allowedActionsByCategory: { [first]: rule, Schuhe: rule, [second]: rule } },
        { requiresStaffForBrand: [first, 'Schuhe', second] },
      ])
        expect(faultOf(policy)).toEqual([`"${first}" and "${second}" are the same name: keep one of them`])
    }
    const twice = [
      { category: 'Alkohol', fromValue: 50, severity: 'siren' },
      { category: 'alkohol', severity: 'notify' },
    ]
    expect(faultOf({ gate: { severity: twice } })).toBeUndefined()
    for (const policy of [
      { allowedActionsByCategory: { '  ': rule } },
      { requiresStaffForBrand: ['\u00A0'] },
      { gate: { severity: [{ category: ' ', severity: 'silent' }] } },
    ])
      expect(faultOf(policy)).toEqual(['must not be blank'])
  })
})
