import { z } from 'zod'
import { createHash } from 'node:crypto'

/** Namespace of terms that EPCIS does not have. */
export const NAMESPACE = 'urn:untag:epcis:'
/** Prefix of the namespace in documents. */
const PREFIX = 'untag:'
/** JSON-LD context of a document. */
export const CONTEXT = ['https://ref.gs1.org/standards/epcis/2.0.0/epcis-context.jsonld', { untag: NAMESPACE }] as const

const Uri = z.string()
const Place = z.strictObject({ id: Uri })

/** An EPCIS 2.0 event as this cloud writes it: always an ObjectEvent. */
export const EpcisEvent = z.object({
  type: z.literal('ObjectEvent'),
  eventID: z.string().describe('Event hash ID of CBV 2.0 §8.9: the same event has the same id in each export.'),
  eventTime: z.string(),
  eventTimeZoneOffset: z.string(),
  recordTime: z.string().optional(),
  epcList: z.array(Uri).optional(),
  quantityList: z.array(z.strictObject({ epcClass: Uri, quantity: z.number(), uom: z.string().optional() })).optional(),
  action: z.enum(['ADD', 'OBSERVE', 'DELETE']),
  bizStep: z.string().optional(),
  disposition: z.string().optional(),
  readPoint: Place.optional(),
  bizLocation: Place.optional(),
  bizTransactionList: z.array(z.strictObject({ type: z.string(), bizTransaction: Uri })).optional(),
  sensorElementList: z
    .array(
      z.strictObject({
        sensorReport: z.array(
          z.strictObject({
            type: Uri,
            exception: z.enum(['ALARM_CONDITION', 'ERROR_CONDITION']).optional(),
            deviceID: Uri.optional(),
            stringValue: z.string().optional(),
          }),
        ),
      }),
    )
    .optional(),
  'untag:eventId': z.string().optional(),
  'untag:protectionAction': z.string().optional(),
  'untag:workflowType': z.string().optional(),
  'untag:itemStatus': z.string().optional(),
  'untag:reason': z.string().optional(),
})
export type EpcisEvent = z.infer<typeof EpcisEvent>

/** An event without its id. */
export type EventContent = Omit<EpcisEvent, 'eventID'>

/*
 * EPCIS Event Hash ID of the Core Business Vocabulary 2.0 §8.9: the SHA-256 of the values of an event in canonical
 * order. Supports only events that this cloud writes, with canonical URIs and times in UTC with milliseconds. Field
 * order and test vectors follow the reference implementation, github.com/RalphTro/epcis-event-hash-generator.
 */

/** An EPCIS 2.0 event in JSON, without ILMD and error declaration. */
export type HashedEvent = Readonly<Record<string, unknown>> & { type: string }

interface Field {
  name: string
  text(value: unknown): string
}

const VOCABULARY = 'https://ref.gs1.org/cbv/'

const plain = (name: string): Field => ({ name, text: (value) => `${name}=${scalar(value)}` })
/** A term of a standard vocabulary, hashed as its web address. */
const term = (name: string, prefix: string): Field => ({
  name,
  text: (value) => `${name}=${expanded(String(value), prefix)}`,
})
const list = (name: string, item: (value: unknown) => string): Field => ({
  name,
  text: (value) => name + sorted((value as unknown[]).map(item)),
})
const part = (name: string, fields: readonly Field[]): Field => ({
  name,
  text: (value) => name + inOrder(value as object, fields),
})

