import { z } from 'zod'
import { hasValidCheckDigit } from '../../../policy/gs1/gtin.ts'
import {
  DEVICE_TYPES,
  PROTECTION_TECHNOLOGIES,
  SECURITY_TAG_MODES,
  WORKFLOW_TYPES,
} from '../../../policy/vocabulary.ts'
import { InStoreCodes } from '../../../policy/gs1/in-store-code.ts'
import { lines, text } from '../operations/fields.ts'
import { PACKAGES, type Package } from '../foundation/caller.ts'
import type { Row } from '../persistence/schema.ts'

/** The 249 assigned country codes of ISO 3166-1 alpha-2. */
export const COUNTRY_CODES: ReadonlySet<string> = new Set(
  `AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ
  CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR
  GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP
  KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT
  MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW
  SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG
  UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW`.split(/\s+/),
)

/** Reads a store in the API form, the master data form, or a mixture of both without contradictions. */

/** Columns that a merchant may set. Fields that a request omits are absent. */
export type StoreFields = Partial<
  Pick<
    Row<'store'>,
    | 'legal_name'
    | 'trading_name'
    | 'street'
    | 'city'
    | 'postal_code'
    | 'country_code'
    | 'lat'
    | 'lng'
    | 'phone'
    | 'email'
    | 'website'
    | 'has_scan_and_go'
    | 'has_offers'
    | 'opening_hours'
    | 'media'
    | 'social'
    | 'psp_account_id'
    | 'security_tag_mode'
    | 'security_tag_hint'
    | 'protection_technology'
    | 'device_type'
    | 'workflow_type'
    | 'in_store_codes'
    | 'gln'
  >
>

const WEEKDAYS = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday'] as const

const Url = z.url({ protocol: /^https?$/, error: 'must start with https:// or http://' }).max(2_048)

/** Package name in upper or lower case. */
export const AnyCasePackage = z
  .string()
  .max(16)
  .transform((sent, ctx): Package => {
    const known = PACKAGES.find((name) => name === sent.toUpperCase())
    if (known) return known
    ctx.addIssue({ code: 'custom', message: `must be one of ${PACKAGES.join(', ')} in upper or lower case` })
    return z.NEVER
  })
  .describe(`${PACKAGES.join(', ')} in upper or lower case.`)

const Country = z
  .string()
  .max(8)
  .transform((code) => code.toUpperCase())
  .refine((code) => COUNTRY_CODES.has(code), 'must be an ISO 3166-1 alpha-2 code, such as DE')
  .describe('ISO 3166-1 alpha-2.')

const Latitude = z.number().min(-90).max(90)
const Longitude = z.number().min(-180).max(180)

/** Address with the field names of both forms. */
export const AddressInput = z.strictObject({
  street: text(160).optional(),
  city: text(120).optional(),
  zip: text(20).optional(),
  postalCode: text(20).optional(),
  country: Country.optional(),
  countryCode: Country.optional(),
})

const OpeningHours = z
  .strictObject(
    Object.fromEntries(
      WEEKDAYS.map((day) => [
        day,
        z
          .string()
          .regex(/^([01]\d|2[0-3]):[0-5]\d-(([01]\d|2[0-3]):[0-5]\d|24:00)$/, 'must have the form HH:MM-HH:MM')
          .optional(),
      ]),
    ) as {
      [K in (typeof WEEKDAYS)[number]]: z.ZodOptional<z.ZodString>
    },
  )
  .describe('Weekday to `HH:MM-HH:MM`, such as `{"monday": "09:00-18:30"}`. The store is closed on absent days.')

/** Fields of a store in both forms. `null` clears optional fields. */
export const STORE_INPUT_SHAPE = {
  companyName: text(160).optional(),
  tradingName: text(160).optional(),
  name: z.strictObject({ legal: text(160).optional(), trading: text(160).optional() }).optional(),
  address: AddressInput.optional(),
  coordinates: z
    .strictObject({
      lat: Latitude.optional(),
      lng: Longitude.optional(),
      latitude: Latitude.optional(),
      longitude: Longitude.optional(),
    })
    .nullish(),
  phone: z
    .string()
    .regex(/^\+[1-9]\d{6,14}$/, 'must be in E.164, such as +494012345678')
    .nullish()
    .describe('E.164.'),
  email: z.email().max(254).nullish(),
  website: Url.nullish(),
  media: z.strictObject({ logo: Url.optional(), cover: Url.optional() }).nullish(),
  social: z
    .strictObject({ instagram: text(200).optional(), facebook: text(200).optional(), tiktok: text(200).optional() })
    .nullish(),
  openingHours: OpeningHours.nullish(),
  pspAccountId: text(128).nullish(),
  hasScanAndGo: z.boolean().optional(),
  hasOffers: z.boolean().optional(),
  securityTagMode: z.enum(SECURITY_TAG_MODES).optional(),
  securityTagHint: lines(300).nullish(),
  protectionTechnology: z.enum(PROTECTION_TECHNOLOGIES).nullish(),
  deviceType: z.enum(DEVICE_TYPES).nullish(),
  workflowType: z.enum(WORKFLOW_TYPES).nullish(),
  inStoreCodes: InStoreCodes.nullish(),
  gln: z
    .string()
    .regex(/^\d{13}$/, 'must be 13 digits')
    .refine(hasValidCheckDigit, 'has a wrong check digit')
    .nullish()
    .describe('GS1 Global Location Number. EPCIS exports use it to name the store.'),
}
const StoreInput = z.strictObject(STORE_INPUT_SHAPE)
type StoreInput = z.output<typeof StoreInput>

