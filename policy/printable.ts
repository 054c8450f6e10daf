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
