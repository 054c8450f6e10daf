import { z } from 'zod'
import { hasDecimals } from '../../../policy/decimals.ts'
import { Ean } from '../catalogue/ean.ts'
import { centsOf, Euros, Id, Success, Timestamp, lines, text } from '../../platform/operations/fields.ts'
import { OFFER_SCOPES } from './queries.ts'
import { OFFER_STATUSES } from './offer-status.ts'
import { discountedPrice, isCountable } from './price-rules.ts'

const STORES_LIMIT = 1_000
const PRODUCTS_LIMIT = 500
const TAGS_LIMIT = 50

export const DEFAULT_COLOR = 'FF6600'

function percent(min: number, max: number) {
  return z.number().min(min).max(max).refine(isCountable, 'must have at most 4 decimals')
}

const ProductFields = {
  name: text(120).optional().describe('Required without an ean.'),
  price: Euros.optional().describe('EUR, the offer’s price. Calculated from oldPrice if discountPercentage is sent.'),
  oldPrice: Euros.optional(),
  discountPercentage: percent(0, 100).optional(),
  category: text(120).optional(),
  manufacturer: text(120).optional(),
  unit: text(60).optional(),
  description: lines(300, 0).optional(),
  ean: Ean.optional(),
  discountPrice: Euros.optional().describe('EUR, the same as price.'),
  originalPrice: Euros.optional().describe('EUR, the same as oldPrice.'),
}

/** One product of an offer: the API form, the EAN form, or both. */
export const OfferProductInput = z.strictObject(ProductFields).superRefine(checkProduct)
export type OfferProductInput = z.output<typeof OfferProductInput>

/** A product as `fetchOffer` returns it may be sent back. `prices` are set by the system (ADR requests). */
const UpdatedProduct = z
  .strictObject({
    ...ProductFields,
    prices: z
      .array(z.strictObject({ storeId: z.string(), originalPrice: Euros.optional(), discountPrice: Euros }))
      .max(STORES_LIMIT)
      .optional()
      .describe('As `fetchOffer` returned it. If the price of the product is unchanged, each store keeps its own.'),
  })
  .superRefine(checkProduct)
export type UpdatedProduct = z.output<typeof UpdatedProduct>

function checkProduct(product: z.output<z.ZodObject<typeof ProductFields>>, context: z.core.$RefinementCtx): void {
  const wrong = (path: string, message: string) => context.addIssue({ code: 'custom', path: [path], message })
  const price = product.price ?? product.discountPrice
  const oldPrice = product.oldPrice ?? product.originalPrice
  const priceField = product.ean !== undefined && product.price === undefined ? 'discountPrice' : 'price'
  if (product.name === undefined && product.ean === undefined)
    wrong('name', 'is missing: a product of an offer needs a name or an ean')
  if (product.price !== undefined && product.discountPrice !== undefined && product.price !== product.discountPrice)
    wrong('price', 'differs from discountPrice')
  if (
    product.oldPrice !== undefined &&
    product.originalPrice !== undefined &&
    product.oldPrice !== product.originalPrice
  )
    wrong('oldPrice', 'differs from originalPrice')
  if (product.discountPercentage !== undefined && oldPrice === undefined)
    wrong('discountPercentage', 'needs oldPrice to calculate the price')
  else if (price === undefined && product.discountPercentage === undefined) wrong(priceField, 'is missing')
  if (price !== undefined && oldPrice !== undefined && product.discountPercentage === undefined && price > oldPrice)
    wrong(priceField, 'must not be above the old price')
}

/** Price and old price (if stated) of a validated product, cents. */
export function pricesOf(product: OfferProductInput): { priceCent: number; oldPriceCent: number | undefined } {
  const old = product.oldPrice ?? product.originalPrice
  const oldPriceCent = old === undefined ? undefined : centsOf(old)
  const { discountPercentage } = product
  if (discountPercentage !== undefined && oldPriceCent !== undefined)
    return { priceCent: discountedPrice(oldPriceCent, discountPercentage), oldPriceCent }
  return { priceCent: centsOf(product.price ?? product.discountPrice ?? 0), oldPriceCent }
}

function checkEans(products: readonly { ean?: string | undefined }[], context: z.core.$RefinementCtx): void {
  const seen = new Set<string>()
  for (const [i, { ean }] of products.entries()) {
    if (ean !== undefined && seen.has(ean))
      context.addIssue({ code: 'custom', path: [i, 'ean'], message: `${ean} occurs twice in the offer` })
    if (ean !== undefined) seen.add(ean)
  }
}

const Products = z.array(OfferProductInput).min(1).max(PRODUCTS_LIMIT).superRefine(checkEans)
const UpdatedProducts = z.array(UpdatedProduct).min(1).max(PRODUCTS_LIMIT).superRefine(checkEans)

const Title = text(80, 3).refine(
  (title) => title.length < 3 || title.trim().length >= 3,
  'must have at least 3 characters without leading and trailing spaces',
)
const Description = lines(1_000, 0).transform((value) => value.trim())
const Color = z
  .string()
  .regex(/^[0-9A-Fa-f]{6}$/, 'must be six hex digits, without #')
  .transform((color) => color.toUpperCase())
const ImageUrl = z.url({ protocol: /^https?$/ }).max(2_048)
const Quantity = z.int().min(1).max(1_000_000_000)
/** Store ids without duplicates. */
const StoreIds = z
  .array(Id)
  .min(1)
  .max(STORES_LIMIT)
  .transform((ids) => [...new Set(ids)])

