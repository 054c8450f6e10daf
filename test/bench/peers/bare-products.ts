/** A product as the bare routes return it, with the same fields in the same order as the cloud. */
export interface BareProduct {
  productId: string
  storeId: string
  ean: string
  name: string
  price: number
  vat: number
  brand: string
  category: string
  unit: string
  description: string
  createdAt: string
  updatedAt: string
}

export interface BareRow {
  product_id: string
  store_id: string
  ean: string
  name: string
  name_lower: string
  price_cent: number
  vat: number
  brand: string
  brand_lower: string
  category: string
  unit: string
  description: string
  tagged: number
  requires_human_verification: number
  from_pos: number
  pos_product_id: string | null
  created_ms: number
  updated_ms: number
}

export const TABLES = `
  CREATE TABLE api_key (hash TEXT PRIMARY KEY, account TEXT NOT NULL) STRICT;
  CREATE TABLE product (
    product_id TEXT PRIMARY KEY, store_id TEXT NOT NULL, ean TEXT NOT NULL UNIQUE, name TEXT NOT NULL, name_lower TEXT NOT NULL,
    price_cent INTEGER NOT NULL, vat INTEGER NOT NULL, brand TEXT, brand_lower TEXT, category TEXT, unit TEXT, description TEXT,
    tagged INTEGER NOT NULL, requires_human_verification INTEGER NOT NULL, from_pos INTEGER NOT NULL, pos_product_id TEXT,
    created_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL) STRICT;
  CREATE TABLE product_doc (product_id TEXT PRIMARY KEY, doc TEXT NOT NULL) WITHOUT ROWID, STRICT;
`

const COLUMNS =
  'product_id store_id ean name name_lower price_cent vat brand brand_lower category unit description tagged requires_human_verification from_pos pos_product_id created_ms updated_ms'.split(
    ' ',
  )
export const INSERT = `INSERT INTO product (${COLUMNS.join(', ')}) VALUES (${COLUMNS.map((name) => `@${name}`).join(', ')})`

export function rowOf(product: BareProduct): BareRow {
  const { productId, storeId, ean, name, price, vat, brand, category, unit, description, createdAt, updatedAt } =
    product
  return {
    product_id: productId,
    store_id: storeId,
    ean,
    name,
    name_lower: name.toLowerCase(),
    price_cent: Math.round(price * 100),
    vat,
    brand,
    brand_lower: brand.toLowerCase(),
    category,
    unit,
    description,
    tagged: 1,
    requires_human_verification: 0,
    from_pos: 0,
    pos_product_id: null,
    created_ms: Date.parse(createdAt),
    updated_ms: Date.parse(updatedAt),
  }
}

export function toAnswer(row: BareRow) {
  return {
    productId: row.product_id,
    storeId: row.store_id,
    ean: row.ean,
    name: row.name,
    price: row.price_cent / 100,
    vat: row.vat,
    brand: row.brand,
    category: row.category,
    unit: row.unit,
    description: row.description,
    tagged: row.tagged === 1,
    flags: { requiresHumanVerification: row.requires_human_verification === 1 },
    fromPos: row.from_pos === 1,
    posProductId: row.pos_product_id,
    nameLower: row.name_lower,
    brandLower: row.brand_lower,
    createdAt: new Date(row.created_ms).toISOString(),
    updatedAt: new Date(row.updated_ms).toISOString(),
  }
}