const QUANTITY = [plain('epcClass'), plain('quantity'), plain('uom')]
const TRANSACTION = [term('type', `${VOCABULARY}BTT-`), plain('bizTransaction')]
const PLACE = [plain('id')]
const METADATA = [
  'time',
  'startTime',
  'endTime',
  'deviceID',
  'deviceMetadata',
  'rawData',
  'dataProcessingMethod',
  'bizRules',
].map(plain)
const REPORT: Field[] = [
  plain('type'),
  term('exception', 'https://gs1.org/voc/'),
  ...[
    'deviceID',
    'deviceMetadata',
    'rawData',
    'dataProcessingMethod',
    'time',
    'microorganism',
    'chemicalSubstance',
    'value',
  ].map(plain),
  term('component', `${VOCABULARY}Comp-`),
  ...[
    'stringValue',
    'booleanValue',
    'hexBinaryValue',
    'uriValue',
    'minValue',
    'maxValue',
    'meanValue',
    'sDev',
    'percRank',
    'percValue',
    'uom',
    'coordinateReferenceSystem',
  ].map(plain),
]
const SENSOR: Field[] = [
  part('sensorMetadata', METADATA),
  {
    name: 'sensorReport',
    text: (value) => sorted((value as object[]).map((report) => `sensorReport${inOrder(report, REPORT)}`)),
  },
]

const EVENT: Field[] = [
  plain('eventTime'),
  plain('eventTimeZoneOffset'),
  list('epcList', (epc) => `epc=${scalar(epc)}`),
  list('quantityList', (element) => `quantityElement${inOrder(element as object, QUANTITY)}`),
  plain('action'),
  term('bizStep', `${VOCABULARY}BizStep-`),
  term('disposition', `${VOCABULARY}Disp-`),
  part('readPoint', PLACE),
  part('bizLocation', PLACE),
  list('bizTransactionList', (transaction) => inOrder(transaction as object, TRANSACTION)),
  list('sensorElementList', (element) => `sensorElement${inOrder(element as object, SENSOR)}`),
]
/** Fields that the hash does not include. */
const NOT_HASHED = new Set(['type', 'eventID', 'recordTime', '@context'])

/** Text to hash: the values of an event in canonical order, without separators. */
export function preHash(
  event: HashedEvent,
  namespaces: Readonly<Record<string, string>> = { [PREFIX]: NAMESPACE },
): string {
  const known = new Set(EVENT.map((field) => field.name))
  const others = Object.keys(event).filter((name) => !known.has(name) && !NOT_HASHED.has(name))
  return `eventType=${event.type}${inOrder(event, EVENT)}${sorted(others.flatMap((name) => extension(name, event[name], namespaces)))}`
}

/** Hash id of an event. */
export function eventHashId(event: HashedEvent, namespaces?: Readonly<Record<string, string>>): string {
  return `ni:///sha-256;${createHash('sha256').update(preHash(event, namespaces)).digest('hex')}?ver=CBV2.0`
}

function inOrder(value: object, fields: readonly Field[]): string {
  return fields
    .map(({ name, text }) => {
      const found = (value as Record<string, unknown>)[name]
      return found === undefined || (Array.isArray(found) && found.length === 0) ? '' : text(found)
    })
    .join('')
}

/** Sorts by bytes, independent of locale. */
function sorted(texts: readonly string[]): string {
  return texts
    .map((text) => Buffer.from(text))
    .sort(Buffer.compare)
    .map(String)
    .join('')
}

function scalar(value: unknown): string {
  return String(value).trim()
}

function expanded(term: string, prefix: string): string {
  return term.includes(':') ? term : `${prefix}${term}`
}

/** A field outside of EPCIS, with its full namespace. If the value is a list, the field is repeated for each entry. */
function extension(name: string, value: unknown, namespaces: Readonly<Record<string, string>>): string[] {
  if (Array.isArray(value)) return value.flatMap((each) => extension(name, each, namespaces))
  const at = name.indexOf(':') + 1
  const key = `{${namespaces[name.slice(0, at)] ?? name.slice(0, at)}}${name.slice(at)}`
  if (typeof value !== 'object' || value === null) return [`${key}=${scalar(value)}`]
  return [key + sorted(Object.entries(value).flatMap(([inner, each]) => extension(inner, each, namespaces)))]
}
