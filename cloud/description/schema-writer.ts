import { z } from 'zod'
import { nameSharedSchemas, namedObjects } from './components.ts'
import type { JsonSchema } from '../../policy/json-schema.ts'
import { schemaWriter, type SchemaDirection, type SchemaWriter } from '../../policy/schema-writer.ts'

/** Minimum number of fields of a shared schema that responses reference as their base. */
const WORTH_SHARING = 3

/**
 * Makes a writer. If a response extends a shared schema, the writer describes the response as this schema plus further
 * fields.
 */
export function apiSchemaWriter(): SchemaWriter {
  nameSharedSchemas()
  const { components, write: plain } = schemaWriter()

  function write(schema: z.ZodType, io: SchemaDirection): JsonSchema {
    const base = io === 'output' ? baseOf(schema) : undefined
    if (!base) return plain(schema, io)
    const more = plain(base.rest, io)
    return { allOf: [plain(base.shared, io), ...(Object.keys(more.properties ?? {}).length > 0 ? [more] : [])] }
  }

  return { components, write }
}

/** Finds the largest shared schema whose fields are all in this schema, and the further fields of this schema. */
function baseOf(schema: z.ZodType): { shared: z.ZodObject; rest: z.ZodObject } | undefined {
  if (!(schema instanceof z.ZodObject) || schema._zod.def.checks) return undefined
  const shape = schema.shape as Record<string, unknown>
  let best: z.ZodObject | undefined
  for (const shared of namedObjects().values()) {
    const fields = Object.entries(shared.shape)
    if (shared === schema || fields.length < WORTH_SHARING || fields.length <= Object.keys(best?.shape ?? {}).length)
      continue
    if (fields.every(([name, field]) => shape[name] === field)) best = shared
  }
  if (!best) return undefined
  const inBase = best.shape as Record<string, unknown>
  const rest = Object.entries(schema.shape).filter(([name]) => !(name in inBase))
  return { shared: best, rest: z.object(Object.fromEntries(rest)) }
}
