/** JSON Schema of OpenAPI 3.0.3, as far as untag uses it. */
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

/** JSON pointer to the named schemas. */
export const SCHEMA_POINTER = '#/components/schemas/'

/** Returns the schema to which a reference points. Returns a schema without a reference unchanged. */
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

/** Name of the referenced component; undefined without a reference. */
export function componentOf(schema: JsonSchema): string | undefined {
  return (schema.$ref ?? (schema.allOf?.length === 1 ? schema.allOf[0]?.$ref : undefined))?.slice(SCHEMA_POINTER.length)
}
