import type { DemoFile } from './demo-secrets.ts'
import type { Shopper } from '../../simulators/services/shopper.ts'

/** Outlines of clothes on a canvas of 96 × 96, by words in a product's name. The last one has no word. */
const SHAPES: readonly (readonly [names: RegExp, path: string])[] = [
  [/jeans|hose/i, 'M30 12H66L72 86H54L48 40L42 86H24Z'],
  [/socken/i, 'M36 10H58V52L74 66Q80 80 64 84Q56 86 50 78L36 60Z'],
  [/schal/i, 'M28 14Q48 34 68 14L74 28Q64 38 58 38L64 84H44L46 40Q32 38 22 28Z'],
  [/jacke|mantel/i, 'M36 10L48 18L60 10L80 24L86 70H74L70 44V86H50V30H46V86H26V44L22 70H10L16 24Z'],
  [/./, 'M34 14Q48 26 62 14L86 28L78 48L68 42V84H28V42L18 48L10 28Z'],
]
const COLOURS = ['#2b6777', '#8c4a6b', '#47629c', '#6b7f3a', '#a5623a', '#4d4f59']

/** Part of `sharp` that draws. `sharp` is an optional dependency. */
type Draw = (svg: Buffer) => { png(): { toBuffer(): Promise<Buffer> } }

/** Uploads the pictures again if the cloud has another address than at the last start: their addresses contain it. */
export async function keepPictures({
  api,
  storeId,
  baseUrl,
  file,
}: {
  api: Shopper
  storeId: string
  baseUrl: string
  file: DemoFile
}): Promise<void> {
  if (file.read().picturesAt === baseUrl) return
  await uploadPictures(api, storeId)
  file.write({ picturesAt: baseUrl })
}

/** Gives the clothes of the sandbox drawn pictures. Without the optional package `sharp` they have none. */
async function uploadPictures(api: Shopper, storeId: string): Promise<void> {
  const name: string = 'sharp'
  const draw = await import(name).then(
    (sharp: { default: Draw }) => sharp.default,
    () => undefined,
  )
  if (!draw) return
  const { products } = (await api.call('fetchProducts', { storeId, limit: 100, category: 'bekleidung' })) as {
    products: { productId: string; name: string }[]
  }
  for (const [i, product] of products.entries()) {
    const shape = SHAPES.find(([names]) => names.test(product.name))?.[1] ?? ''
    const svg =
      `<svg xmlns="http://www.w3.org/2000/svg" width="384" height="384" viewBox="0 0 96 96"><rect width="96" height="96" ` +
      `fill="#f1efe9"/><path d="${shape}" fill="${COLOURS[i % COLOURS.length]}"/></svg>`
    const png = await draw(Buffer.from(svg)).png().toBuffer()
    await api.call('uploadImageToProduct', {
      productId: product.productId,
      imageBase64: png.toString('base64'),
    })
  }
}
