import { parseEpc } from '../../policy/gs1/epc.ts'
import { toGtin14 } from '../../policy/gs1/gtin.ts'
import type { StoreRow } from '../persistence/tables/stores.ts'

/*
 * What things, products and places are called in EPCIS: canonical GS1 Digital Links where a GS1 key is known, else URNs of our own.
 */
const GS1 = 'https://id.gs1.org'
/** What may stand as the extension of a location: 1–20 characters of GS1 set 82. */
const EXTENSION = /^[!"%-?A-Z_a-z]{1,20}$/

/** Names under which an item was known. */
export interface ItemNames {
  epc?: string | null | undefined
  tagUid?: string | null | undefined
  tagId?: string | null | undefined
}

/** The name of one item: of its SGTIN, else of whatever its tag says; undefined for one without a name. */
export function itemUri({ epc, tagUid, tagId }: ItemNames): string | undefined {
  const { gtin14, serial } = (epc && parseEpc(epc)) || {}
  if (gtin14 !== undefined && serial !== undefined) return `${GS1}/01/${gtin14}/21/${escaped(serial)}`
  if (epc) return urn('epc', epc)
  if (tagUid) return urn('uid', tagUid)
  return tagId ? urn('tag', tagId) : undefined
}

/** The name of a product, by its EAN; undefined where it has none. */
export function productUri(ean: string | null): string | undefined {
  const gtin14 = ean === null ? undefined : toGtin14(ean)
  return gtin14 === undefined ? undefined : `${GS1}/01/${gtin14}`
}

/** Where a store is. */
export function storeUri({ gln, store_id }: Pick<StoreRow, 'gln' | 'store_id'>): string {
  return gln === null ? urn('store', store_id) : `${GS1}/414/${gln}`
}

/** A gate, lane, zone or device of a store. */
export function placeUri(store: Pick<StoreRow, 'gln' | 'store_id'>, place: string): string {
  const extended = store.gln !== null && EXTENSION.test(place)
  return extended
    ? `${GS1}/414/${store.gln}/254/${escaped(place)}`
    : `${urn('place', store.store_id)}:${encodeURIComponent(place)}`
}

/** A device. */
export function deviceUri(deviceId: string): string {
  return urn('device', deviceId)
}

/** A purchase as a business transaction. */
export function purchaseUri({ gln }: Pick<StoreRow, 'gln'>, purchaseId: string): string {
  return gln === null ? urn('purchase', purchaseId) : `urn:epcglobal:cbv:bt:${gln}:${encodeURIComponent(purchaseId)}`
}

/** As GS1's own tools write a value into a Digital Link: other spellings of one name are other names, with other hashes of their events. */
function escaped(value: string): string {
  return encodeURIComponent(value).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.codePointAt(0)?.toString(16).toUpperCase()}`,
  )
}

/** A name of our own. */
export function urn(kind: string, name: string): string {
  return `urn:untag:${kind}:${encodeURIComponent(name)}`
}
