/** Bytes as upper-case hex, two digits each. */
export function hexOfBytes(bytes: Uint8Array): string {
  let text = ''
  for (const byte of bytes) text += byte.toString(16).padStart(2, '0')
  return text.toUpperCase()
}

/** Converts pairs of hex digits; the caller has validated them. */
export function bytesOfHex(hex: string): Uint8Array {
  return Uint8Array.from({ length: hex.length >>> 1 }, (_, i) => Number.parseInt(hex.slice(i * 2, i * 2 + 2), 16))
}
