import { PICTURE_BYTES_LIMIT } from '../../../policy/documents/item-documents.ts'
import { Failure, invalid } from '../../platform/foundation/failure.ts'
import type { UploadJob } from '../../platform/foundation/ports.ts'

/** A re-encoded image: upright, limited in size, without metadata. */
export interface EncodedImage {
  readonly bytes: Uint8Array
  readonly extension: 'jpg' | 'png' | 'webp'
  readonly width: number
  readonly height: number
}

/** Maximum size of the upload, bytes. */
export const IMAGE_BYTES_LIMIT = 8 * 1024 * 1024
/** Maximum number of pixels. The number is checked before decoding, because a small file can decode to gigabytes. */
const PIXEL_LIMIT = 40_000_000
/** The same of pictures that are decoded as a whole: interlaced, progressive or with 16 bits a colour. */
const WHOLE_PIXEL_LIMIT = 16_000_000
/** Maximum side length of an upload, pixels. A single row or column of millions of pixels takes seconds to scale. */
const SENT_SIDE_LIMIT = 16_384
/** Side length to which larger images are scaled, pixels. */
const SIDE_LIMIT = 2_048

/** Part of `sharp` that is used here. `sharp` is an optional dependency, so the build must work without its types. */
interface Sharp {
  metadata(): Promise<{ format?: string; width?: number; height?: number; isProgressive?: boolean; depth?: string }>
  rotate(): Sharp
  resize(options: { width: number; height: number; fit: 'inside'; withoutEnlargement: boolean }): Sharp
  toFormat(format: 'jpeg' | 'png' | 'webp', options: object): Sharp
  toBuffer(options: { resolveWithObject: true }): Promise<{ data: Buffer; info: { width: number; height: number } }>
}
type MakeSharp = (
  bytes: Uint8Array,
  options: { limitInputPixels: number; failOn: 'error'; sequentialRead: boolean },
) => Sharp

const FORMATS = [
  {
    extension: 'jpg',
    format: 'jpeg',
    options: { quality: 85, mozjpeg: true },
    begins: (b: Uint8Array) => b[0] === 0xff && b[1] === 0xd8 && b[2] === 0xff,
  },
  {
    extension: 'png',
    format: 'png',
    options: { compressionLevel: 9 },
    begins: (b: Uint8Array) => ascii(b, 1, 'PNG\r\n\x1a\n') && b[0] === 0x89,
  },
  {
    extension: 'webp',
    format: 'webp',
    options: { quality: 85 },
    begins: (b: Uint8Array) => ascii(b, 0, 'RIFF') && ascii(b, 8, 'WEBP'),
  },
] as const

function ascii(bytes: Uint8Array, at: number, text: string): boolean {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1', at, at + text.length) === text
}

/**
 * Checks an upload by its content and encodes it again. This removes hidden data and metadata, such as the location of
 * a photo. Throws 400 for other content and 413 for too large files.
 */
export async function reencode(bytes: Uint8Array, field: string): Promise<EncodedImage> {
  if (bytes.length > IMAGE_BYTES_LIMIT)
    throw new Failure('payload-too-large', `${field}: an image has at most ${IMAGE_BYTES_LIMIT} bytes`)
  const found = FORMATS.find((format) => format.begins(bytes))
  if (!found) throw invalid(field, 'must be a JPEG, PNG or WebP image', 'not_an_image')
  const sharp = await loadSharp()
  const read = () => sharp(bytes, { limitInputPixels: PIXEL_LIMIT, failOn: 'error', sequentialRead: true })
  try {
    const { format, width = 0, height = 0, isProgressive, depth } = await read().metadata()
    // sharp detects the format itself.
    if (format !== found.format) throw invalid(field, 'must be a JPEG, PNG or WebP image', 'not_an_image')
    if (Math.max(width, height) > SENT_SIDE_LIMIT)
      throw invalid(field, `a side of an image has at most ${SENT_SIDE_LIMIT} pixels`, 'too_many_pixels')
    if ((isProgressive || depth !== 'uchar') && width * height > WHOLE_PIXEL_LIMIT)
      throw invalid(
        field,
        `an interlaced or progressive image, or one with 16 bits a colour, has at most ${WHOLE_PIXEL_LIMIT / 1_000_000} megapixels: save it without`,
        'too_many_pixels',
      )
    const { data, info } = await read()
      .rotate()
      .resize({ width: SIDE_LIMIT, height: SIDE_LIMIT, fit: 'inside', withoutEnlargement: true })
      .toFormat(found.format, found.options)
      .toBuffer({ resolveWithObject: true })
    return { bytes: data, extension: found.extension, width: info.width, height: info.height }
  } catch (error) {
    if (error instanceof Failure) throw error
    if (/pixel limit/i.test(String(error)))
      throw invalid(field, `an image has at most ${PIXEL_LIMIT / 1_000_000} megapixels`, 'too_many_pixels')
    throw invalid(field, `is damaged: it starts like a ${found.format} file but cannot be decoded`, 'damaged_image')
  }
}

/** Side length and WebP quality of the small picture. The next pair is for pictures that compress badly. */
const SMALL_SIZES = [
  { side: 96, quality: 70 },
  { side: 96, quality: 40 },
  { side: 64, quality: 40 },
  { side: 48, quality: 20 },
]

/**
 * Makes the small picture that agents show: WebP, at most `PICTURE_BYTES_LIMIT`. Undefined if no size is small enough.
 */
async function smallPicture(image: EncodedImage): Promise<Uint8Array | undefined> {
  const sharp = await loadSharp()
  for (const { side, quality } of SMALL_SIZES) {
    const { data } = await sharp(image.bytes, { limitInputPixels: PIXEL_LIMIT, failOn: 'error', sequentialRead: true })
      .resize({ width: side, height: side, fit: 'inside', withoutEnlargement: true })
      .toFormat('webp', { quality })
      .toBuffer({ resolveWithObject: true })
    if (data.length <= PICTURE_BYTES_LIMIT) return data
  }
  return undefined
}

/** Encodes an upload and its small picture outside of the process that serves requests. */
export const ENCODE_IMAGE: UploadJob<{ image: EncodedImage; small: Uint8Array | undefined }> = {
  name: 'encode-image',
  async work(bytes, field) {
    const image = await reencode(bytes, field)
    return { image, small: await smallPicture(image) }
  },
}

async function loadSharp(): Promise<MakeSharp> {
  const name: string = 'sharp'
  try {
    return ((await import(name)) as { default: MakeSharp }).default
  } catch {
    throw new Failure('unavailable', 'this server cannot process images: install the optional package sharp', {
      reason: 'images_unavailable',
    })
  }
}
