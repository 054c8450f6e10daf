import fc from 'fast-check'

const BLANKS = [' ', '  ', '\u2009', '\u00A0', '\u3000'] as const
/** Characters whose case or Unicode form changes in an unusual way. */
const UNUSUAL = ['ß', 'ẞ', 'ö', 'É', 'ı', 'ǰ', 'ς', 'ﬁ', 'Å', 'ự']

/** Texts that people may type for a category or brand: words of any characters, with single blanks, in NFC. */
export const anyTypedText: fc.Arbitrary<string> = fc
  .array(
    fc.array(fc.oneof(fc.constantFrom(...UNUSUAL), fc.string({ unit: 'grapheme', minLength: 1, maxLength: 3 })), {
      minLength: 1,
      maxLength: 4,
    }),
    { minLength: 1, maxLength: 3 },
  )
  .map((words) => words.map((word) => word.join('')).join(' '))
  .map((text) => text.normalize('NFC').replaceAll(/\s+/gu, ' ').trim())
  .filter((text) => text !== '')

/** The same text in other case, with other blanks, or in another Unicode form. */
export const anyVariantOf = (text: string): fc.Arbitrary<string> =>
  fc
    .record({
      recase: fc.constantFrom<(typed: string) => string>(
        (typed) => typed,
        (typed) => typed.toUpperCase(),
        (typed) => typed.toLowerCase(),
      ),
      form: fc.constantFrom('NFC', 'NFD'),
      blanks: fc.array(fc.constantFrom(...BLANKS), { minLength: 8, maxLength: 8 }),
      isPadded: fc.boolean(),
    })
    .map(({ recase, form, blanks, isPadded }) => {
      const inner = text.split(' ').reduce((whole, word, i) => `${whole}${blanks[i % blanks.length] ?? ' '}${word}`)
      return recase(isPadded ? `${blanks[0] ?? ''}${inner}${blanks[1] ?? ''}` : inner).normalize(form)
    })
