import type { Hono } from 'hono'
import { csvTemplate, xlsxTemplate } from '../../shop/catalogue/import/template.ts'

const XLSX = 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet'

/** Routes for product file templates, for anyone. */
export function templateRoutes(app: Hono): void {
  const csv = csvTemplate()
  let xlsx: Promise<Uint8Array> | undefined
  const headers = (name: string, type: string) => ({
    'content-type': type,
    'content-disposition': `attachment; filename="${name}"`,
    'cache-control': 'public, max-age=3600',
  })
  app.get('/templates/products.csv', (c) => c.body(csv, 200, headers('products.csv', 'text/csv; charset=utf-8')))
  app.get('/templates/products.xlsx', async (c) => {
    xlsx ??= xlsxTemplate()
    return c.body((await xlsx) as Uint8Array<ArrayBuffer>, 200, headers('products.xlsx', XLSX))
  })
}
