import { describe, expect, test } from 'vitest'
import { itemHash } from '../../../policy/documents/authorization.ts'
import {
  firstIdentifier,
  IDENTIFIER_KINDS,
  normaliseIdentifiers,
  type ItemIdentifierInput,
  type IdentifierKind,
  type ItemIdentifierKind,
} from '../../../policy/item-identifiers.ts'
import { receiptEntry } from '../../../policy/receipts/receipt-claims.ts'

test('identifier kinds have the priority of the API', () => {
  expect(IDENTIFIER_KINDS).toEqual(['epc', 'tagUid', 'tagId', 'itemLineId', 'gtin'])
})

describe('normaliseIdentifiers', () => {
  test.each<[ItemIdentifierKind, string, string]>([
    ['epc', '3074257bf7194e4000001a85', '3074257BF7194E4000001A85'],
    ['epc', 'urn:epc:tag:sgtin-96:3.0614141.812345.6789', '3074257BF7194E4000001A85'],
    ['epc', 'urn:epc:id:sgtin:0614141.812345.6789', '3034257BF7194E4000001A85'],
    ['epc', 'dead', 'DEAD'],
    ['tagUid', '04a2b3c4', '04A2B3C4'],
    ['tagUid', '04:a2:b3:c4:d5:e6:80', '04A2B3C4D5E680'],
    ['tagUid', 'E0-04-01-00-12-34-56-78', 'E004010012345678'],
    ['tagUid', '04A2B3C4D5E680112233', '04A2B3C4D5E680112233'],
    ['tagId', ' Tuer', ' Tuer'],
    ['tagId', 'a', 'a'],
    ['tagId', '~'.repeat(128), '~'.repeat(128)],
    ['itemLineId', 'iln_01JD/e', 'iln_01JD/e'],
  ])('%s %s', (kind, input, normal) => {
    expect(normaliseIdentifiers({ [kind]: input })).toEqual({ ok: true, identifiers: { [kind]: normal } })
  })

  test.each<[ItemIdentifierKind, string]>([
    ['epc', ''],
    ['epc', '307'],
    ['epc', '3074 257B'],
    ['epc', 'urn:epc:tag:sgtin-96:3.0614141.812345.06789'],
    ['tagUid', ''],
    ['tagUid', '04A2B3'],
    ['tagUid', '04A2B3C4D5'],
    ['tagUid', '04A2B3C4D5E6'],
    ['tagUid', '04A2B3C4D5E6801122'],
    ['tagUid', '04A2B3C4D5E68011223344'],
    ['tagUid', '04A2B3C'],
    ['tagUid', '04:A2-B3:C4'],
    ['tagUid', '04:A2B3:C4'],
    ['tagUid', '04A2:B3C4'],
    ['tagUid', ':04:A2:B3:C4'],
    ['tagUid', '04:A2:B3:C4:'],
    ['tagUid', '04 A2 B3 C4'],
    ['tagUid', '04A2B3CG'],
    ['tagId', ''],
    ['tagId', 'x'.repeat(129)],
    ['tagId', 'Tür'],
    ['tagId', 'a\n'],
    ['tagId', '   '],
    ['itemLineId', ''],
    ['itemLineId', 'a b'],
    ['itemLineId', 'x'.repeat(129)],
  ])('refuses %s %j', (kind, input) => {
    const refused = normaliseIdentifiers({ [kind]: input })
    expect(refused).toMatchObject({ ok: false, field: kind })
    expect(!refused.ok && refused.message).toMatch(new RegExp(`^${kind} is not valid: expected .{20}`))
  })

  test('normalises several identifiers, omits absent ones and ignores other fields', () => {
    const request = { itemLineId: 'l1', tagUid: '04a2b3c4', epc: undefined, storeId: 'x y' } as ItemIdentifierInput
    expect(normaliseIdentifiers(request)).toStrictEqual({
      ok: true,
      identifiers: { tagUid: '04A2B3C4', itemLineId: 'l1' },
    })
    expect(normaliseIdentifiers({})).toStrictEqual({ ok: true, identifiers: {} })
  })

  test('reports the first invalid identifier by priority', () => {
    expect(normaliseIdentifiers({ itemLineId: '', tagUid: 'x', epc: 'DEAD' })).toMatchObject({
      ok: false,
      field: 'tagUid',
    })
  })

  test('leaves normalised identifiers unchanged', () => {
    const input = { epc: '3074257BF7194E4000001A85', tagUid: '04A2B3C4', tagId: ' t', itemLineId: 'l' }
    expect(normaliseIdentifiers(input)).toEqual({ ok: true, identifiers: input })
  })
})

test('firstIdentifier uses the priority, not the order of the fields', () => {
  expect(firstIdentifier({ itemLineId: 'l', tagId: 't', tagUid: '04A2B3C4', epc: 'DEAD' })).toEqual({
    kind: 'epc',
    id: 'DEAD',
  })
  expect(firstIdentifier({ itemLineId: 'l', tagId: 't', tagUid: '04A2B3C4' })).toEqual({
    kind: 'tagUid',
    id: '04A2B3C4',
  })
  expect(firstIdentifier({ itemLineId: 'l', tagId: 't' })).toEqual({ kind: 'tagId', id: 't' })
  expect(firstIdentifier({ itemLineId: 'l' })).toEqual({ kind: 'itemLineId', id: 'l' })
  expect(firstIdentifier({})).toBeUndefined()
})

test('hashes in tokens and receipts are equal for every spelling of a tag number, and only of a tag number', () => {
  const cti = new Uint8Array(16)
  const hashes = (kind: IdentifierKind, id: string) => [
    itemHash('dev_1', 'nonce', kind, id),
    Buffer.from(receiptEntry(cti, kind, id)).toString('hex'),
  ]
  for (const typed of ['ht 20-931', ' HT  20-931 '])
    expect(hashes('tagId', typed)).toEqual(hashes('tagId', 'HT 20-931'))
  expect(hashes('tagId', 'HT20-931')).not.toEqual(hashes('tagId', 'HT 20-931'))
  expect(hashes('itemLineId', 'iln_a')).not.toEqual(hashes('itemLineId', 'ILN_A'))
})
