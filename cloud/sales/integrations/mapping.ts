import type { DataType } from './systems.ts'

/**
 *   {article_number: "4012…", sell_price: "1,99"}  ─ mapping ─▶  {ean: "4012…", price: "1,99"}
 *
 * Renames a system's fields to ours. Unmapped fields with our names are used as well. All other fields are ignored.
 */
export type Mapping = ReadonlyMap<string, string>

const DETAILS = ['isOrganic', 'isVegan', 'allergens', 'nutrition', 'tagged', 'flags', 'externalProductId']

/** Our fields by data type. */
const TARGETS: Readonly<Record<DataType, readonly string[]>> = {
  articles: [
    'ean',
    'barcode',
    'name',
    'price',
    'oldPrice',
    'vat',
    'deposit',
    'depositVat',
    'category',
    'unit',
    'brand',
    'description',
    'imageUrl',
    'weight',
    ...DETAILS,
  ],
  stock: ['ean', 'barcode', 'productId', 'quantity', 'externalProductId'],
  orders: ['externalId', 'number', 'status', 'supplierId', 'orderedAt', 'expectedAt', 'total', 'currency', 'lines'],
  suppliers: ['externalId', 'name', 'email', 'phone', 'address', 'countryCode', 'vatId'],
}

/** Fields that null clears. All other fields ignore null, because systems send null for unknown values. */
export const CLEARED_BY_NULL = ['oldPrice', 'deposit', 'depositVat'] as const

/** Targets that the specification's mapping also contains. The cloud ignores their values and calculates its own. */
const FIGURES = ['receiptCount', 'scanAndGo.revenueCent']

const EVERY_TARGET: ReadonlySet<string> = new Set([...Object.values(TARGETS).flat(), ...FIGURES])

/** The specification defines the default mapping for articles. */
const DEFAULTS: Readonly<Record<DataType, Readonly<Record<string, string>>>> = {
  articles: {
    article_number: 'ean',
    article_name: 'name',
    sell_price: 'price',
    tax_rate: 'vat',
    category: 'category',
    unit: 'unit',
    image_url: 'imageUrl',
    external_id: 'externalProductId',
    receipt_number: 'receiptCount',
    revenue: 'scanAndGo.revenueCent',
  },
  stock: { article_number: 'ean', stock: 'quantity', external_id: 'externalProductId' },
  orders: {
    external_id: 'externalId',
    id: 'externalId',
    order_number: 'number',
    supplier_id: 'supplierId',
    ordered_at: 'orderedAt',
    expected_at: 'expectedAt',
  },
  suppliers: {
    external_id: 'externalId',
    id: 'externalId',
    supplier_name: 'name',
    country: 'countryCode',
    vat_id: 'vatId',
  },
}

/** Maximum depth of a field path, such as `prices.gross`. */
const STEPS_LIMIT = 5

/** Entries of a mapping that contain none of our field names. */
export function unknownTargets(written: Readonly<Record<string, string>>): string[] {
  return Object.entries(written).flatMap(([from, to]) => (EVERY_TARGET.has(to) || EVERY_TARGET.has(from) ? [] : [from]))
}

/** Default mapping with a merchant's entries, `{their field: our field}`. Also accepts `{our field: their field}`. */
export function mappingOf(dataType: DataType, written: Readonly<Record<string, string>> = {}): Mapping {
  const own = Object.entries(written).map(([from, to]) =>
    EVERY_TARGET.has(to) ? ([from, to] as const) : ([to, from] as const),
  )
  const targets = new Set(own.map(([, to]) => to))
  const defaults = Object.entries(DEFAULTS[dataType]).filter(([, to]) => !targets.has(to))
  return new Map([...defaults, ...own])
}

/**
 * Maps a record. If several fields map to one of our fields, the last field with a value is used. A mapped field has
 * priority over a field with our name.
 */
export function mapRecord(
  record: Readonly<Record<string, unknown>>,
  dataType: DataType,
  mapping: Mapping,
): Record<string, unknown> {
  const made: Record<string, unknown> = {}
  const wanted = TARGETS[dataType]
  const take = (name: string, value: unknown) => {
    if (isStated(value) || (value === null && made[name] === undefined && isClearedByNull(dataType, name)))
      made[name] = value
  }
  for (const name of wanted) if (!mapping.has(name)) take(name, ownValue(record, name))
  for (const [from, to] of mapping) if (wanted.includes(to)) take(to, valueAt(record, from))
  return made
}

function isClearedByNull(dataType: DataType, name: string): boolean {
  return dataType === 'articles' && (CLEARED_BY_NULL as readonly string[]).includes(name)
}

function isStated(value: unknown): boolean {
  return value !== undefined && value !== null && value !== ''
}

/** Reads only own properties, so that names such as `constructor` have no value. */
function ownValue(record: unknown, name: string): unknown {
  return typeof record === 'object' && record !== null && Object.hasOwn(record, name)
    ? (record as Record<string, unknown>)[name]
    : undefined
}

function valueAt(record: unknown, path: string): unknown {
  const direct = ownValue(record, path)
  if (direct !== undefined || !path.includes('.')) return direct
  let at = record
  for (const step of path.split('.').slice(0, STEPS_LIMIT)) at = ownValue(at, step)
  return at
}
