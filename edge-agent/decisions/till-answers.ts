import type { ItemStatus } from '../../policy/vocabulary.ts'
import type { Warning } from './till-doubts.ts'

/** What an agent answers a till (ADR till-sales). */

export interface SaleAnswer {
  saleId: string
  /** True once the cloud has the sale. */
  synced: boolean
  /** Receipt that this agent signed for the sale. */
  receiptToken?: string
  items: { lineId: string; tag: string; itemStatus?: ItemStatus }[]
  warnings: Warning[]
}

export interface VoidAnswer {
  saleId: string
  synced: boolean
  /** True if this agent does not know the sale as paid: the void applies to it as soon as it arrives. */
  waiting: boolean
  items: { tag: string; itemStatus: ItemStatus }[]
}

export interface ReturnAnswer {
  returnId: string
  synced: boolean
  /** True if this agent does not know the goods of the sale: they alarm as soon as it, or the cloud, knows them. */
  waiting: boolean
  items: { tag: string; itemStatus: ItemStatus }[]
}

/** Why a report of a till is refused. */
export class TillRefusal extends Error {
  override name = 'TillRefusal'
  readonly code:
    | 'sales_not_allowed'
    | 'right_missing'
    | 'sale_conflict'
    | 'too_many_open_sales'
    | 'too_many_waiting_returns'
    | 'sale_queue_full'
    | 'invalid'
  /** Field, for `invalid`. */
  readonly path: string | undefined
  constructor(code: TillRefusal['code'], message: string, path?: string) {
    super(message)
    this.code = code
    this.path = path
  }
}
