import type { Figure } from './figure.ts'

/** All figures by name, in the order of a run. A figure is imported only by the process that runs it. */
const FIGURES: Readonly<Record<string, () => Promise<Figure>>> = {
  'verify-token': async () => (await import('./verify-token.ts')).verifyToken,
  'verify-and-redeem': async () => (await import('./verify-and-redeem.ts')).verifyAndRedeem,
  'verify-protected-item': async () => (await import('./verify-protected-item.ts')).verifyProtectedItem,
  'product-page': async () => (await import('./catalogue/product-page.ts')).productPage,
  'product-by-ean': async () => (await import('./catalogue/product-by-ean.ts')).productByEan,
  'product-insert': async () => (await import('./catalogue/product-insert.ts')).productInsert,
  memory: async () => (await import('./catalogue/memory.ts')).memory,
  'catalogue-size': async () => (await import('./catalogue/catalogue-size.ts')).catalogueSize,
  'product-import': async () => (await import('./catalogue/product-import.ts')).productImport,
  'hostile-uploads': async () => (await import('./catalogue/hostile-uploads.ts')).hostileUploads,
  'checkout-journey': async () => (await import('./retail/checkout-journey.ts')).checkoutJourney,
  'record-sales': async () => (await import('./retail/record-sales.ts')).recordSales,
  'webhook-fan-out': async () => (await import('./retail/webhook-fan-out.ts')).webhookFanOut,
  'analytics-read': async () => (await import('./retail/analytics-read.ts')).analyticsRead,
  'sales-export': async () => (await import('./retail/sales-export.ts')).salesExport,
  console: async () => (await import('./console.ts')).consolePages,
  gate: async () => (await import('./gate.ts')).gate,
  'tag-reads': async () => (await import('./tag-reads.ts')).tagReads,
  'till-sales': async () => (await import('./till-sales.ts')).tillSales,
  'grant-to-relay': async () => (await import('./grant-to-relay.ts')).grantToRelay,
  'sale-to-gate': async () => (await import('./loopback/sale-to-gate.ts')).saleToGate,
  'code-to-barrier': async () => (await import('./loopback/code-to-barrier.ts')).codeToBarrier,
  'alarm-on-page': async () => (await import('./loopback/alarm-on-page.ts')).alarmOnPage,
  footprint: async () => (await import('./loopback/footprint.ts')).footprint,
  recovery: async () => (await import('./recovery.ts')).recovery,
  drain: async () => (await import('./drain.ts')).drain,
  'store-day': async () => (await import('./store-day.ts')).storeDay,
  postgres: async () => (await import('./postgres/postgres.ts')).postgres,
}

export const FIGURE_NAMES: readonly string[] = Object.keys(FIGURES)

/** Loads a figure. Throws if no figure has this name. */
export function loadFigure(name: string): Promise<Figure> {
  const load = FIGURES[name]
  if (!load) throw new Error(`there is no figure ${name}; see --help`)
  return load()
}
