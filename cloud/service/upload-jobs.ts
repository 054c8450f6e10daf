import type { UploadJob } from '../platform/foundation/ports.ts'

/** All work on uploaded files, by name. A process loads only what its jobs need. */
export const UPLOAD_JOBS = new Map<string, () => Promise<UploadJob<unknown>>>([
  ['read-products', async () => (await import('../shop/catalogue/import/read-products.ts')).READ_PRODUCTS],
  ['encode-image', async () => (await import('../shop/images/reencode.ts')).ENCODE_IMAGE],
])
