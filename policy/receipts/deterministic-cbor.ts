import { decode, encode, rfc8949EncodeOptions, Tagged } from 'cborg'

/** Encodes core deterministic CBOR (RFC 8949 §4.2.1): shortest forms, sorted keys, definite lengths. */
export function encodeCbor(value: unknown): Uint8Array {
  return encode(value, rfc8949EncodeOptions)
}

/** Decodes deterministic CBOR: maps as `Map`, `tag` as `Tagged`. Undefined for any other encoding. */
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
