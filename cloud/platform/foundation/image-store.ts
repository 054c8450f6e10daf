/**
 * Storage for uploaded images: a folder or S3-compatible storage (bin/). Names are content hashes, so images never
 * change.
 */
export interface ImageStore {
  /** Stores an image. Idempotent. Durable when it resolves. */
  put(name: string, bytes: Uint8Array, contentType: string): Promise<void>
  /** Reads an image; undefined if it does not exist. */
  get(name: string): Promise<Uint8Array | undefined>
}

/** Names of images: `HASH.EXT`. */
export const IMAGE_NAME = /^[A-Za-z0-9_-]{43}\.(?:jpg|png|webp)$/

export const IMAGE_TYPES: Readonly<Record<string, string>> = { jpg: 'image/jpeg', png: 'image/png', webp: 'image/webp' }
