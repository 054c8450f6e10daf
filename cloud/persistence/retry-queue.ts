import { DatabaseBusy } from './database.ts'

/** Maximum number of transactions in the queue. If each transaction takes 5 ms, the last one waits 5 s. */
export const RETRY_LIMIT = 1_000
/** Maximum number of attempts of one transaction. */
const ATTEMPTS = 100

/**
 * Retries transactions that failed because of a conflict. The queue runs them one at a time, so that they do not
 * conflict with each other again. Throws `DatabaseBusy` if the queue is full.
 */
export function retryQueue(isRetryable: (error: unknown) => boolean): <T>(attempt: () => Promise<T>) => Promise<T> {
  let waiting = 0
  let last: Promise<unknown> = Promise.resolve()

  async function run<T>(attempt: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await attempt()
      } catch (error) {
        if (tries >= ATTEMPTS || !isRetryable(error)) throw error
      }
    }
  }

  return <T>(attempt: () => Promise<T>): Promise<T> => {
    if (waiting >= RETRY_LIMIT) return Promise.reject(new DatabaseBusy('too many transactions wait to run again'))
    waiting++
    const result = last.then(() => run(attempt)).finally(() => waiting--)
    last = result.catch(() => undefined)
    return result
  }
}
