import type { Json } from './cloud.ts'

/**
 * The rules of the public EPCIS 2.0 JSON schema (github.com/gs1/EPCIS, JSON-Schema/) for ObjectEvents, rewritten by
 * hand. Its licence does not allow a copy here.
 */
const BIZ_STEPS = new Set(
  (
    'accepting arriving assembling collecting commissioning consigning creating_class_instance cycle_counting decommissioning departing destroying disassembling dispensing encoding ' +
    'entering_exiting holding inspecting installing killing loading other packing picking receiving removing repackaging repairing replacing reserving retail_selling shipping ' +
    'staging_outbound stock_taking stocking storing transporting unloading unpacking void_shipping sensor_reporting sampling'
  ).split(' '),
)
const DISPOSITIONS = new Set(
  (
    'active container_closed damaged destroyed dispensed disposed encoded expired in_progress in_transit inactive no_pedigree_match non_sellable_other partially_dispensed recalled reserved ' +
    'retail_sold returned sellable_accessible sellable_not_accessible stolen unknown available completeness_verified completeness_inferred conformant container_open mismatch_instance ' +
    'mismatch_class mismatch_quantity needs_replacement non_conformant unavailable'
  ).split(' '),
)
const TRANSACTION_TYPES = new Set(
  'bol cert desadv inv pedigree po poc prodorder recadv rma testprd testres upevt'.split(' '),
)
const DOCUMENT_FIELDS = new Set([
  '@context',
  'id',
  'type',
  'schemaVersion',
  'creationDate',
  'instanceIdentifier',
  'sender',
  'receiver',
  'epcisHeader',
  'epcisBody',
])
const EVENT_FIELDS = new Set(
  (
    '@context type eventTime recordTime eventTimeZoneOffset eventID errorDeclaration action epcList quantityList bizStep disposition persistentDisposition readPoint bizLocation ' +
    'bizTransactionList sourceList destinationList sensorElementList ilmd'
  ).split(' '),
)

const isUri = (value: unknown) =>
  typeof value === 'string' &&
  /^[A-Za-z][A-Za-z0-9+.-]*:[!#$&-;=?-Z_a-z~%[\]]+$/.test(value) &&
  !/%(?![0-9A-Fa-f]{2})/.test(value)
const isTime = (value: unknown) =>
  typeof value === 'string' &&
  /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(value) &&
  !Number.isNaN(Date.parse(value))
const isOneOfOr = (allowed: ReadonlySet<string>, value: unknown) =>
  allowed.has(String(value)) ||
  (isUri(value) && !/^(urn:epcglobal:cbv|https?:\/\/ns\.gs1\.org\/cbv\/)/.test(String(value)))

/** Violations of an EPCIS document; empty if it matches the schema. */
export function faultsOfDocument(document: Json): string[] {
  const faults: string[] = []
  const must = (holds: boolean, fault: string) => void (holds || faults.push(fault))
  for (const name of ['@context', 'type', 'schemaVersion', 'creationDate', 'epcisBody'])
    must(name in document, `${name} is missing`)
  for (const name of Object.keys(document))
    must(DOCUMENT_FIELDS.has(name) || isUri(name), `${name} is neither known nor a URI`)
  must(document.type === 'EPCISDocument', 'type')
  must(/^\d+(\.\d+)*$/.test(document.schemaVersion), 'schemaVersion')
  must(isTime(document.creationDate), 'creationDate')
  must(Array.isArray(document.epcisBody?.eventList), 'eventList')
  const context: unknown[] = [document['@context']].flat()
  must(
    context.every((each) => isUri(each) || (typeof each === 'object' && each !== null)) &&
      new Set(context).size === context.length,
    '@context',
  )
  const ids = (document.epcisBody?.eventList ?? []).map((event: Json) => event.eventID)
  must(new Set(ids).size === ids.length, 'an eventID is there twice')
  return [
    ...faults,
    ...(document.epcisBody?.eventList ?? []).flatMap((event: Json, i: number) =>
      faultsOfEvent(event).map((fault) => `event ${i}: ${fault}`),
    ),
  ]
}

/** Violations of one ObjectEvent. */
export function faultsOfEvent(event: Json): string[] {
  const faults: string[] = []
  const must = (holds: boolean, fault: string) => void (holds || faults.push(fault))
  const maybe = (name: string, holds: (value: Json) => boolean) => must(!(name in event) || holds(event[name]), name)
  for (const name of Object.keys(event))
    must(EVENT_FIELDS.has(name) || isUri(name), `${name} is neither known nor a URI`)
  must(event.type === 'ObjectEvent', 'type')
  must(isTime(event.eventTime), 'eventTime')
  must(/^[+-]((0[0-9]|1[0-3]):[0-5][0-9]|14:00)$/.test(event.eventTimeZoneOffset), 'eventTimeZoneOffset')
  must(['OBSERVE', 'ADD', 'DELETE'].includes(event.action), 'action')
  maybe('recordTime', isTime)
  maybe('eventID', isUri)
  maybe('epcList', (epcs) => Array.isArray(epcs) && epcs.every(isUri) && new Set(epcs).size === epcs.length)
  maybe('quantityList', (list) => Array.isArray(list) && list.length > 0 && list.every(isQuantity))
  maybe('bizStep', (step) => isOneOfOr(BIZ_STEPS, step))
  maybe('disposition', (disposition) => isOneOfOr(DISPOSITIONS, disposition))
  maybe('readPoint', (place) => isUri(place.id))
  maybe('bizLocation', (place) => isUri(place.id))
  maybe(
    'bizTransactionList',
    (list) =>
      Array.isArray(list) &&
      list.every(
        (each: Json) =>
          isUri(each.bizTransaction) &&
          isOneOfOr(TRANSACTION_TYPES, each.type) &&
          hasOnly(each, ['type', 'bizTransaction']),
      ),
  )
  maybe('sensorElementList', (list) => Array.isArray(list) && list.every(isSensorElement))
  maybe('ilmd', () => event.action === 'ADD')
  must(
    'epcList' in event || 'quantityList' in event || ('sensorElementList' in event && 'readPoint' in event),
    'names no thing',
  )
  return faults
}

function hasOnly(value: Json, names: readonly string[]): boolean {
  return Object.keys(value).every((name) => names.includes(name))
}

function isQuantity(element: Json): boolean {
  const isUnit = element.uom === undefined || /^[A-Z0-9]{2,3}$/.test(element.uom)
  return (
    isUri(element.epcClass) &&
    typeof element.quantity === 'number' &&
    isUnit &&
    hasOnly(element, ['epcClass', 'quantity', 'uom'])
  )
}

function isSensorElement(element: Json): boolean {
  const isReport = (report: Json) =>
    isUri(report.type) &&
    (report.exception === undefined || ['ALARM_CONDITION', 'ERROR_CONDITION'].includes(report.exception)) &&
    (report.deviceID === undefined || isUri(report.deviceID))
  return (
    hasOnly(element, ['sensorMetadata', 'sensorReport']) &&
    Array.isArray(element.sensorReport) &&
    element.sensorReport.length > 0 &&
    element.sensorReport.every(isReport)
  )
}
