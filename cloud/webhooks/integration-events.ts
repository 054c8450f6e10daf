import { z } from 'zod'
import { Count, EventId, eventType, STORE, type EventType } from './event-type.ts'

const System = { storeId: EventId, system: z.string().max(40) }
const Pushed = z.strictObject({ ...System, dataType: z.string().max(60), pushed: Count, failed: Count.optional() })
const pushedExample = { storeId: STORE, system: 'generic', dataType: 'transactions', pushed: 42 }

/** Events of connections to merchants' systems. */
export const INTEGRATION_EVENTS: readonly EventType[] = [
  eventType('integration.pos.synced', {
    minimumPackage: 'GROW',
    when: 'syncPOS has read the till system.',
    data: z.strictObject({
      ...System,
      synced: z.strictObject({ products: Count, categories: Count, priceUpdates: Count }),
      failed: Count.optional(),
    }),
    example: { storeId: STORE, system: 'generic', synced: { products: 120, categories: 8, priceUpdates: 3 } },
  }),
  eventType('integration.pos.pushed', {
    minimumPackage: 'GROW',
    when: 'pushToPOS has written to the till system.',
    data: Pushed,
    example: pushedExample,
  }),
  eventType('integration.erp.synced', {
    minimumPackage: 'GROW',
    when: 'syncERP has read the ERP system.',
    data: z.strictObject({
      ...System,
      synced: z.strictObject({ stock: Count, orders: Count, suppliers: Count }),
      failed: Count.optional(),
    }),
    example: { storeId: STORE, system: 'generic', synced: { stock: 120, orders: 4, suppliers: 2 } },
  }),
  eventType('integration.erp.pushed', {
    minimumPackage: 'GROW',
    when: 'pushToERP has written to the ERP system.',
    data: Pushed,
    example: pushedExample,
  }),
  eventType('integration.psp.configured', {
    minimumPackage: 'GROW',
    when: 'configurePSP has set the payment provider of a store.',
    data: z.strictObject({ storeId: EventId, provider: z.string().max(40) }),
    example: { storeId: STORE, provider: 'custom' },
  }),
]
