/** A JSON Schema as OpenAPI 3.0.3 has it, as far as ours go. */
export interface JsonSchema {
  $ref?: string
  type?: string
  format?: string
  enum?: unknown[]
  nullable?: boolean
  description?: string
  properties?: Record<string, JsonSchema>
  required?: string[]
  additionalProperties?: boolean | JsonSchema
  items?: JsonSchema
  anyOf?: JsonSchema[]
  oneOf?: JsonSchema[]
  allOf?: JsonSchema[]
  minLength?: number
  maxLength?: number
  pattern?: string
  minimum?: number
  maximum?: number
  exclusiveMinimum?: boolean
  exclusiveMaximum?: boolean
  minItems?: number
  maxItems?: number
  default?: unknown
  example?: unknown
}

/** Where schemas with a name are kept. */
export const SCHEMA_POINTER = '#/components/schemas/'

/** The schema that a reference stands for; anything else is itself. */
export function resolveReference(schema: JsonSchema, components: Readonly<Record<string, JsonSchema>>): JsonSchema {
  const inner = schema.$ref ?? (schema.allOf?.length === 1 ? schema.allOf[0]?.$ref : undefined)
  const found = inner === undefined ? undefined : components[inner.slice(SCHEMA_POINTER.length)]
  return found
    ? {
        ...found,
        ...(schema.nullable === true && { nullable: true }),
        ...(schema.description !== undefined && { description: schema.description }),
      }
    : schema
}

/** The name of the component that a schema refers to. */
export function componentOf(schema: JsonSchema): string | undefined {
  return (schema.$ref ?? (schema.allOf?.length === 1 ? schema.allOf[0]?.$ref : undefined))?.slice(SCHEMA_POINTER.length)
}
