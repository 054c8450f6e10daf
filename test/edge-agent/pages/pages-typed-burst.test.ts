import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { LONGEST_SCAN, typedBurst, type BurstVerdict } from '../../../edge-agent/pages/model/typed-burst.ts'

/** Types keys with a pause between them. Returns the verdict about the last key. */
function typing(
  keys: readonly string[],
  gapMs: number,
  inField = false,
  burst = typedBurst(),
  startMs = 1_000,
): BurstVerdict {
  let verdict: BurstVerdict = { do: 'pass' }
  keys.forEach((key, i) => (verdict = burst.onKey({ key, atMs: startMs + i * gapMs, inField })))
  return verdict
}

describe('a burst of typed characters', () => {
  it('is a scan when Enter or Tab ends it', () => {
    expect(typing([...'HTTPS://X/R/ABC', 'Enter'], 8)).toEqual({ do: 'scan', text: 'HTTPS://X/R/ABC' })
    expect(typing([...'ABC123', 'Tab'], 8)).toEqual({ do: 'scan', text: 'ABC123' })
  })

  it('is held back from buttons, and Shift between its characters does not end it', () => {
    const burst = typedBurst()
    expect(burst.onKey({ key: 'A', atMs: 0, inField: false })).toEqual({ do: 'hold' })
    expect(burst.onKey({ key: 'Shift', atMs: 4, inField: false })).toEqual({ do: 'pass' })
    expect(typing(['B', 'C', 'Enter'], 4, false, burst, 8)).toEqual({ do: 'scan', text: 'ABC' })
  })

  it('leaves Enter and Tab to the page when nothing was typed', () => {
    expect(typing(['Enter'], 1)).toEqual({ do: 'pass' })
    expect(typing(['Tab'], 1)).toEqual({ do: 'pass' })
    expect(typing([' ', 'Enter'], 20)).toEqual({ do: 'pass' })
  })

  it('starts again after a pause', () => {
    const burst = typedBurst()
    typing([...'OLD'], 5, false, burst)
    expect(typing([...'NEW', 'Enter'], 5, false, burst, 5_000)).toEqual({ do: 'scan', text: 'NEW' })
  })

  it('hides the line feed of a scanner that sends CR LF, but not a later Enter', () => {
    const burst = typedBurst()
    typing([...'ABCDEF', 'Enter'], 5, false, burst)
    expect(burst.onKey({ key: 'Enter', atMs: 1_035, inField: false })).toEqual({ do: 'hold' })
    expect(burst.onKey({ key: 'Enter', atMs: 2_000, inField: false })).toEqual({ do: 'pass' })
  })

  it('counts as a scan in a field only if it is faster than people type', () => {
    expect(typing([...'ABCDEFGH', 'Enter'], 10, true)).toEqual({ do: 'scan', text: 'ABCDEFGH' })
    expect(typing([...'ABCDEFGH', 'Enter'], 90, true)).toEqual({ do: 'pass' })
    expect(typing([...'471108', 'Enter'], 10, true)).toEqual({ do: 'pass' })
  })

  it('ends by silence for a scanner that sends no Enter or Tab, and never for a person or in a field', () => {
    const ended = (keys: string, gapMs: number, inField = false) => {
      const burst = typedBurst()
      typing([...keys], gapMs, inField, burst)
      return [burst.onSilence(inField), burst.onSilence(inField)]
    }
    const nothing = { do: 'pass' }
    expect(ended('4006381333931', 10)).toEqual([{ do: 'scan', text: '4006381333931' }, nothing])
    expect(ended('4006381333931', 10, true)).toEqual([nothing, nothing])
    expect(ended('4006381333931', 120)).toEqual([nothing, nothing])
    expect(ended('471108', 10)).toEqual([nothing, nothing])
    expect(ended('', 10)).toEqual([nothing, nothing])
  })

  it('never grows beyond the agent’s limit plus one character', () => {
    const verdict = typing([...'A'.repeat(LONGEST_SCAN + 500), 'Enter'], 1)
    expect(verdict.do === 'scan' && verdict.text.length).toBe(LONGEST_SCAN + 1)
  })

  it('returns exactly the typed text', () => {
    const text = fc.string({ unit: fc.constantFrom(...'ABCXYZ0123456789:/-_.'), minLength: 3, maxLength: 300 })
    fc.assert(
      fc.property(text, fc.integer({ min: 1, max: 200 }), (typed, gap) => {
        expect(typing([...typed, 'Enter'], gap)).toEqual({ do: 'scan', text: typed })
      }),
    )
  })
})