/** Collector of validation errors: a zod refinement context. */
type Faults = Pick<z.RefinementCtx, 'addIssue'>

/** Returns the value that was sent under either name. If the two values differ, adds an issue to the second name. */
function agreed<T>(
  faults: Faults,
  a: { path: string[]; value: T | undefined },
  b: { path: string[]; value: T | undefined },
): T | undefined {
  if (a.value !== undefined && b.value !== undefined && a.value !== b.value) {
    faults.addIssue({ code: 'custom', path: b.path, message: `differs from ${a.path.join('.')}` })
  }
  return a.value ?? b.value
}

/** Converts an input to columns. Adds an issue if two names of a field have different values. */
export function storeFieldsOf(input: StoreInput, faults: Faults): StoreFields {
  const { name, address, coordinates } = input
  const at = (path: string, value: string | undefined) => ({ path: path.split('.'), value })
  const set = {
    legal_name: agreed(faults, at('companyName', input.companyName), at('name.legal', name?.legal)),
    trading_name: agreed(faults, at('tradingName', input.tradingName), at('name.trading', name?.trading)),
    street: address?.street,
    city: address?.city,
    postal_code: agreed(faults, at('address.zip', address?.zip), at('address.postalCode', address?.postalCode)),
    country_code: agreed(
      faults,
      at('address.country', address?.country),
      at('address.countryCode', address?.countryCode),
    ),
    ...(coordinates === null ? { lat: null, lng: null } : coordinates && positionOf(coordinates, faults)),
    phone: input.phone,
    email: input.email,
    website: input.website,
    media: asText(input.media),
    social: asText(input.social),
    opening_hours: asText(input.openingHours),
    psp_account_id: input.pspAccountId,
    has_scan_and_go: asBit(input.hasScanAndGo),
    has_offers: asBit(input.hasOffers),
    security_tag_mode: input.securityTagMode,
    security_tag_hint: input.securityTagHint,
    protection_technology: input.protectionTechnology,
    device_type: input.deviceType,
    workflow_type: input.workflowType,
    in_store_codes: asText(input.inStoreCodes),
    gln: input.gln,
  }
  return Object.fromEntries(Object.entries(set).filter(([, value]) => value !== undefined)) as StoreFields
}

function positionOf(sent: NonNullable<StoreInput['coordinates']>, faults: Faults): Pick<StoreFields, 'lat' | 'lng'> {
  const at = (path: string, value: number | undefined) => ({ path: ['coordinates', path], value })
  const lat = agreed(faults, at('lat', sent.lat), at('latitude', sent.latitude))
  const lng = agreed(faults, at('lng', sent.lng), at('longitude', sent.longitude))
  if (lat !== undefined && lng !== undefined) return { lat, lng }
  faults.addIssue({ code: 'custom', path: ['coordinates'], message: 'needs lat and lng' })
  return {}
}

function asText(value: object | null | undefined): string | null | undefined {
  return value === null || value === undefined ? value : JSON.stringify(value)
}

function asBit(value: boolean | undefined): number | undefined {
  return value === undefined ? undefined : value ? 1 : 0
}

const API_PATHS: Partial<Record<keyof StoreFields, string>> = {
  legal_name: 'companyName',
  trading_name: 'tradingName',
  street: 'address.street',
  city: 'address.city',
  postal_code: 'address.zip',
  country_code: 'address.country',
  phone: 'phone',
}

/** Adds an issue for each of these columns that is missing. */
export function requireFields(fields: StoreFields, names: readonly (keyof StoreFields)[], faults: Faults): void {
  for (const column of names) {
    const path = API_PATHS[column]
    if (path !== undefined && (fields[column] ?? undefined) === undefined)
      faults.addIssue({ code: 'custom', path: path.split('.'), message: 'is missing' })
  }
}

export const ADDRESS_FIELDS = ['street', 'city', 'postal_code', 'country_code'] as const

/** Columns of a new store. Requires both names and the whole address. */
export function newStoreFields(
  input: StoreInput,
  faults: Faults,
  also: readonly (keyof StoreFields)[] = [],
): StoreFields {
  const fields = storeFieldsOf(input, faults)
  requireFields(fields, ['legal_name', 'trading_name', ...ADDRESS_FIELDS, ...also], faults)
  return fields
}
