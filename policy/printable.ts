/** Most marks, such as accents, that follow each other in a text (Unicode Standard Annex #15: stream-safe text). */
export const MARKS_LIMIT = 30

const TOO_MANY_MARKS = new RegExp(String.raw`(?<!\p{M})\p{M}{${MARKS_LIMIT + 1}}`, 'u')

/**
 * True if over 30 marks follow each other. No script needs them. To put n marks in order takes time that grows with n²:
 * 20 s for 200,000.
 */
export function hasTooManyMarks(text: string): boolean {
  return TOO_MANY_MARKS.test(text)
}

/** The text in a form of Unicode. A text with too many marks stays as it is. */
export function normalForm(text: string, form: 'NFC' | 'NFD' | 'NFKC' | 'NFKD' = 'NFC'): string {
  return hasTooManyMarks(text) ? text : text.normalize(form)
}

/**
 * Characters that change how the text around them is shown: controls, line and paragraph ends, and format characters
 * such as marks of writing direction. ZWNJ and ZWJ are not among them, because some scripts and emoji need them
 * (Unicode 15, general categories Cc, Zl, Zp and Cf).
 */
const UNPRINTABLE = /[\p{Cc}\p{Zl}\p{Zp}]|(?![\u200c\u200d])\p{Cf}/u

/** True if the text is one line without characters that change how it is shown. */
export function isPrintable(text: string): boolean {
  return !UNPRINTABLE.test(text)
}

/** Replaces the characters that `isPrintable` refuses by `\u…`, as in JSON. For texts of others in a terminal. */
export function printable(text: string): string {
  return text.replaceAll(new RegExp(UNPRINTABLE, 'gu'), (found) =>
    [...Array(found.length).keys()].map((i) => `\\u${found.charCodeAt(i).toString(16).padStart(4, '0')}`).join(''),
  )
}
