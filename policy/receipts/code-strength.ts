/** Random bits that a printed code needs to release labels (ADR till-sales). */
const RELEASE_CODE_BITS = 40

/** A date of this century, with the time after it: tills begin their numbers with it. */
const DATE =
  /(?:20\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])|(?:0[1-9]|[12]\d|3[01])(?:0[1-9]|1[0-2])20\d\d)(?:(?:[01]\d|2[0-3])[0-5]\d(?:[0-5]\d)?)?/g
/** From this length on, equal, rising or falling characters such as 0000 and 1234 count once. */
const SEQUENCE = 4
const FEWEST_DIFFERENT = 5
/** Letters count like digits, because a name with a number, such as TILL3N4711, has both. Letters alone may be words. */
const CHARACTER_BITS = Math.log2(10)
const LETTER_BITS = 2

/**
 * Random bits of a code that a till printed, judged by its text: the characters of its longest group of letters and
 * digits, each as a digit. So 13 characters are 40 bits. Counts too little rather than too much:
 *
 *   dates ─▶ 0   sequences ─▶ one character   under 5 different characters ─▶ 0   letters without a digit ─▶ 2 bits each
 */
export function codeBits(code: string): number {
  return Math.max(...code.split(/[^0-9A-Za-z]+/).map(bitsOfGroup))
}

/**
 * True if the code of a sale may release labels by their product, and not only open a barrier. The policy promises that
 * the shop's tills print random codes. The text alone cannot prove it, but refuses what cannot be random.
 */
export function releasesByCode(setting: 'barrier' | 'release', code: string): boolean {
  return setting === 'release' && codeBits(code) >= RELEASE_CODE_BITS
}

function bitsOfGroup(group: string): number {
  const text = withoutSequences(group.replaceAll(DATE, ''))
  if (new Set(text).size < FEWEST_DIFFERENT) return 0
  return text.length * (/\d/.test(text) ? CHARACTER_BITS : LETTER_BITS)
}

function withoutSequences(text: string): string {
  let counted = ''
  for (let i = 0; i < text.length;) {
    counted += text[i]
    const length = sequenceAt(text, i)
    i += length < SEQUENCE ? 1 : length
  }
  return counted
}

/** Length of the equal, rising or falling characters from `start`. */
function sequenceAt(text: string, start: number): number {
  const stepAt = (i: number) => text.charCodeAt(i + 1) - text.charCodeAt(i)
  const step = stepAt(start)
  if (!(Math.abs(step) <= 1)) return 1
  let end = start
  while (stepAt(end) === step) end++
  return end - start + 1
}
