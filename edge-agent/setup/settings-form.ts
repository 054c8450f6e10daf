import { z } from 'zod'
import { DeviceEntry, type DriverName } from '../../device-drivers/registry.ts'

/**
 *   settings schema of a driver ─▶ JSON Schema ─▶ one field for each value
 *
 * Describes the settings of each driver as fields of a form. The schema is the only source: a new setting appears in the
 * form by itself. The agent validates what the form sends by the same schema.
 */

/** A value of the settings. */
export interface SettingField {
  /** Path in the entry, such as `siren.seconds`. */
  readonly path: string
  readonly kind: 'text' | 'number' | 'numbers' | 'choice' | 'device'
  /** Allowed values of a `choice`. */
  readonly choices: readonly (string | number | boolean)[]
  readonly min: number | undefined
  readonly max: number | undefined
  /** Value that the driver uses if the setting is missing. */
  readonly preset: string | number | boolean | undefined
  /**
   * `always`: every entry needs it. `variant`: one of several forms needs it, such as an address or a serial port.
   * `shown`: no entry needs it, but the form shows it first.
   */
  readonly needed: 'always' | 'variant' | 'shown' | 'no'
}

interface Schema {
  readonly type?: string
  readonly const?: unknown
  readonly enum?: readonly (string | number | boolean)[]
  readonly minimum?: number
  readonly maximum?: number
  readonly default?: unknown
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
}

/** Settings with a field of their own on the page. */
const ELSEWHERE: ReadonlySet<string> = new Set(['deviceId', 'driver'])

type Needed = SettingField['needed']

/** Settings of fire alarms, which the form always shows first: whether they are needed depends on the other devices. */
const ALWAYS_SHOWN = /^(?:emergency\.|opensInEmergency$)/

function fieldsOf(schema: Schema, path: string, needed: Needed): SettingField[] {
  const forms = schema.anyOf ?? schema.oneOf
  if (forms) {
    const variants = forms.flatMap((each) => fieldsOf(each, path, variantOf(needed)))
    return merged(variants).map((field) => (field.path === path ? { ...field, preset: presetOf(schema) } : field))
  }
  const { properties = {}, required = [] } = schema
  const names = Object.keys(properties)
  if (names.length === 0) return [fieldOf(schema, path, needed)]
  return names.flatMap((name) =>
    path === '' && ELSEWHERE.has(name)
      ? []
      : fieldsOf(
          properties[name] ?? {},
          path === '' ? name : `${path}.${name}`,
          required.includes(name) ? needed : 'no',
        ),
  )
}

function variantOf(needed: Needed): Needed {
  return needed === 'no' ? 'no' : 'variant'
}

function fieldOf(schema: Schema, path: string, needed: Needed): SettingField {
  const { type, const: constant, enum: values, minimum, maximum } = schema
  const choices = values ?? (constant === undefined ? [] : [constant as string | number | boolean])
  return {
    path,
    kind: path === 'feeds' ? 'device' : kindOf(type, choices.length > 0),
    choices: choices.length === 0 && type === 'boolean' ? [true, false] : choices,
    min: minimum,
    max: maximum,
    preset: presetOf(schema),
    needed: needed === 'no' && ALWAYS_SHOWN.test(path) ? 'shown' : needed,
  }
}

function presetOf({ default: preset }: Schema): SettingField['preset'] {
  return typeof preset === 'object' ? undefined : (preset as SettingField['preset'])
}

function kindOf(type: string | undefined, hasChoices: boolean): SettingField['kind'] {
  if (hasChoices || type === 'boolean') return 'choice'
  if (type === 'integer' || type === 'number') return 'number'
  return type === 'array' ? 'numbers' : 'text'
}

/** Joins the fields of several forms of one setting. Equal choices are joined, too. */
function merged(fields: readonly SettingField[]): SettingField[] {
  const byPath = new Map<string, SettingField>()
  for (const field of fields) {
    const former = byPath.get(field.path)
    const choices = [...new Set([...(former?.choices ?? []), ...field.choices])]
    const isText = former?.kind === 'text' || field.kind === 'text'
    byPath.set(field.path, { ...(former ?? field), choices, kind: isText ? 'text' : field.kind })
  }
  return [...byPath.values()]
}

function describeDrivers(): ReadonlyMap<DriverName, readonly SettingField[]> {
  const { anyOf = [], oneOf = [] } = z.toJSONSchema(DeviceEntry, { io: 'input', reused: 'inline' }) as Schema
  return new Map(
    [...anyOf, ...oneOf].map((schema) => [
      schema.properties?.['driver']?.const as DriverName,
      merged(fieldsOf(schema, '', 'always')),
    ]),
  )
}

let described: ReadonlyMap<DriverName, readonly SettingField[]> | undefined

/** The fields of each driver, in the order of its settings. */
export function settingFields(): ReadonlyMap<DriverName, readonly SettingField[]> {
  described ??= describeDrivers()
  return described
}
