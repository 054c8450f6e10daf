import type { ProtectionEvent } from '../../../policy/protection-events.ts'
import type { ProtectionAction, ItemStatus } from '../../../policy/vocabulary.ts'
import { iso } from '../../platform/operations/fields.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { eventHashId, NAMESPACE, type EpcisEvent, type EventContent } from './event.ts'
import { parseEpc } from '../../../policy/gs1/epc.ts'
import { toGtin14 } from '../../../policy/gs1/gtin.ts'
import { comparableIdentifier } from '../../../policy/item-identifiers.ts'

/*
 * URIs of items, products and places in EPCIS: canonical GS1 Digital Links if a GS1 key is known, otherwise URNs of
 * this cloud.
 */
const GS1 = 'https://id.gs1.org'
/** Location extensions of GS1: 1–20 characters of set 82. */
const EXTENSION = /^[!"%-?A-Z_a-z]{1,20}$/

/** Identifiers of an item. */
interface ItemNames {
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
function productUri(ean: string | null, lot?: string | null): string | undefined {
  const gtin14 = ean === null ? undefined : toGtin14(ean)
  return gtin14 === undefined ? undefined : `${GS1}/01/${gtin14}${lot ? `/10/${escaped(lot)}` : ''}`
}

/** URI of a store. */
function storeUri({ gln, store_id }: Pick<Row<'store'>, 'gln' | 'store_id'>): string {
  return gln === null ? urn('store', store_id) : `${GS1}/414/${gln}`
}

/** URI of a gate, lane, zone or device in a store. */
function placeUri(store: Pick<Row<'store'>, 'gln' | 'store_id'>, place: string): string {
  const extended = store.gln !== null && EXTENSION.test(place)
  return extended
    ? `${GS1}/414/${store.gln}/254/${escaped(place)}`
    : `${urn('place', store.store_id)}:${encodeURIComponent(place)}`
}

/** URI of a device. */
function deviceUri(deviceId: string): string {
  return urn('device', deviceId)
}

/** URI of a purchase as a business transaction. */
function purchaseUri({ gln }: Pick<Row<'store'>, 'gln'>, purchaseId: string): string {
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
function urn(kind: string, name: string): string {
  return `urn:untag:${kind}:${encodeURIComponent(name)}`
}

/**
 * Disposition of each item status in the Core Business Vocabulary (CBV). The `reserved` of CBV is for identifiers,
 * not for goods.
 */
const DISPOSITION: Readonly<Record<ItemStatus, string>> = {
  sellable: 'sellable_accessible',
  paid: 'retail_sold',
  reserved_bopis: 'non_sellable_other',
  picked_up: 'retail_sold',
  returned: 'returned',
  transfer_in_transit: 'in_transit',
  cancelled: 'sellable_accessible',
  exception_hold: 'non_sellable_other',
}

/** Business step of a change to each status. A change from `exception_hold` is always an inspection. */
const STEP: Readonly<Partial<Record<ItemStatus, string>>> = {
  sellable: 'stocking',
  reserved_bopis: 'picking',
  picked_up: 'retail_selling',
  returned: 'receiving',
  transfer_in_transit: 'shipping',
  exception_hold: 'holding',
}

/** Disposition of an item status; undefined for other texts. */
function dispositionOf(status: string | undefined): string | undefined {
  return (DISPOSITION as Record<string, string | undefined>)[status ?? '']
}

/**
 * Business step of a change between two statuses; undefined if CBV has none. Without a change, the tag was removed from
 * the goods.
 */
function stepOf(from: string | null, to: string): string | undefined {
  if (from === null) return 'commissioning'
  if (from === to) return 'decommissioning'
  if (from === 'exception_hold') return 'inspecting'
  if (from === 'transfer_in_transit') return 'receiving'
  return (STEP as Record<string, string | undefined>)[to]
}

type Store = Pick<Row<'store'>, 'store_id' | 'gln'>

const ACTION_STEP: Readonly<Record<ProtectionAction, string>> = {
  detach_hard_tag: 'removing',
  // A deactivated label keeps its number, so the business step is neither `killing` nor `decommissioning`.
  deactivate_label: 'other',
  authorize_exit: 'entering_exiting',
  suppress_alarm: 'entering_exiting',
  unlock_fixture: 'other',
  verify_item_status: 'inspecting',
}
/** Actions on paid goods. These actions set the disposition if the event has no item status. */
const PAID_GOODS_ACTIONS: ReadonlySet<ProtectionAction> = new Set([
  'detach_hard_tag',
  'deactivate_label',
  'authorize_exit',
  'suppress_alarm',
])

/** A paid purchase with its lines, and the items that became paid with it. */
export interface Sold {
  purchase_id: string
  completed_ms: number
  lines: readonly Pick<Row<'purchase_line'>, 'line_id' | 'ean' | 'quantity' | 'deposit_of' | 'weight_grams' | 'lot'>[]
  moves: readonly Row<'item_move'>[]
}

/**
 * Event of a paid purchase. Lists items that have an identifier by this identifier, and other goods by product and
 * quantity. Skips deposits.
 */
export function soldEvent(store: Store, { purchase_id, completed_ms, lines, moves }: Sold): EpcisEvent {
  const epcs: string[] = []
  const namedOf = new Map<string | null, number>()
  for (const move of moves) {
    const uri = itemUri(namesOf(move))
    if (uri === undefined) continue
    epcs.push(uri)
    namedOf.set(move.line_id, (namedOf.get(move.line_id) ?? 0) + 1)
  }
  const quantities = new Map<string, { epcClass: string; quantity: number; uom?: string }>()
  for (const line of lines) {
    const named = namedOf.get(line.line_id) ?? 0
    const epcClass = productUri(line.ean, line.lot)
    if (epcClass === undefined || line.deposit_of !== null || line.quantity <= named) continue
    const isWeighed = line.weight_grams !== null
    const quantity = line.weight_grams === null ? line.quantity - named : (line.weight_grams * line.quantity) / 1_000
    const key = `${epcClass} ${isWeighed ? 'KGM' : ''}`
    const sum = Math.round(((quantities.get(key)?.quantity ?? 0) + quantity) * 1_000) / 1_000
    quantities.set(key, { epcClass, quantity: sum, ...(isWeighed && { uom: 'KGM' }) })
  }
  return identified({
    ...recordedAt(completed_ms),
    ...(epcs.length > 0 || quantities.size === 0 ? { epcList: epcs } : {}),
    ...(quantities.size > 0 && { quantityList: [...quantities.values()] }),
    action: 'OBSERVE',
    bizStep: 'retail_selling',
    disposition: 'retail_sold',
    bizLocation: { id: storeUri(store) },
    bizTransactionList: transactions(store, purchase_id),
  })
}

/**
 * Event of a status change. Undefined for items without an identifier. Also undefined for items that became paid with
 * their purchase, because `soldEvent` contains them.
 */
export function moveEvent(
  store: Store,
  move: Row<'item_move'>,
  purchaseCompletedMs: number | null,
): EpcisEvent | undefined {
  const epc = itemUri(namesOf(move))
  if (epc === undefined || (move.to_status === 'paid' && purchaseCompletedMs === move.at_ms)) return undefined
  const bizStep = stepOf(move.from_status, move.to_status)
  const isTagRemoval = move.from_status === move.to_status
  const disposition = isTagRemoval ? 'inactive' : dispositionOf(move.to_status)
  return identified({
    ...recordedAt(move.at_ms),
    epcList: [epc],
    action: move.from_status === null ? 'ADD' : isTagRemoval ? 'DELETE' : 'OBSERVE',
    ...(bizStep !== undefined && { bizStep }),
    ...(disposition !== undefined && { disposition }),
    bizLocation: { id: storeUri(store) },
    ...(move.purchase_id !== null && { bizTransactionList: transactions(store, move.purchase_id) }),
    'untag:eventId': urn('move', `${move.item_id}.${move.rev}`),
    'untag:itemStatus': move.to_status,
  })
}

/** EPCIS event of a protection event; undefined for types without an EPCIS meaning, such as granted requests. */
export function protectionEvent(store: Store, event: ProtectionEvent, ean: string | null): EpcisEvent | undefined {
  const what = meaningOf(event)
  if (!what) return undefined
  const { bizStep, disposition, exception } = what
  const place = event.gateId ?? event.laneId ?? event.zoneId ?? event.deviceId
  const epc = itemUri(event)
  const epcClass = epc === undefined ? productUri(ean) : undefined
  const reason = /^[a-z]+(?:_[a-z]+)+$/.test(event.reason ?? '') ? event.reason : undefined
  return identified({
    ...occurredTimes(event.occurredAt),
    ...(event.processedAt !== undefined && { recordTime: event.processedAt }),
    ...(epcClass === undefined
      ? { epcList: epc === undefined ? [] : [epc] }
      : { quantityList: [{ epcClass, quantity: 1 }] }),
    action: 'OBSERVE',
    bizStep,
    ...(disposition !== undefined && { disposition }),
    ...(place !== undefined && { readPoint: { id: placeUri(store, place) } }),
    bizLocation: { id: storeUri(store) },
    ...(event.purchaseId !== undefined && { bizTransactionList: transactions(store, event.purchaseId) }),
    ...(exception && {
      sensorElementList: [
        {
          sensorReport: [
            {
              type: `${NAMESPACE}ProtectionAction`,
              exception,
              ...(event.deviceId !== undefined && { deviceID: deviceUri(event.deviceId) }),
              ...(reason !== undefined && { stringValue: reason }),
            },
          ],
        },
      ],
    }),
    'untag:eventId': urn('event', event.eventId),
    ...(event.protectionAction !== undefined && { 'untag:protectionAction': event.protectionAction }),
    ...(event.workflowType !== undefined && { 'untag:workflowType': event.workflowType }),
    ...(event.itemStatus !== undefined && { 'untag:itemStatus': event.itemStatus }),
    ...(reason !== undefined && { 'untag:reason': reason }),
  })
}

interface Meaning {
  bizStep: string
  disposition?: string | undefined
  exception?: 'ALARM_CONDITION' | 'ERROR_CONDITION'
}

function meaningOf({ type, protectionAction, itemStatus }: ProtectionEvent): Meaning | undefined {
  const bizStep = protectionAction === undefined ? 'other' : ACTION_STEP[protectionAction]
  const isPaid = protectionAction !== undefined && PAID_GOODS_ACTIONS.has(protectionAction)
  if (type === 'protection.action.completed')
    return { bizStep, disposition: dispositionOf(itemStatus) ?? (isPaid ? 'retail_sold' : undefined) }
  if (type === 'protection.action.failed')
    return { bizStep, disposition: dispositionOf(itemStatus), exception: 'ERROR_CONDITION' }
  // The item must not leave. Its disposition is not `stolen`, because only staff can decide that.
  if (type === 'protection.authorization.denied' && bizStep === 'entering_exiting')
    return { bizStep, disposition: 'unknown', exception: 'ALARM_CONDITION' }
  if (type === 'protection.exception.raised')
    return { bizStep: 'inspecting', disposition: 'non_sellable_other', exception: 'ALARM_CONDITION' }
  return undefined
}

function identified(content: Omit<EventContent, 'type'>): EpcisEvent {
  const event = { type: 'ObjectEvent' as const, ...content }
  return { eventID: eventHashId(event), ...event }
}

function recordedAt(ms: number): Pick<EventContent, 'eventTime' | 'eventTimeZoneOffset' | 'recordTime'> {
  return { eventTime: iso(ms), eventTimeZoneOffset: '+00:00', recordTime: iso(ms) }
}

/** UTC time and offset of the device's clock, if EPCIS allows that offset. */
function occurredTimes(occurredAt: string): Pick<EventContent, 'eventTime' | 'eventTimeZoneOffset'> {
  const [offset] = /[+-](?:(?:0\d|1[0-3]):[0-5]\d|14:00)$/.exec(occurredAt) ?? []
  return { eventTime: iso(Date.parse(occurredAt)), eventTimeZoneOffset: offset ?? '+00:00' }
}

function transactions(store: Store, purchaseId: string) {
  return [{ type: 'inv', bizTransaction: purchaseUri(store, purchaseId) }]
}

function namesOf({ epc, tag_uid, tag_id }: Row<'item_move'>) {
  return { epc, tagUid: tag_uid, tagId: tag_id }
}
