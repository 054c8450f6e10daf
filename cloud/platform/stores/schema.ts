import { z } from 'zod'
import {
  DEVICE_TYPES,
  PROTECTION_TECHNOLOGIES,
  SECURITY_TAG_MODES,
  WORKFLOW_TYPES,
} from '../../../policy/vocabulary.ts'
import { definedFields } from '../operations/fields.ts'
import { PACKAGES, type Package } from '../foundation/caller.ts'
import type { ListedStore } from './queries.ts'

const ProtectionDimensions = {
  securityTagMode: z.enum(SECURITY_TAG_MODES),
  securityTagHint: z.string().optional(),
  protectionTechnology: z.enum(PROTECTION_TECHNOLOGIES).optional(),
  deviceType: z.enum(DEVICE_TYPES).optional(),
  workflowType: z.enum(WORKFLOW_TYPES).optional(),
}

const Additions = {
  gln: z.string().optional().describe('Global Location Number.'),
  inStoreCodes: z
    .array(z.string())
    .optional()
    .describe('Layouts of the codes that the store’s scales print. Absent for the default layouts.'),
}

/** Store, API form. */
export const Store = z.strictObject({
  storeId: z.string(),
  companyName: z.string().describe('Legal name.'),
  tradingName: z.string().describe('Display name.'),
  address: z.strictObject({
    street: z.string(),
    city: z.string(),
    zip: z.string(),
    country: z.string().describe('ISO 3166-1 alpha-2.'),
  }),
  coordinates: z.strictObject({ lat: z.number(), lng: z.number() }).optional(),
  hasScanAndGo: z.boolean(),
  package: z.enum(PACKAGES),
  ...ProtectionDimensions,
  ...Additions,
})
export type Store = z.infer<typeof Store>

/** What a person needs to choose a store. */
export const StoreName = Store.pick({ storeId: true, tradingName: true }).extend({
  street: z.string(),
  city: z.string(),
})
export type StoreName = z.infer<typeof StoreName>

/** How shoppers reach the store. */
export const CONTACT = {
  phone: z.string().optional(),
  email: z.string().optional(),
  website: z.string().optional(),
  openingHours: z.record(z.string(), z.string()).optional(),
}

/** Store, master data form. */
export const StoreMasterData = z.strictObject({
  id: z.string(),
  name: z.strictObject({ legal: z.string(), trading: z.string() }),
  address: z.strictObject({ street: z.string(), city: z.string(), postalCode: z.string(), countryCode: z.string() }),
  coordinates: z.strictObject({ latitude: z.number(), longitude: z.number() }).optional(),
  media: z.record(z.string(), z.string()).optional(),
  social: z.record(z.string(), z.string()).optional(),
  mode: z.enum(['demo', 'live']),
  package: z.string().describe('In lower case.'),
  hasScanAndGo: z.boolean(),
  hasOffers: z.boolean(),
  rating: z.number(),
  ...CONTACT,
  pspAccountId: z.string().optional(),
  receiptCount: z.int(),
  ...ProtectionDimensions,
  ...Additions,
})
export type StoreMasterData = z.infer<typeof StoreMasterData>

function protectionDimensions(row: ListedStore) {
  return {
    securityTagMode: row.security_tag_mode as Store['securityTagMode'],
    ...definedFields({
      securityTagHint: row.security_tag_hint,
      protectionTechnology: row.protection_technology as Store['protectionTechnology'] | null,
      deviceType: row.device_type as Store['deviceType'] | null,
      workflowType: row.workflow_type as Store['workflowType'] | null,
    }),
  }
}

function additions(row: ListedStore) {
  return definedFields({ gln: row.gln, inStoreCodes: parsed<string[]>(row.in_store_codes) })
}

/** Converts a row to the API form. */
export function toStore(row: ListedStore): Store {
  return {
    storeId: row.store_id,
    companyName: row.legal_name,
    tradingName: row.trading_name,
    address: { street: row.street, city: row.city, zip: row.postal_code, country: row.country_code },
    ...(row.lat !== null && row.lng !== null && { coordinates: { lat: row.lat, lng: row.lng } }),
    hasScanAndGo: row.has_scan_and_go === 1,
    package: row.package as Package,
    ...protectionDimensions(row),
    ...additions(row),
  }
}

function parsed<T>(text: string | null): T | null {
  return text === null ? null : (JSON.parse(text) as T)
}

/** Fields of `CONTACT`. */
export function contactOf({ phone, email, website, opening_hours }: ListedStore) {
  return definedFields({ phone, email, website, openingHours: parsed<Record<string, string>>(opening_hours) })
}

/** Converts a row and the number of receipts of the store to the master data form. */
export function toMasterData(row: ListedStore, receiptCount: number): StoreMasterData {
  return {
    id: row.store_id,
    name: { legal: row.legal_name, trading: row.trading_name },
    address: { street: row.street, city: row.city, postalCode: row.postal_code, countryCode: row.country_code },
    ...(row.lat !== null && row.lng !== null && { coordinates: { latitude: row.lat, longitude: row.lng } }),
    ...contactOf(row),
    ...definedFields({
      media: parsed<Record<string, string>>(row.media),
      social: parsed<Record<string, string>>(row.social),
      pspAccountId: row.psp_account_id,
    }),
    mode: row.tenant.endsWith('.live') ? 'live' : 'demo',
    package: row.package.toLowerCase(),
    hasScanAndGo: row.has_scan_and_go === 1,
    hasOffers: row.has_offers === 1,
    rating: 0,
    receiptCount,
    ...protectionDimensions(row),
    ...additions(row),
  }
}
