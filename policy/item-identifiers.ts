import { parseEpc } from './gs1/epc.ts'
import { isIdShaped } from './ids.ts'

/** What names one item, in the order in which one of several is chosen (ADR 0043). */
export const ITEM_IDENTIFIER_KINDS = ['epc', 'tagUid', 'tagId', 'itemLineId'] as const
export type ItemIdentifierKind = (typeof ITEM_IDENTIFIER_KINDS)[number]

/** What a token may name, in the same order: last a product, when no item is known. */
export const IDENTIFIER_KINDS = [...ITEM_IDENTIFIER_KINDS, 'gtin'] as const
export type IdentifierKind = (typeof IDENTIFIER_KINDS)[number]

export type ItemIdentifiers = { readonly [kind in ItemIdentifierKind]?: string }
/** Whether any item is named. */
export function hasItemIdentifier(identifiers: ItemIdentifiers): boolean {
  return ITEM_IDENTIFIER_KINDS.some((kind) => identifiers[kind] !== undefined)
}

/** As it comes in with a request: other fields are not looked at. */
export type ItemIdentifierInput = { readonly [kind in ItemIdentifierKind]?: string | undefined }

export type NormalisedIdentifiers =
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
    normalise: (text) => (/^[\x20-\x7e]{1,128}$/.test(text) ? text : undefined),
    expected: '1 to 128 printable ASCII characters',
  },
  itemLineId: {
    normalise: (text) => (isIdShaped(text) ? text : undefined),
    expected: '1 to 128 printable ASCII characters without spaces',
  },
}

/**
 * Brings the item identifiers of a request into the one form in which they are stored, compared and
 * answered: `epc` and `tagUid` as upper-case hex, `tagId` and `itemLineId` as given (ADR 0043).
 * The first bad one is refused, with a message that says what is expected. Whether there has to be one
 * at all is for the caller.
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

/** The identifier that a token or an event names the item by, or undefined when there is none. */
export function firstIdentifier(identifiers: ItemIdentifiers): { kind: ItemIdentifierKind; id: string } | undefined {
  for (const kind of ITEM_IDENTIFIER_KINDS) {
    const id = identifiers[kind]
    if (id !== undefined) return { kind, id }
  }
  return undefined
}

/** ISO 14443-3 UIDs have 4, 7 or 10 bytes, ISO 15693 ones 8. One separator throughout, or none. */
function normaliseTagUid(text: string): string | undefined {
  const match = /^[0-9A-F]{2}([:-]?)[0-9A-F]{2}(?:\1[0-9A-F]{2}){2,8}$/i.exec(text)
  if (match === null) return undefined
  const hex = text.replaceAll(/[:-]/g, '').toUpperCase()
  return [8, 14, 16, 20].includes(hex.length) ? hex : undefined
}
