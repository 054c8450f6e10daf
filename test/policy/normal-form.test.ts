import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { lines, text } from '../../cloud/platform/operations/fields.ts'
import { foldText } from '../../policy/fold-text.ts'
import { hasTooManyMarks, normalForm } from '../../policy/printable.ts'

/** Marks in the wrong order, which `normalize` sorts one by one: 20 s for 200,000. */
const unordered = (count: number) => `a${'\u0301'.repeat(count / 2)}${'\u0316'.repeat(count / 2)}`
const LIMIT_MS = 500

describe('the normal form of a text', () => {
  it('is that of Unicode, unless over 30 marks follow each other', () => {
    const marks = fc.array(fc.constantFrom('\u0301', '\u0316', '\u3099', '\u0344'), { maxLength: 40 })
    const parts = fc.tuple(fc.string({ unit: 'binary' }), marks, fc.string({ unit: 'grapheme' }))
    fc.assert(
      fc.property(parts, fc.constantFrom('NFC', 'NFD', 'NFKC', 'NFKD'), ([before, between, after], form) => {
        const value = before + between.join('') + after
        const longest = Math.max(0, ...(value.match(/\p{M}+/gu) ?? []).map((run) => [...run].length))
        expect(hasTooManyMarks(value)).toBe(longest > 30)
        expect(normalForm(value, form)).toBe(longest > 30 ? value : value.normalize(form))
      }),
    )
  })

  it.each([
    ['many marks on one letter', unordered(200_000)],
    ['30 marks on each letter', unordered(30).repeat(10_000)],
    ['marks only', '\u0316'.repeat(500_000)],
    ['no marks', 'a'.repeat(500_000)],
  ])('takes under 500 ms for %s', (_, value) => {
    for (const use of [normalForm, foldText, text(80).safeParse, lines(500).safeParse]) {
      // A busy machine may interrupt one of them.
      const isFast = [1, 2, 3].some(() => {
        const began = performance.now()
        use(value)
        return performance.now() - began < LIMIT_MS
      })
      expect([use.name, isFast]).toEqual([use.name, true])
    }
  })
})
