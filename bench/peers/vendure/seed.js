// node seed.js DATABASE PRODUCTS.json: makes a shop of these products, one variant each, and its search index.
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
  await app.get(JobQueueService).start()
  await app.get(SearchService).reindex(ctx)
  await indexed(app.get(TransactionalConnection).rawConnection)
  await app.close()
}

/** Waits until the search index holds them all. */
async function indexed(connection) {
  for (let tries = 0; tries < 6_000; tries++) {
    const [job] = await connection.query("SELECT state, error FROM job_record WHERE queueName = 'update-search-index' ORDER BY id DESC LIMIT 1")
    if (job?.state === 'COMPLETED') return
    if (job?.state === 'FAILED') throw new Error(`the search index could not be made: ${job.error}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  throw new Error('the search index was not made in ten minutes')
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(error)
    process.exit(1)
  },
)
