import { z } from 'zod'
import { Product } from '../catalogue/schema.ts'
import { Device } from '../protection/devices/device-operations.ts'
import { CheckoutLine, Purchase, TransactionData } from '../purchases/schema.ts'
import { Store, StoreMasterData } from '../stores/schema.ts'

/**
 * Schemas that the description names once and refers to, instead of copying them. A schema can also name itself where it is
 * declared, with `.meta({ id: 'Offer' })`.
 */
const SHARED = { Store, StoreMasterData, Product, Device, CheckoutLine, Purchase, TransactionData }

/** Names the shared schemas; again is no harm. */
export function nameSharedSchemas(): void {
  for (const [id, schema] of Object.entries(SHARED))
    if (z.globalRegistry.get(schema)?.id === undefined) z.globalRegistry.add(schema, { id })
}

/** Every object schema with a name, by that name. */
export function namedObjects(): Map<string, z.ZodObject> {
  const named = new Map<string, z.ZodObject>()
  for (const [id, schema] of z.globalRegistry._idmap) if (schema instanceof z.ZodObject) named.set(id, schema)
  return named
}
