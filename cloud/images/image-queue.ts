import { Failure } from '../foundation/failure.ts'

/** Images that are worked on at a time: each takes a core and up to 160 MB. */
const AT_WORK_LIMIT = 2
/** Uploads that wait for that at most. */
const WAITING_LIMIT = 30

/** Lets few at a time through and tells the rest to come back: 503. */
export function imageQueue(): <T>(work: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = []
  let atWork = 0
  return async (work) => {
    if (atWork >= AT_WORK_LIMIT) {
      if (waiting.length >= WAITING_LIMIT)
        throw new Failure('unavailable', 'too many images are being taken', { retryAfter: 2 })
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
