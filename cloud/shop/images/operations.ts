import { z } from 'zod'
import { findProduct, isSoldIn } from '../catalogue/queries.ts'
import { storePicture, setProductImage } from '../catalogue/product-operations.ts'
import { originOf } from '../../platform/foundation/config.ts'
import { knownCaller, rolesFrom } from '../../platform/foundation/caller.ts'
import { Failure, invalid, notFound, precondition } from '../../platform/foundation/failure.ts'
import { holderOf, sharedSlots } from '../../platform/foundation/shared-slots.ts'
import { Id, Success } from '../../platform/operations/fields.ts'
import { hashOfBytes } from '../../platform/operations/idempotency.ts'
import { operation, type Call, type Services } from '../../platform/operations/operation.ts'
import { FileField, type UploadedFile } from '../../platform/operations/validation.ts'
import { isTest } from '../purchases/present.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { prepared } from '../../platform/persistence/prepared.ts'
import { IMAGE_TYPES } from '../../platform/foundation/ports.ts'
import { IMAGE_BYTES_LIMIT, ENCODE_IMAGE, type EncodedImage } from './reencode.ts'

const MULTIPART_LIMIT = IMAGE_BYTES_LIMIT + 64 * 1024
const JSON_LIMIT = 11 * 1024 * 1024
/** Each image that is encoded uses one core and up to 250 MB. */
const withSlot = sharedSlots(
  { atWork: 2, atWorkOfOne: 1, waiting: 30, waitingOfOne: 10 },
  { text: 'the server is processing too many images; try again in 2 s', retryAfter: 2 },
)

/** Maximum bytes of all pictures that an account uploaded: about 60,000 in live data. */
const IMAGE_ROOM = { live: 20_000_000_000, test: 1_000_000_000 }

const readRoom = prepared((db, p: { tenant: string }) =>
  db.selectFrom('image_room').select('bytes').where('tenant', '=', p.tenant),
)

/** Throws 409 if the pictures of the tenant leave no room for one of this size. */
async function assertRoom(db: Db, tenant: string, bytes: number): Promise<void> {
  const [room] = await readRoom(db, { tenant })
  const limit = isTest(tenant) ? IMAGE_ROOM.test : IMAGE_ROOM.live
  if (Number(room?.bytes ?? 0) + bytes > limit)
    throw precondition(
      'too_many_images',
      `the pictures of this account have ${limit / 1_000_000_000} GB, which is the most: set imageUrl to pictures at an address of your own`,
    )
}

const addToRoom = prepared((db, p: { tenant: string; bytes: number }) =>
  db
    .insertInto('image_room')
    .values({ tenant: p.tenant, bytes: p.bytes })
    .onConflict((c) => c.column('tenant').doUpdateSet((eb) => ({ bytes: eb('image_room.bytes', '+', p.bytes) })))
    .returning('bytes'),
)

/** Returns the tenant. Throws 404 if no store that the caller may access sells the product. */
async function assertOwn(call: Call, productId: string): Promise<string> {
  const { tenant, ...caller } = knownCaller(call.caller)
  const product = await findProduct(call.db, tenant, { productId })
  const storeIds = caller.kind === 'agent' ? [caller.storeId] : caller.storeIds
  if (!product || (storeIds !== null && !(await isSoldIn(call.db, productId, storeIds)))) throw notFound('product')
  return tenant
}

function bytesOf({
  imageBase64,
  snapshot,
}: {
  imageBase64?: string | undefined
  snapshot?: UploadedFile | undefined
}): { bytes: Uint8Array; field: string } {
  if (snapshot && imageBase64 !== undefined)
    throw invalid('snapshot', 'send the image once: as snapshot or as imageBase64')
  if (snapshot) return { bytes: snapshot.bytes, field: 'snapshot' }
  if (imageBase64 === undefined)
    throw invalid(
      'imageBase64',
      'is missing: send the image as Base64, or as the file "snapshot" of multipart/form-data',
      'missing',
    )
  const text = imageBase64.replace(/^data:image\/[a-z+.-]{1,20};base64,/, '')
  if (!/^[A-Za-z0-9+/\s]*(?:=\s*){0,2}$/.test(text) || lettersIn(text) % 4 === 1)
    throw invalid('imageBase64', 'is not Base64')
  return { bytes: Buffer.from(text, 'base64'), field: 'imageBase64' }
}

/** Number of characters without white space. To replace millions of blanks would take seconds. */
function lettersIn(text: string): number {
  let letters = 0
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) > 0x20) letters++
  return letters
}

async function store({ images, log }: Services, name: string, image: EncodedImage): Promise<void> {
  try {
    await images.put(name, image.bytes, IMAGE_TYPES[image.extension] ?? '')
  } catch (error) {
    log.error({ err: error }, 'a picture could not be stored')
    throw new Failure('unavailable', 'pictures cannot be stored at the moment; try again', {
      reason: 'images_unavailable',
      retryAfter: 10,
    })
  }
}

export const uploadImageToProduct = operation({
  name: 'uploadImageToProduct',
  area: 'catalogue',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('manager'),
  summary: 'Sets the picture of a product.',
  description:
    'JPEG, PNG or WebP, detected by content; at most 8 MiB, 40 megapixels and 16,384 pixels a side. As Base64 in JSON, or as the file `snapshot` of multipart/form-data, also at `{base_url}/upload`. ' +
    'The cloud turns pictures upright, scales them to at most 2,048 pixels and removes metadata.',
  changes: true,
  bodyLimit: JSON_LIMIT,
  multipart: { fileField: 'snapshot', limit: MULTIPART_LIMIT, alsoJson: true },
  request: z.strictObject({
    productId: Id,
    imageBase64: z
      .string()
      .min(1)
      .max(JSON_LIMIT)
      .optional()
      .describe('The picture as Base64, with or without data: prefix.'),
    snapshot: FileField.optional(),
  }),
  response: z.strictObject({
    ...Success,
    productId: z.string(),
    imageUrl: z.string(),
    media: z.strictObject({ snapshot: z.string() }),
    width: z.int(),
    height: z.int(),
  }),
  example: { productId: 'prd_01KANX6Y7C3V9Q2M8R5T4W6Z1B', imageBase64: '/9j/4AAQSkZJRgABAQ…' },
  async steps(work, { productId, ...sent }) {
    const { services } = work
    const { bytes, field } = bytesOf(sent)
    await work.read((call) => assertOwn(call, productId))
    const { image, small } = await withSlot(holderOf(work.caller), () =>
      services.uploads.run(ENCODE_IMAGE, bytes, field),
    )
    const name = `${hashOfBytes(image.bytes)}.${image.extension}`
    // The image is stored before the database references it, because an unreferenced image is harmless.
    await work.read(async (call) => assertRoom(call.db, await assertOwn(call, productId), image.bytes.length))
    await store(services, name, image)
    const imageUrl = `${originOf(services.config)}/images/${name}`
    await work.step(async (call) => {
      const tenant = await assertOwn(call, productId)
      const isNew = (await findProduct(call.db, tenant, { productId }))?.image_url !== imageUrl
      if (isNew) await addToRoom(call.db, { tenant, bytes: image.bytes.length })
      if (small) await storePicture(call.db, imageUrl, small)
      await setProductImage(call.db, tenant, productId, imageUrl, call.nowMs)
      call.changed(productId)
    })
    return {
      success: true as const,
      productId,
      imageUrl,
      media: { snapshot: imageUrl },
      width: image.width,
      height: image.height,
    }
  },
})
