import { decode, encode, rfc8949EncodeOptions, Tagged } from 'cborg'

/** CBOR in its core deterministic encoding (RFC 8949 §4.2.1): one value, one spelling. */

/** Shortest forms, sorted keys, no indefinite lengths (RFC 8949 §4.2.1). */
export function encodeCbor(value: unknown): Uint8Array {
  return encode(value, rfc8949EncodeOptions)
}

/** The value of `bytes` (maps as `Map`, the given tag as `Tagged`), or undefined when they are anything but its deterministic encoding. */
export function decodeCbor(bytes: Uint8Array, tag: number): unknown {
  const strict = {
    strict: true,
    useMaps: true,
    rejectDuplicateMapKeys: true,
    allowIndefinite: false,
    tags: Tagged.preserve(tag),
  }
  try {
    const value: unknown = decode(bytes, strict)
    return Buffer.compare(encodeCbor(value), bytes) === 0 ? value : undefined
  } catch {
    return undefined
  }
}
