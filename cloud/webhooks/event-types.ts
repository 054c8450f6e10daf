import { z } from 'zod'
import { assert } from '../../policy/assert.ts'
import { PROTECTION_EVENT_TYPES, ProtectionEvent, type ProtectionEventType } from '../../policy/protection-events.ts'
import { EventId, eventType, STORE, type EventType } from './event-type.ts'
import { INTEGRATION_EVENTS } from './integration-events.ts'
import { LOYALTY_EVENTS } from './loyalty-events.ts'
import { RETAIL_EVENTS } from './retail-events.ts'

const PROTECTION_WHEN: Readonly<Record<ProtectionEventType, string>> = {
  'protection.authorization.requested': 'A device requested the release of a tag or the passage of an exit.',
  'protection.authorization.granted': 'The cloud granted a request of a device.',
  'protection.authorization.denied': 'The cloud denied a request of a device; `reason` is the cause.',
  'protection.action.completed': 'A device has confirmed that the tag is off, or the exit was passed.',
  'protection.action.failed': 'The action of a device failed, or its outcome is unknown.',
  'protection.device.offline': 'A token was redeemed with no connection to the cloud.',
  'protection.exception.raised': 'An exception needs the attention of staff.',
}

const PROTECTION_EVENTS = PROTECTION_EVENT_TYPES.map((name) =>
  eventType(name, {
    minimumPackage: 'GROW',
    freeInSandbox: true,
    when: PROTECTION_WHEN[name],
    data: ProtectionEvent,
    example: {
      type: name,
      eventId: 'evt_01KANX76H8S0V2X4Z6B8D0F2H4',
      occurredAt: '2026-11-20T09:00:00.000Z',
      storeId: STORE,
      deviceId: 'dev_1',
      deviceType: 'exit_gate',
    },
  }),
)

/** Default event of `sendTestWebhook`. */
export const TEST_EVENT = 'webhook.test'

const OWN_EVENTS: readonly EventType[] = [
  eventType(TEST_EVENT, {
    minimumPackage: 'DISCOVER',
    when: 'sendTestWebhook was called. A webhook can receive it without a subscription.',
    data: z.strictObject({ webhookId: EventId.optional(), message: z.string().max(300) }),
    example: { message: 'This is a test.' },
  }),
]

/** Every event of the specification and of untag, by name. */
export const EVENT_TYPES: ReadonlyMap<string, EventType> = new Map(
  [...RETAIL_EVENTS, ...LOYALTY_EVENTS, ...INTEGRATION_EVENTS, ...PROTECTION_EVENTS, ...OWN_EVENTS].map((type) => [
    type.name,
    type,
  ]),
)

/** Throws if an event or its data is not declared. For tests, with `checkAnswers`. */
export function assertEvent({ type, data }: { type: string; data: unknown }): void {
  const declared = EVENT_TYPES.get(type)
  assert(declared, `there is no event "${type}": declare it in cloud/webhooks/event-types.ts`)
  declared.data.parse(data)
}
