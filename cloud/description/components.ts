import { z } from 'zod'
import { Product } from '../catalogue/schema.ts'
import { Device } from '../protection/devices/device-operations.ts'
import { CheckoutLine, Purchase, TransactionData } from '../purchases/schema.ts'
import { Store, StoreMasterData } from '../stores/schema.ts'

/**
 * Schemas that the description defines once and references. Other schemas name themselves with `.meta({ id: 'Offer' })`.
 */
const SHARED = { Store, StoreMasterData, Product, Device, CheckoutLine, Purchase, TransactionData }

/** Registers the names of the shared schemas. Idempotent. */
export function nameSharedSchemas(): void {
  for (const [id, schema] of Object.entries(SHARED))
    if (z.globalRegistry.get(schema)?.id === undefined) z.globalRegistry.add(schema, { id })
}

/** Object schemas with a name, by name. */
export function namedObjects(): Map<string, z.ZodObject> {
  const named = new Map<string, z.ZodObject>()
  for (const [id, schema] of z.globalRegistry._idmap) if (schema instanceof z.ZodObject) named.set(id, schema)
  return named
}
