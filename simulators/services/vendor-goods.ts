/** Data of a simulated till or ERP system, independent of its API. */
export interface VendorGoods {
  products: VendorProduct[]
  orders: VendorOrder[]
  suppliers: VendorSupplier[]
}

export interface VendorProduct {
  readonly id: string
  /** Null if the merchant entered no EAN, as in real catalogues. */
  ean: string | null
  name: string
  priceCent: number
  /** Percent. */
  vat: number
  category: string
  stock: number
}

export interface VendorOrder {
  readonly id: string
  readonly supplierId: string
  readonly status: string
  readonly orderedAt: string
  readonly totalCent: number
}

export interface VendorSupplier {
  readonly id: string
  readonly name: string
  readonly email: string
}

const CATEGORIES = ['Hemden', 'Hosen', 'Schirme']

/** Makes products with valid EANs, orders and suppliers. */
export function vendorGoods(count: number): VendorGoods {
  return {
    products: Array.from({ length: count }, (_, i) => ({
      id: String(1_001 + i),
      ean: eanOf(400_638_100_000 + i * 7),
      name: `Artikel ${i + 1}`,
      priceCent: 199 + i * 10,
      vat: i % 4 === 3 ? 7 : 19,
      category: CATEGORIES[i % CATEGORIES.length] ?? '',
      stock: 5 + i,
    })),
    orders: Array.from({ length: 4 }, (_, i) => ({
      id: String(501 + i),
      supplierId: String(71 + (i % 2)),
      status: 'open',
      orderedAt: `2026-11-1${i}`,
      totalCent: 10_000 + i,
    })),
    suppliers: Array.from({ length: 2 }, (_, i) => ({
      id: String(71 + i),
      name: `Lieferant ${i + 1}`,
      email: `bestellung${i + 1}@lieferant.example`,
    })),
  }
}

/** A small shop. */
export const SAMPLE_GOODS: VendorGoods = vendorGoods(10)

function eanOf(twelve: number): string {
  const digits = String(twelve)
  const sum = [...digits].reduce((total, digit, i) => total + Number(digit) * (i % 2 === 0 ? 1 : 3), 0)
  return `${digits}${(10 - (sum % 10)) % 10}`
}
