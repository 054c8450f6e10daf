import { Failure } from '../foundation/failure.ts'

/** Maximum number of images that are encoded at once. Each image uses one core and up to 160 MB. */
const AT_WORK_LIMIT = 2
/** Maximum number of waiting uploads. */
const WAITING_LIMIT = 30

/** Makes a queue for encoding images. The queue rejects with 503 if it is full. */
export function imageQueue(): <T>(work: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = []
  let atWork = 0
  return async (work) => {
    if (atWork >= AT_WORK_LIMIT) {
      if (waiting.length >= WAITING_LIMIT)
        throw new Failure('unavailable', 'the server is processing too many images; try again', { retryAfter: 2 })
      await new Promise<void>((resolve) => waiting.push(resolve))
    } else atWork++
    try {
      return await work()
    } finally {
      const next = waiting.shift()
      if (next) next()
      else atWork--
    }
  }
}
