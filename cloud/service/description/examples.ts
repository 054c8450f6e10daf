import { resolveReference, type JsonSchema } from '../../../policy/json-schema.ts'

type Components = Readonly<Record<string, JsonSchema>>

/** Example values by field name. Other values are generated from the type. */
const BY_NAME: Readonly<Record<string, unknown>> = {
  storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B',
  productId: 'prd_01KANX7B2M4D8F6G9H1J3K5L7N',
  transactionId: 'pur_01KANX8Q5R7S9T1V3W5X7Y9Z2A',
  purchaseId: 'pur_01KANX8Q5R7S9T1V3W5X7Y9Z2A',
  sessionId: 'ses_01KANX8N4P6Q8R1S3T5V7W9X2Y',
  deviceId: 'dev_01KANX6Y7C3V9Q2M8R5T4W6Z1B',
  agentId: 'agt_01KANX9C3D5E7F9G2H4J6K8M1N',
  operatorId: 'op_01KANX9F6G8H1J3K5M7N9P2Q4R',
  eventId: 'evt_01KANX9K1M3N5P7Q9R2S4T6V8W',
  itemLineId: 'lin_01KANX8S6T8V1W3X5Y7Z9A2B4C',
  keyId: 'key_01KANX5A2B4C6D8E1F3G5H7J9K',
  requestId: 'req_01KANXA4B6C8D1E3F5G7H9J2K4',
  nextCursor: 'prd_01KANX7B2M4D8F6G9H1J3K5L7N',
  userId: 'user-8213',
  companyName: 'Hafenkante Mode GmbH',
  legal: 'Hafenkante Mode GmbH',
  tradingName: 'Hafenkante',
  trading: 'Hafenkante',
  name: 'Wollschal Elbe',
  nameLower: 'wollschal elbe',
  brand: 'Hafenkante',
  brandLower: 'hafenkante',
  category: 'bekleidung',
  ean: '4012345678901',
  price: 39.9,
  priceUnit: 3_990,
  oldPrice: 49.9,
  vat: 19,
  quantity: 1,
  totalCent: 3_990,
  subtotalCent: 3_990,
  totalVatCent: 637,
  net: 3_353,
  tax: 637,
  itemCount: 1,
  currency: 'EUR',
  street: 'Am Sandtorkai 12',
  city: 'Hamburg',
  zip: '20457',
  postalCode: '20457',
  country: 'DE',
  countryCode: 'DE',
  lat: 53.5434,
  lng: 9.9882,
  latitude: 53.5434,
  longitude: 9.9882,
  package: 'GROW',
  hasScanAndGo: true,
  tagged: true,
  authorized: true,
  deactivationAuthorized: true,
  requiresHumanVerification: false,
  epc: '3034257BF7194E4000001A85',
  tagUid: 'E00401503A1B2C3D',
  tagId: 'AM-20931',
  serialNumber: '6789',
  itemStatus: 'paid',
  reason: 'item_not_paid',
  authorizationState: 'issued',
  authorizationToken: 'eyJhbGciOiJFZERTQSIsImtpZCI6Ii4uLiIsInR5cCI6InBhdXRoK2p3dCJ9.eyJ….4Jd…',
  replayProtectedNonce: 'q3Zt0uVbN1yXw8Lk2PfR5A',
  redeemedAt: null,
  firmwareVersion: '2.4.1',
  zoneId: 'zone-1',
  laneId: 'lane-2',
  gateId: 'gate-north',
  checkoutUrl: 'https://shop.example/checkout/chk_01KANX8W8X1Y3Z5A7B9C2D4E6F',
  url: 'https://shop.example/R/J5ZXK…',
  token: 'J5ZXK…',
  imageBase64: 'iVBORw0KGgo…',
  code: 'K7QX-4M2P-9TRW-5H8J-2N6V-0C3D-8F1G',
  key: 'untag_test_sk_…',
  allowedActionsByCategory: { '*': { detach_hard_tag: ['staff_assisted', 'pos_integrated'] } },
  requiresManualOverrideAboveValue: 150,
  requiresStaffForBrand: [],
  maxRiskClass: 2,
  hardCount: 20,
  maxIsolatedSeconds: 14_400,
  unknownTag: 'notify',
  severity: [{ category: 'Socken', severity: 'notify' }],
  ownPrefixes: ['4012345'],
  ownMasks: [],
  alarmMasks: [],
  disposition: 'real',
  recoveredValue: 89.9,
  operatorOverridesPerHour: 10,
  spotCheckRate: 0,
  home: 'cloud',
  version: 7,
  worstCaseLoss: 2_400,
  errors: [],
  warnings: [],
  duplicates: 0,
  remaining: 0,
  address: 'Am Sandtorkai 12, 20457 Hamburg',
  receiptUrl: 'https://shop.example/R/J5ZXK…',
  documents: ['eyJ…'],
  x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo',
  supportedTechnologies: ['am', 'uhf_rfid'],
  allergens: ['wool'],
  tse: { state: 'simulated' },
}

