import { parseEpc } from '../../policy/gs1/epc.ts'
import { toGtin14 } from '../../policy/gs1/gtin.ts'
import { comparableIdentifier } from '../../policy/item-identifiers.ts'
import type { StoreRow } from '../persistence/tables/stores.ts'

/*
 * URIs of items, products and places in EPCIS: canonical GS1 Digital Links if a GS1 key is known, otherwise URNs of
 * this cloud.
 */
const GS1 = 'https://id.gs1.org'
/** Location extensions of GS1: 1–20 characters of set 82. */
const EXTENSION = /^[!"%-?A-Z_a-z]{1,20}$/

/** Identifiers of an item. */
export interface ItemNames {
  epc?: string | null | undefined
  tagUid?: string | null | undefined
  tagId?: string | null | undefined
}

/** URI of an item, from its SGTIN or another identifier; undefined without identifiers. */
export function itemUri({ epc, tagUid, tagId }: ItemNames): string | undefined {
  const { gtin14, serial } = (epc && parseEpc(epc)) || {}
  if (gtin14 !== undefined && serial !== undefined) return `${GS1}/01/${gtin14}/21/${escaped(serial)}`
  if (epc) return urn('epc', epc)
  if (tagUid) return urn('uid', tagUid)
  // Receivers compare URIs character by character, so all spellings of a tag number have one URI.
  return tagId ? urn('tag', comparableIdentifier('tagId', tagId)) : undefined
}

/** URI of a product, or of a lot of it; undefined without EAN. */
export function productUri(ean: string | null, lot?: string | null): string | undefined {
  const gtin14 = ean === null ? undefined : toGtin14(ean)
  return gtin14 === undefined ? undefined : `${GS1}/01/${gtin14}${lot ? `/10/${escaped(lot)}` : ''}`
}

/** URI of a store. */
export function storeUri({ gln, store_id }: Pick<StoreRow, 'gln' | 'store_id'>): string {
  return gln === null ? urn('store', store_id) : `${GS1}/414/${gln}`
}

/** URI of a gate, lane, zone or device in a store. */
export function placeUri(store: Pick<StoreRow, 'gln' | 'store_id'>, place: string): string {
  const extended = store.gln !== null && EXTENSION.test(place)
  return extended
    ? `${GS1}/414/${store.gln}/254/${escaped(place)}`
    : `${urn('place', store.store_id)}:${encodeURIComponent(place)}`
}

/** URI of a device. */
export function deviceUri(deviceId: string): string {
  return urn('device', deviceId)
}

/** URI of a purchase as a business transaction. */
export function purchaseUri({ gln }: Pick<StoreRow, 'gln'>, purchaseId: string): string {
  return gln === null ? urn('purchase', purchaseId) : `urn:epcglobal:cbv:bt:${gln}:${encodeURIComponent(purchaseId)}`
}

/** Escapes a value like GS1's tools do. Another spelling would be another URI and would change the event hash. */
function escaped(value: string): string {
  return encodeURIComponent(value).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.codePointAt(0)?.toString(16).toUpperCase()}`,
  )
}

/** URN of this cloud. */
export function urn(kind: string, name: string): string {
  return `urn:untag:${kind}:${encodeURIComponent(name)}`
}
