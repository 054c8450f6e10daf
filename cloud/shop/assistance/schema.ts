import { z } from 'zod'
import { lines } from '../../platform/operations/fields.ts'

export const MESSAGE_LENGTH = 500
export const MESSAGES_LIMIT = 50

/** Message of a shopper or of staff; must not be blank. */
export const Message = lines(MESSAGE_LENGTH).refine((message) => message.trim() !== '', 'must not be blank')

/** `open` waits for staff. `answered` waits for the shopper. `closed` is final. */
export const REQUEST_STATUSES = ['open', 'answered', 'closed'] as const

export const Zone = z.strictObject({
  zoneId: z.string(),
  name: z.string(),
  url: z.string().describe('Address in the zone’s QR code.'),
  createdAt: z.string(),
})

export const AssistanceRequest = z.strictObject({
  requestId: z.string(),
  storeId: z.string(),
  reason: z
    .enum(['shopper', 'manual_assistance_required', 'exception_hold', 'alarm'])
    .describe(
      'A shopper asked for help, a tag needs staff, goods on hold are at a gate, or staff called colleagues to an alarm.',
    ),
  status: z.enum(REQUEST_STATUSES),
  zoneId: z.string().optional(),
  zoneName: z.string().optional(),
  userId: z.string().optional(),
  deviceId: z.string().optional(),
  deviceName: z.string().optional().describe('Name of the device, else of its gate.'),
  eventId: z.string().optional().describe('Event of the alarm.'),
  requestedByName: z.string().optional().describe('User who called colleagues to the alarm.'),
  purchaseId: z.string().optional(),
  createdAt: z.string(),
  updatedAt: z.string(),
  messages: z.array(z.strictObject({ author: z.enum(['shopper', 'staff']), text: z.string(), at: z.string() })),
})
export type AssistanceRequest = z.infer<typeof AssistanceRequest>