/** Example values by parent and field name, for names with several meanings. */
const BY_PLACE: Readonly<Record<string, unknown>> = {
  'storeData.id': 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B',
  'storeData.name': 'Hafenkante',
  'receipt.id': 'pur_01KANX8Q5R7S9T1V3W5X7Y9Z2A',
  'device.name': 'Selbstablöser 2',
  'operator.name': 'Frau Petersen',
  'agent.name': 'Kasse 1',
  'mqtt.url': 'mqtts://shop.example:8883',
  'mqtt.clientId': 'agt_01KANX9C3D5E7F9G2H4J6K8M1N',
  'mqtt.username': 'agt_01KANX9C3D5E7F9G2H4J6K8M1N',
}

/** Enum values that are better examples than the first value. */
const PREFERRED: ReadonlySet<unknown> = new Set(['SUCCESS', 'rfid', 'uhf_rfid', 'redeemed'])

const TIME = '2026-11-20T09:00:00.000Z'
const UNIX_MS = 1_795_165_200_000
/** Maximum depth of an example, because schemas may be recursive. */
const DEPTH = 8

/**
 * Generates an example response from the request, the known names and the types. Includes an optional field only if its
 * value is known.
 */
export function exampleAnswer(
  schema: JsonSchema,
  components: Components,
  request: Readonly<Record<string, unknown>>,
): unknown {
  return valueOf(schema, '', '', 0)

  function valueOf(field: JsonSchema, of: string, name: string, depth: number): unknown {
    const node = resolveReference(field, components)
    if (node.allOf) return Object.assign({}, ...node.allOf.map((part) => valueOf(part, of, name, depth)))
    const known = [BY_PLACE[`${of}.${name}`], node.type === 'array' ? undefined : request[name], BY_NAME[name]].find(
      (value) => fits(value, node),
    )
    if (known !== undefined) return known
    const option = (node.anyOf ?? node.oneOf)?.[0]
    if (option) return valueOf(option, of, name, depth)
    if (node.enum) return node.enum.find((value) => PREFERRED.has(value)) ?? node.enum[0]
    if (node.type === 'array')
      return depth > DEPTH || node.maxItems === 0
        ? []
        : [valueOf(node.items ?? {}, of, name.replace(/s$/, ''), depth + 1)]
    if (node.type === 'object' || node.properties)
      return { ...objectOf(node, name, depth), ...fieldsSent(request[name], node) }
    if (node.type === 'boolean') return node.default ?? false
    if (node.type === 'integer' || node.type === 'number')
      return /(?:At|Ms)$/.test(name)
        ? UNIX_MS
        : name === 'total' && node.type === 'number'
          ? 39.9
          : Math.max(node.minimum ?? 0, 1)
    if (node.type === 'string') return textOf(node, name)
    return null
  }

  /** Fields of an object in the request that the response schema also has. */
  function fieldsSent(sent: unknown, { properties }: JsonSchema): Record<string, unknown> {
    if (!isPlain(sent)) return {}
    return Object.fromEntries(
      Object.entries(sent).filter(
        ([name, value]) =>
          properties === undefined || fits(value, resolveReference(properties[name] ?? { enum: [] }, components)),
      ),
    )
  }

  function objectOf(node: JsonSchema, of: string, depth: number): Record<string, unknown> {
    const required = new Set(node.required)
    const shown = Object.entries(node.properties ?? {}).filter(
      ([name, field]) =>
        required.has(name) || (fits(BY_NAME[name], resolveReference(field, components)) && !HIDDEN.has(name)),
    )
    const values: Record<string, unknown> = Object.fromEntries(
      shown.map(([name, field]) => [name, depth > DEPTH ? null : valueOf(field, of, name, depth + 1)]),
    )
    const { additionalProperties: more } = node
    const key = KEYS_OF[of]
    if (key !== undefined && typeof more === 'object') values[key] = valueOf(more, of, '', depth + 1)
    return values
  }
}

/** Example keys of maps, by field name. */
const KEYS_OF: Readonly<Record<string, string>> = { vatBreakdown: '19' }

/** Optional fields that examples leave out. */
const HIDDEN: ReadonlySet<string> = new Set([
  'reason',
  'nextCursor',
  'tagId',
  'tagUid',
  'oldPrice',
  'serialNumber',
  'zoneId',
  'laneId',
  'gateId',
  'code',
  'key',
  'token',
  'url',
])

function textOf(node: JsonSchema, name: string): string {
  if (node.format === 'date-time' || name.endsWith('At') || name === 'timestamp') return TIME
  if (node.format === 'date') return TIME.slice(0, 10)
  if (name.toLowerCase().endsWith('url')) return `https://shop.example/${name}`
  if (name.endsWith('Id')) return `${name.slice(0, 3).toLowerCase()}_01KANX6Y7C3V9Q2M8R5T4W6Z1B`
  return name === '' ? 'text' : name
}

/** True if the value matches the schema. */
function fits(
  value: unknown,
  { type, enum: choices, nullable, anyOf, maxLength, maximum, properties }: JsonSchema,
): boolean {
  if (value === undefined || anyOf) return false
  if (value === null) return nullable === true
  if (choices) return choices.includes(value)
  if (type === 'string') return typeof value === 'string' && value.length <= (maxLength ?? Infinity)
  if (type === 'number') return typeof value === 'number' && value <= (maximum ?? Infinity)
  if (type === 'integer') return Number.isInteger(value)
  if (type === 'array') return Array.isArray(value)
  if (type === 'object') return isPlain(value) && properties === undefined
  return type === 'boolean' && typeof value === 'boolean'
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
