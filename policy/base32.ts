/**
 * Base32 alphabets. Receipt tokens use RFC 4648 (A–Z, 2–7), because every keyboard-wedge scanner types these
 * characters. Ids, and codes that people read aloud, use Crockford's alphabet.
 */
const RFC4648 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'
const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

function encode(alphabet: string, bytes: Uint8Array): string {
  let text = ''
  let buffer = 0
  let bits = 0
  for (const byte of bytes) {
    buffer = (buffer << 8) | byte
    bits += 8
    while (bits >= 5) {
      bits -= 5
      text += alphabet[(buffer >> bits) & 31]
    }
    buffer &= (1 << bits) - 1
  }
  return bits === 0 ? text : text + alphabet[(buffer << (5 - bits)) & 31]
}

function decode(alphabet: string, text: string): Uint8Array | undefined {
  const bytes = new Uint8Array(Math.floor((text.length * 5) / 8))
  let buffer = 0
  let bits = 0
  let at = 0
  for (const char of text) {
    const value = alphabet.indexOf(char)
    if (value < 0) return undefined
    buffer = (buffer << 5) | value
    bits += 5
    if (bits >= 8) {
      bits -= 8
      bytes[at++] = (buffer >> bits) & 255
      buffer &= (1 << bits) - 1
    }
  }
  // Rejects other spellings of the same value: a superfluous character at the end, or padding bits that are not 0.
  return bits < 5 && buffer === 0 ? bytes : undefined
}

/** RFC 4648 §6, upper case, no padding. */
export const base32 = {
  encode: (bytes: Uint8Array): string => encode(RFC4648, bytes),
  /** Accepts only the form that `encode` writes; undefined for other texts. */
  decode: (text: string): Uint8Array | undefined => decode(RFC4648, text),
}

/** Crockford's alphabet: no I, L, O, U. */
export const crockford = {
  encode: (bytes: Uint8Array): string => encode(CROCKFORD, bytes),
  decode: (text: string): Uint8Array | undefined => decode(CROCKFORD, text),
}
