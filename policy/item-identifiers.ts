import { foldText } from './fold-text.ts'
import { parseEpc } from './gs1/epc.ts'
import { isIdShaped } from './ids.ts'

/** Identifiers of an item, by priority (ADR items). */
export const ITEM_IDENTIFIER_KINDS = ['epc', 'tagUid', 'tagId', 'itemLineId'] as const
export type ItemIdentifierKind = (typeof ITEM_IDENTIFIER_KINDS)[number]

/** Identifiers that a token may name, by priority. A token names the `gtin` only if no item is known. */
export const IDENTIFIER_KINDS = [...ITEM_IDENTIFIER_KINDS, 'gtin'] as const
export type IdentifierKind = (typeof IDENTIFIER_KINDS)[number]

export type ItemIdentifiers = { readonly [kind in ItemIdentifierKind]?: string }
/** True if any identifier is set. */
export function hasItemIdentifier(identifiers: ItemIdentifiers): boolean {
  return ITEM_IDENTIFIER_KINDS.some((kind) => identifiers[kind] !== undefined)
}

/** Identifiers of a request; other fields are ignored. */
export type ItemIdentifierInput = { readonly [kind in ItemIdentifierKind]?: string | undefined }

type NormalisedIdentifiers =
  | { readonly ok: true; readonly identifiers: ItemIdentifiers }
  | { readonly ok: false; readonly field: ItemIdentifierKind; readonly message: string }

interface Rule {
  readonly normalise: (text: string) => string | undefined
  readonly expected: string
}

const RULES: Record<ItemIdentifierKind, Rule> = {
  epc: {
    normalise: (text) => parseEpc(text)?.hex,
    expected:
      '4 to 124 hex digits in groups of 4 with nothing between them (3074257BF7194E4000001A85), ' +
      'or an SGTIN URI (urn:epc:tag:sgtin-96:3.0614141.812345.6789, urn:epc:id:sgtin:0614141.812345.6789)',
  },
  tagUid: {
    normalise: normaliseTagUid,
    expected:
      '4, 7, 8 or 10 bytes in hex, bare (04A2B3C4D5E680) or with ":" or "-" between the bytes (04:A2:B3:C4:D5:E6:80)',
  },
  tagId: {
    normalise: (text) => (/^[\x20-\x7e]{1,128}$/.test(text) && foldText(text) !== '' ? text : undefined),
    expected: '1 to 128 printable ASCII characters, not only blanks',
  },
  itemLineId: {
    normalise: (text) => (isIdShaped(text) ? text : undefined),
    expected: '1 to 128 printable ASCII characters without spaces',
  },
}

/**
 * Normalises the identifiers of a request: `epc` and `tagUid` to upper-case hex; `tagId` and `itemLineId` stay
 * unchanged (ADR items). Reports the first invalid identifier. All may be absent.
 */
export function normaliseIdentifiers(input: ItemIdentifierInput): NormalisedIdentifiers {
  const identifiers: { [kind in ItemIdentifierKind]?: string } = {}
  for (const kind of ITEM_IDENTIFIER_KINDS) {
    const text = input[kind]
    if (text === undefined) continue
    const { normalise, expected } = RULES[kind]
    const normal = normalise(text)
    if (normal === undefined) return { ok: false, field: kind, message: `${kind} is not valid: expected ${expected}` }
    identifiers[kind] = normal
  }
  return { ok: true, identifiers }
}

/**
 * The identifier in the form in which it is compared and hashed. People type tag numbers, so `tagId` is folded; the
 * others are compared as `normaliseIdentifiers` returns them.
 */
export function comparableIdentifier(kind: IdentifierKind, id: string): string {
  return kind === 'tagId' ? foldText(id) : id
}

/** Identifier with the highest priority, for tokens and events. Undefined if there is none. */
export function firstIdentifier(identifiers: ItemIdentifiers): { kind: ItemIdentifierKind; id: string } | undefined {
  for (const kind of ITEM_IDENTIFIER_KINDS) {
    const id = identifiers[kind]
    if (id !== undefined) return { kind, id }
  }
  return undefined
}

/**
 * A UID of ISO 14443-3 has 4, 7 or 10 bytes. A UID of ISO 15693 has 8 bytes. The separators are all equal, or all
 * absent.
 */
function normaliseTagUid(text: string): string | undefined {
  const match = /^[0-9A-F]{2}([:-]?)[0-9A-F]{2}(?:\1[0-9A-F]{2}){2,8}$/i.exec(text)
  if (match === null) return undefined
  const hex = text.replaceAll(/[:-]/g, '').toUpperCase()
  return [8, 14, 16, 20].includes(hex.length) ? hex : undefined
}
