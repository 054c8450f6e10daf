import type { Log } from '../log.ts'

/** Something that somebody should hear of at once. */
export interface PushNotice {
  to: 'store' | 'customer'
  storeId: string
  orderId: string
  status: string
  /** The customer, by the merchant's id. */
  userId?: string
}

/** The plug for a push service: called after the commit, must not throw and must not wait. What may not be lost goes by webhook. */
export type PushSender = (notice: PushNotice) => void

/** The sender of an installation that has none: a line in the log. */
export function logPush(log: Log): PushSender {
  return (notice) => log.info({ ...notice }, 'push notice')
}
