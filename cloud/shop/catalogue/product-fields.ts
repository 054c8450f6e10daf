import { z } from 'zod'
import { centsOf, Euros, eurosOf, lines, text, VatRate } from '../../platform/operations/fields.ts'
import type { Row } from '../../platform/persistence/schema.ts'

const Grams = z.number().min(0).max(200).describe('g')

/** Nutrition values per 100 g or 100 ml. */
const Nutrition = z.strictObject({
  calories: z.number().min(0).max(2_000).describe('kcal').optional(),
  fat: Grams.optional(),
  saturatedFat: Grams.optional(),
  carbohydrates: Grams.optional(),
  sugar: Grams.optional(),
  protein: Grams.optional(),
  fiber: Grams.optional(),
  salt: Grams.optional(),
  nutriScore: z.enum(['A', 'B', 'C', 'D', 'E']).optional(),
  per: z.enum(['100g', '100ml']).default('100g'),
  source: z.enum(['merchant', 'reference', 'community']).optional(),
  confidence: z.number().min(0).max(1).optional(),
})

/** How a column stores a field: a flag as 0 or 1, an amount in EUR as cents, a VAT rate in percent, or JSON. */
type Form = 'text' | 'flag' | 'amount' | 'rate' | 'json'

/** A field that a product may lack. It is the same in all stores. */
interface ProductField {
  readonly form: Form
  /** Column of `product` (persistence/migrations/baseline-tables.ts). */
  readonly column: keyof Row<'product'>
  readonly request: z.ZodType
  readonly answer: z.ZodType
  /** Column of product files: its name, other names in the form of `plainName`, and a value for the template. */
  readonly inFile?: { readonly name: string; readonly others: readonly string[]; readonly example: string | number }
}

/**
 * The optional fields of products, each once. Requests, answers, rows, stored documents, product files and connectors
 * follow this table.
 */
const PRODUCT_FIELD_TABLE = {
  category: {
    form: 'text',
    column: 'category',
    request: text(120),
    answer: z.string(),
    inFile: { name: 'category', others: ['kategorie', 'warengruppe'], example: 'Getränke' },
  },
  unit: {
    form: 'text',
    column: 'unit',
    request: text(40),
    answer: z.string(),
    inFile: { name: 'unit', others: ['einheit'], example: 'l' },
  },
  brand: {
    form: 'text',
    column: 'brand',
    request: text(120),
    answer: z.string(),
    inFile: { name: 'brand', others: ['marke', 'hersteller'], example: 'Lindwerk' },
  },
  description: {
    form: 'text',
    column: 'description',
    request: lines(300),
    answer: z.string(),
    inFile: { name: 'description', others: ['beschreibung'], example: 'Aus deutschem Hafer, ohne Zucker.' },
  },
  imageUrl: {
    form: 'text',
    column: 'image_url',
    request: z.url({ protocol: /^https?$/ }).max(2_048),
    answer: z.string(),
  },
  weight: { form: 'text', column: 'weight', request: text(40), answer: z.string() },
  isOrganic: {
    form: 'flag',
    column: 'is_organic',
    request: z.boolean(),
    answer: z.boolean(),
    inFile: { name: 'is_organic', others: ['bio', 'organic'], example: 'true' },
  },
  isVegan: {
    form: 'flag',
    column: 'is_vegan',
    request: z.boolean(),
    answer: z.boolean(),
    inFile: { name: 'is_vegan', others: ['vegan'], example: 'true' },
  },
  allergens: {
    form: 'json',
    column: 'allergens',
    request: z.array(text(80)).max(50),
    answer: z.array(z.string()),
  },
  deposit: {
    form: 'amount',
    column: 'deposit_cent',
    request: Euros.describe(
      'EUR for one piece, in addition to the price. The deposit is a separate line of a purchase.',
    ),
    answer: z.number().describe('EUR for one piece. The deposit is a separate line of a purchase.'),
    inFile: { name: 'deposit', others: ['pfand'], example: 0.25 },
  },
  depositVat: {
    form: 'rate',
    column: 'deposit_vat',
    request: VatRate.describe('Default: the product’s.'),
    answer: VatRate.describe('VAT rate of the deposit, if it differs from the product’s.'),
    inFile: { name: 'deposit_vat', others: ['pfandmwst'], example: 7 },
  },
  nutrition: { form: 'json', column: 'nutrition', request: Nutrition, answer: Nutrition },
} as const satisfies Readonly<Record<string, ProductField>>

type FieldTable = typeof PRODUCT_FIELD_TABLE
type FieldName = keyof FieldTable
export const FIELD_NAMES = Object.keys(PRODUCT_FIELD_TABLE) as FieldName[]

/** Schemas of the fields in a request or an answer. */
export const schemasOf = <S extends 'request' | 'answer'>(kind: S) =>
  Object.fromEntries(FIELD_NAMES.map((name) => [name, PRODUCT_FIELD_TABLE[name][kind]])) as {
    [K in FieldName]: FieldTable[K][S]
  }

/** Names of the fields that columns store in one of these forms. */
export const fieldsStoredAs = (...forms: readonly Form[]): readonly FieldName[] =>
  FIELD_NAMES.filter((name) => forms.includes(PRODUCT_FIELD_TABLE[name].form))

const TO_COLUMN: Readonly<Record<Form, (value: never) => unknown>> = {
  text: (value: string) => value,
  rate: (value: number) => value,
  flag: (value: boolean) => Number(value),
  amount: (value: number) => centsOf(value),
  json: (value: object) => JSON.stringify(value),
}
const FROM_COLUMN: Readonly<Record<Form, (stored: never) => unknown>> = {
  text: (stored: string) => stored,
  rate: (stored: number) => stored,
  flag: (stored: number) => stored === 1,
  amount: (stored: number) => eurosOf(stored),
  json: (stored: string) => JSON.parse(stored) as unknown,
}

const FIELDS = FIELD_NAMES.map((name) => ({ name, ...(PRODUCT_FIELD_TABLE[name] as ProductField) }))

/** Sets the columns of stated fields; null clears one. Leaves the others. Merging two objects would take ten times as long. */
export function setFieldColumns(row: Partial<Row<'product'>>, stated: { readonly [K in FieldName]?: unknown }): void {
  const columns = row as Record<string, unknown>
  for (const { name, column, form } of FIELDS) {
    const value = stated[name]
    if (value !== undefined) columns[column] = value === null ? null : TO_COLUMN[form](value as never)
  }
}

/** Adds the fields of a row that are set. */
export function addFieldsOfRow(product: object, row: Row<'product'>): void {
  const fields = product as Record<string, unknown>
  for (const { name, column, form } of FIELDS) {
    const stored = row[column]
    if (stored !== null) fields[name] = FROM_COLUMN[form](stored as never)
  }
}

/** A product without any of the fields. */
export const NO_FIELDS = Object.fromEntries(FIELD_NAMES.map((name) => [PRODUCT_FIELD_TABLE[name].column, null])) as {
  [K in FieldName as FieldTable[K]['column']]: null
}

/** Fields that product files have, with their columns. */
export const FILE_FIELDS = FIELD_NAMES.flatMap((field) => {
  const { form, inFile } = PRODUCT_FIELD_TABLE[field] as ProductField
  return inFile ? [{ field, form, ...inFile }] : []
})
