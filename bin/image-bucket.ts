import { AwsClient } from 'aws4fetch'
import { IMAGE_NAME, type ImageStore } from '../cloud/platform/foundation/image-store.ts'

/** A bucket of an S3-compatible storage: AWS, MinIO, Ceph, R2 … */
export interface BucketSettings {
  /** Address with the bucket as path, such as `https://s3.eu-central-1.amazonaws.com/my-images`. */
  url: string
  region: string
  accessKeyId: string
  secretAccessKey: string
}

const ANSWER_WITHIN_MS = 10_000
/** Maximum size of a stored image, bytes. The cloud stores no larger images. */
const ANSWER_LIMIT = 32 * 1024 * 1024

/** Images in a bucket. */
export function imageBucket({ url, region, accessKeyId, secretAccessKey }: BucketSettings): ImageStore {
  const client = new AwsClient({ accessKeyId, secretAccessKey, region, service: 's3', retries: 2 })
  const addressOf = (name: string) => {
    if (!IMAGE_NAME.test(name)) throw new Error(`not the name of an image: ${name.slice(0, 80)}`)
    return `${url.replace(/\/$/, '')}/${name}`
  }
  return {
    async put(name, bytes, contentType) {
      const answer = await client.fetch(addressOf(name), {
        method: 'PUT',
        headers: { 'content-type': contentType, 'cache-control': 'public, max-age=31536000, immutable' },
        body: bytes as Uint8Array<ArrayBuffer>,
        signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
        redirect: 'error',
      })
      await answer.body?.cancel()
      if (!answer.ok) throw new Error(`the image storage answered ${answer.status} to PUT`)
    },
    async get(name) {
      const answer = await client.fetch(addressOf(name), {
        signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
        redirect: 'error',
      })
      if (answer.status === 404 || answer.status === 403) {
        await answer.body?.cancel()
        return undefined
      }
      if (!answer.ok || Number(answer.headers.get('content-length') ?? 0) > ANSWER_LIMIT) {
        await answer.body?.cancel()
        throw new Error(`the image storage answered ${answer.status} to GET`)
      }
      return new Uint8Array(await answer.arrayBuffer())
    },
  }
}
