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
