import { z } from 'zod'

/** Namespace of terms that EPCIS does not have. */
export const NAMESPACE = 'urn:untag:epcis:'
/** Prefix of the namespace in documents. */
export const PREFIX = 'untag:'
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
