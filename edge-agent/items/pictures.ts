import { createHash } from 'node:crypto'
import { PICTURE_BYTES_LIMIT, PICTURES_AT_ONCE } from '../../policy/documents/item-documents.ts'
import type { Log } from '../log.ts'
import type { PictureFile } from './item-file.ts'

/** Maximum hashes that the agent does not request again before a restart. */
const REFUSED_LIMIT = 5_000

/**
 * The small pictures of products. Signed item pages name them by SHA-256, and the answers to polls contain their bytes.
 * The agent stores a picture only if its bytes have a requested hash. No decision depends on pictures.
 */
export class Pictures {
  readonly #file: PictureFile
  readonly #log: Log
  /** Hashes that the cloud did not answer with a valid picture. */
  readonly #refused = new Set<string>()

  constructor({ file, log }: { file: PictureFile; log: Log }) {
    this.#file = file
    this.#log = log
  }

  /** Hashes for the next request. Deletes pictures that no item names first. */
  request(): string[] {
    if (this.#refused.size >= REFUSED_LIMIT) return []
    return this.#reading([], () => {
      this.#file.evict()
      return this.#file
        .missing(PICTURES_AT_ONCE + this.#refused.size)
        .filter((hash) => !this.#refused.has(hash))
        .slice(0, PICTURES_AT_ONCE)
    })
  }

  /** Stores the valid pictures of an answer. Returns true if it stored any. */
  receive(requested: readonly string[], answer: unknown): boolean {
    if (requested.length === 0) return false
    const open = new Set(requested)
    const texts: unknown[] = Array.isArray(answer) ? answer.slice(0, PICTURES_AT_ONCE) : []
    for (const text of texts) {
      const bytes = typeof text === 'string' ? Buffer.from(text, 'base64url') : Buffer.alloc(0)
      const hash = createHash('sha256').update(bytes).digest('base64url')
      const why = open.has(hash) ? faultOf(bytes) : 'its hash was not requested'
      if (why !== undefined) this.#log.warn({ hash, why }, 'a picture of a product was not stored')
      else if (this.#reading(false, () => (this.#file.store(hash, bytes), true))) open.delete(hash)
    }
    for (const hash of open) this.#refused.add(hash)
    if (open.size > 0)
      this.#log.warn({ pictures: open.size }, 'pictures are missing: the pages show names only until a restart')
    return open.size < requested.length
  }

  read(hash: string): Uint8Array | undefined {
    return this.#reading(undefined, () => this.#file.read(hash))
  }

  #reading<T>(otherwise: T, work: () => T): T {
    try {
      return work()
    } catch (error) {
      this.#log.warn({ err: error }, 'the pictures of products could not be read or stored')
      return otherwise
    }
  }
}

/** Returns why the page must not show these bytes; undefined if they are a small WebP picture. */
function faultOf(bytes: Buffer): string | undefined {
  if (bytes.length > PICTURE_BYTES_LIMIT) return `it has more than ${PICTURE_BYTES_LIMIT} bytes`
  const isWebp = bytes.toString('latin1', 0, 4) === 'RIFF' && bytes.toString('latin1', 8, 12) === 'WEBP'
  return isWebp ? undefined : 'it is no WebP picture'
}
