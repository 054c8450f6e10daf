import { describe, expect, it } from 'vitest'
import { lines, scanned, text } from '../../cloud/platform/operations/fields.ts'
import { isPrintable, printable } from '../../policy/printable.ts'

/** Characters that change how a row is shown, by the names of Unicode. */
const BAD = {
  'line feed': '\n',
  'carriage return': '\r',
  tab: '\t',
  NUL: '\u0000',
  delete: '\u007f',
  'control sequence introducer (C1)': '\u009b',
  'next line (C1)': '\u0085',
  'line separator': '\u2028',
  'paragraph separator': '\u2029',
  'right-to-left override': '\u202e',
  'right-to-left isolate': '\u2067',
  'right-to-left mark': '\u200f',
  'Arabic letter mark': '\u061c',
  'zero width no-break space': '\ufeff',
  'zero width space': '\u200b',
  'soft hyphen': '\u00ad',
  'language tag': '\u{e0041}',
}

describe.each(Object.entries(BAD))('a text with a %s', (name, character) => {
  const value = `web${character}key_1  revoked`
  const isSpace = ['line feed', 'carriage return', 'tab'].includes(name)

  it('is refused in a name, and in a note unless it is a line end or a tab', () => {
    expect([isPrintable(value), text(80).safeParse(value).success]).toEqual([false, false])
    expect(lines(80).safeParse(value).success).toBe(isSpace)
  })

  it('is escaped by the command line', () => {
    const shown = printable(value)
    expect(isPrintable(shown)).toBe(true)
    expect(JSON.parse(`"${shown}"`)).toBe(value)
  })
})

describe('a text', () => {
  it.each(['Müller & Söhne', '日本', '👩‍👧', 'می‌خواهم', '“Herren, 1. Stock”', 'a\u00a0b'])('keeps %s', (value) => {
    expect([text(80).parse(value), printable(value)]).toEqual([value, value])
  })

  it('is stored in NFC', () => {
    expect(text(80).parse('Go\u0308tz')).toBe('Götz')
    expect(lines(80).parse('Go\u0308tz\n')).toBe('Götz\n')
  })

  it('has at most 30 marks on a letter', () => {
    const marks = (count: number) => `a${'\u0316'.repeat(count)}`
    expect([text(80).safeParse(marks(30)).success, text(80).safeParse(marks(31)).success]).toEqual([true, false])
    expect([lines(80).safeParse(marks(30)).success, lines(80).safeParse(marks(31)).success]).toEqual([true, false])
  })

  it('of a reader may end with a line end', () => {
    expect(scanned(80).parse('4006381333931\r\n')).toBe('4006381333931\r\n')
    expect(scanned(80).safeParse('a\u0000').success).toBe(false)
  })
})
