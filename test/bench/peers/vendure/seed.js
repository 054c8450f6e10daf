// node seed.js DATABASE PRODUCTS.json: creates a shop with these products, one variant each, and its search index.
const { readFileSync } = require('node:fs')
const { configOf } = require('./config.js')
const {
  bootstrap,
  FastImporterService,
  JobQueueService,
  LanguageCode,
  Populator,
  RequestContextService,
  SearchService,
  TaxCategoryService,
  TransactionalConnection,
} = require('@vendure/core')

const [database, file] = process.argv.slice(2)

const INITIAL = {
  defaultLanguage: LanguageCode.en,
  defaultZone: 'Europe',
  countries: [{ code: 'DE', name: 'Germany', zone: 'Europe' }],
  taxRates: [{ name: 'Standard', percentage: 19 }, { name: 'Reduced', percentage: 7 }],
  shippingMethods: [],
  paymentMethods: [],
  collections: [],
}

async function main() {
  const app = await bootstrap(configOf({ database, port: 0, synchronize: true }))
  await app.get(Populator).populateInitialData(INITIAL)
  const ctx = await app.get(RequestContextService).create({ apiType: 'admin' })
  const categories = (await app.get(TaxCategoryService).findAll(ctx)).items
  const taxOf = (vat) => categories.find(({ name }) => name.startsWith(vat === 7 ? 'Reduced' : 'Standard')).id
  const importer = app.get(FastImporterService)
  await importer.initialize()
  for (const { ean, name, price, vat, description } of JSON.parse(readFileSync(file, 'utf8'))) {
    const productId = await importer.createProduct({
      enabled: true,
      translations: [{ languageCode: LanguageCode.en, name, slug: `product-${ean}`, description }],
    })
    await importer.createProductVariant({
      productId,
      sku: ean,
      price: Math.round(price * 100),
      taxCategoryId: taxOf(vat),
      stockOnHand: 100,
      optionIds: [],
      translations: [{ languageCode: LanguageCode.en, name }],
    })
  }
  const connection = app.get(TransactionalConnection).rawConnection
  // Each variant enqueued its own index job. Replaces these jobs by one job for all variants.
  await connection.query('DELETE FROM job_record')
  await app.get(SearchService).reindex(ctx)
  await app.get(JobQueueService).start()
  await settled(connection)
  await app.close()
}

/** Waits until all jobs are done, including the search index. */
async function settled(connection) {
  for (let tries = 0; tries < 6_000; tries++) {
    const [{ open, failed }] = await connection.query(
      "SELECT sum(isSettled = 0) AS open, sum(state = 'FAILED') AS failed FROM job_record",
    )
    if (failed > 0) throw new Error('the search index could not be created')
    if (open === 0) return
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  throw new Error('the search index was not created within ten minutes')
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(error)
    process.exit(1)
  },
)