export const CreateOffer = z
  .strictObject({
    storeIds: StoreIds,
    title: Title,
    validFrom: Timestamp,
    validTo: Timestamp.optional(),
    validUntil: Timestamp.optional().describe('The same as validTo.'),
    products: Products,
    description: Description.optional().describe('Generated if empty.'),
    merchantColor: Color.optional(),
    tags: z.array(text(50)).max(TAGS_LIMIT).optional(),
    imageUrl: ImageUrl.optional(),
    quantity: Quantity.optional(),
  })
  .superRefine((offer, context) => {
    const to = offer.validTo ?? offer.validUntil
    if (to === undefined) context.addIssue({ code: 'custom', path: ['validTo'], message: 'is missing' })
    else if (Date.parse(to) <= Date.parse(offer.validFrom))
      context.addIssue({ code: 'custom', path: ['validTo'], message: 'must be after validFrom' })
    checkEnds(offer, context)
  })
export type CreateOffer = z.output<typeof CreateOffer>

function checkEnds(
  { validTo, validUntil }: { validTo?: string | undefined; validUntil?: string | undefined },
  context: z.core.$RefinementCtx,
): void {
  if (validTo !== undefined && validUntil !== undefined && Date.parse(validTo) !== Date.parse(validUntil)) {
    context.addIssue({ code: 'custom', path: ['validUntil'], message: 'differs from validTo', input: validUntil })
  }
}

/** Identifier of an offer in requests: any id of its group, as `offerId` or as `id`. */
const OfferName = {
  offerId: Id.optional().describe('Any id of the group.'),
  id: Id.optional().describe('The same as offerId.'),
}

function checkName(
  { offerId, id }: { offerId?: string | undefined; id?: string | undefined },
  context: z.core.$RefinementCtx,
): void {
  if (offerId === undefined && id === undefined)
    context.addIssue({ code: 'custom', path: ['offerId'], message: 'is missing', input: offerId })
}

/** Fields that the system sets. Ignored if they are unchanged (ADR requests). */
const SystemFields = {
  offerIds: z.array(z.string()).max(STORES_LIMIT).optional(),
  groupId: z.string().max(128).nullable().optional(),
  storeCount: z.int().optional(),
  productCount: z.int().optional(),
  isActive: z.boolean().optional(),
  status: z.enum(OFFER_STATUSES).optional(),
  scope: z.enum(OFFER_SCOPES).optional(),
  discountPercent: z.number().optional(),
  clickCount: z.int().optional(),
  favoritedCount: z.int().optional(),
  createdAt: Timestamp.optional(),
}

export const UpdateOffer = z
  .strictObject({
    ...OfferName,
    title: Title.optional(),
    products: UpdatedProducts.optional().describe('Replaces the list completely.'),
    storeIds: StoreIds.optional().describe('The complete new list of stores.'),
    validFrom: Timestamp.optional(),
    validTo: Timestamp.optional(),
    validUntil: Timestamp.optional().describe('The same as validTo.'),
    merchantColor: Color.optional(),
    tags: z.array(text(50)).max(TAGS_LIMIT).optional(),
    description: Description.optional().describe('Generated if empty.'),
    imageUrl: ImageUrl.nullable().optional(),
    quantity: Quantity.nullable().optional(),
    ...SystemFields,
  })
  .superRefine((offer, context) => {
    checkName(offer, context)
    checkEnds(offer, context)
  })
export type UpdateOffer = z.output<typeof UpdateOffer>

export const DeleteOffer = z.strictObject(OfferName).superRefine(checkName)

const Adjustment = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('percentage'), value: percent(-100, 1_000).describe('−100 … 1000') }),
  z.strictObject({
    type: z.literal('fixed'),
    value: z
      .number()
      .min(-1_000_000)
      .max(1_000_000)
      .refine((euros) => hasDecimals(euros, 2), 'must have at most 2 decimals')
      .describe('EUR added to every price.'),
  }),
])

export const CloneOffer = z
  .strictObject({
    ...OfferName,
    targetStoreIds: StoreIds,
    priceAdjustments: z.record(z.string().max(128), Adjustment).optional().describe('By store id.'),
  })
  .superRefine((clone, context) => {
    checkName(clone, context)
    for (const storeId of Object.keys(clone.priceAdjustments ?? {})) {
      if (clone.targetStoreIds.includes(storeId)) continue
      context.addIssue({
        code: 'custom',
        path: ['priceAdjustments', storeId],
        message: 'is not in targetStoreIds',
        input: storeId,
      })
    }
  })
export type CloneOffer = z.output<typeof CloneOffer>

export const Sandbox = { _sandbox: z.literal(true).optional().describe('With a test key nothing is created.') }

/** Common fields of the responses of createOffer and cloneOffer. */
export const CreatedOffer = {
  groupId: z.string(),
  storeCount: z.int(),
  scope: z.enum(OFFER_SCOPES),
  status: z.enum(OFFER_STATUSES),
  discountPercent: z.int(),
  createdAt: z.string(),
  ...Sandbox,
  ...Success,
}

/** An offer in lists: one entry for all branches. */
export const ListedOffer = z.strictObject({
  id: z.string(),
  groupId: z.string().nullable().describe('null for an offer in a single store.'),
  title: z.string(),
  description: z.string(),
  storeIds: z.array(z.string()),
  validFrom: z.string(),
  validTo: z.string(),
  merchantColor: z.string(),
  tags: z.array(z.string()),
  imageUrl: z.string().optional(),
  quantity: z.int().optional(),
  productCount: z.int(),
  isActive: z.boolean(),
  status: z.enum(OFFER_STATUSES),
  discountPercent: z.int().describe('Highest discount of its products, whole percent.'),
  scope: z.enum(OFFER_SCOPES),
  storeCount: z.int(),
  clickCount: z.int(),
  favoritedCount: z.int(),
  createdAt: z.string(),
})
export type ListedOffer = z.infer<typeof ListedOffer>
