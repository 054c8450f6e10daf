/** Where uploaded images lie: a folder, or S3-compatible storage (bin/). Names are content hashes, so nothing is ever changed in place. */
export interface ImageStore {
  /** Keeps the bytes under the name; again with the same name does no harm. Durable when it resolves. */
  put(name: string, bytes: Uint8Array, contentType: string): Promise<void>
  /** The bytes, or undefined when there are none of that name. */
  get(name: string): Promise<Uint8Array | undefined>
}

/** `HASH.EXT`, as `put` gets it. */
export const IMAGE_NAME = /^[A-Za-z0-9_-]{43}\.(?:jpg|png|webp)$/

export const IMAGE_TYPES: Readonly<Record<string, string>> = { jpg: 'image/jpeg', png: 'image/png', webp: 'image/webp' }
