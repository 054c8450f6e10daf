import type { Symbology } from '../../policy/gs1/symbology.ts'
import type { AuthorizeAnswer, AuthorizeRequest } from '../decisions/request.ts'
import type { PickupOrder } from '../decisions/pickup-code.ts'
import type { KnownProduct } from '../items/item-file.ts'
import type { Replica } from '../items/replica.ts'
import type { DeviceAlarm } from '../devices/devices.ts'
import { ITEM_IDENTIFIER_KINDS } from '../../policy/item-identifiers.ts'
import type { Caller } from './lane-states.ts'
import { goodsOf, type Goods, type ProductNames, type UnusedRights, type UsedReceipt } from './unused-rights.ts'

/** Origin of a scan. Empty for the device's own scanner. */
export interface ScanOrigin {
  /** Operator of the caller's session. */
  operatorId?: string | undefined
  /**
   * True if an operator typed the text or pressed a button. At devices where shoppers scan too, only such input
   * restarts the idle time.
   */
  byHand?: boolean | undefined
  /** Kind of code that the device's own scanner reported. */
  symbology?: Symbology | undefined
  /** Caller over HTTP. Undefined for the device's own scanner. */
  caller?: Caller | undefined
  /** Called before the claim, like that of `AuthorizeRequest`. */
  isStillAllowed?: (() => boolean) | undefined
}

export type ScanResult =
  /**
   * `item`: the tag or purchase line that the request named. `product`: name of its product. `picture`: hash of the
   * product's small picture. `next`: the goods of the receipt that are not released yet. `alarmId`: event of the gate
   * alarm, which an operator may handle. `forStaff`: further goods of the receipt, which only staff release. `emergency`: the alarm was raised during an emergency. `used`: the last release
   * by the receipt, if it has nothing left to release.
   */
  | {
      kind: 'decision'
      answer: AuthorizeAnswer
      item?: string
      product?: string
      picture?: string
      next?: readonly Goods[]
      forStaff?: number
      alarmId?: string
      emergency?: true
      used?: UsedReceipt
    }
  | { kind: 'operator'; name: string }
  /**
   * A receipt that covers the tags that follow. `left`: units that are not released yet. `next`: their goods. `used`: the
   * last release, if nothing is left.
   */
  | { kind: 'receipt'; left: number; next?: readonly Goods[]; used?: UsedReceipt }
  /** An alarm of a device, without a request. */
  | { kind: 'alarm'; what: DeviceAlarm }
  /** The order of a pick-up code. */
  | { kind: 'order'; order: PickupOrder }
  | {
      kind: 'not_understood'
      why:
        | 'unknown_code'
        | 'needs_connection'
        | 'needs_staff'
        | 'purchase_not_paid'
        | 'receipt_expired'
        | 'number_ambiguous'
        | 'code_for_exit'
        | 'unknown_code_or_number'
        | 'product_code'
        | 'wrong_badge'
        | 'locked'
        | 'no_store_key'
        | 'out_of_order'
    }

/**
 * Makes the result of a decision, with the tag or purchase line that the request names, and its product. `released`: the
 * goods that a receipt released. `next`: the goods that are left. `forStaff`: further goods that only staff release. `alarmId`: the alarm that the answer raised. `used`: the
 * last release by the receipt.
 */
export function decisionResult(
  items: Pick<Replica, 'productOf' | 'pictureOf'>,
  { identifiers }: AuthorizeRequest,
  answer: AuthorizeAnswer,
  {
    released,
    next,
    forStaff,
    alarmId,
    used,
  }: {
    released: KnownProduct | undefined
    next: readonly Goods[]
    forStaff: number
    alarmId: string | undefined
    used: UsedReceipt | undefined
  },
): ScanResult {
  const named = ITEM_IDENTIFIER_KINDS.find((kind) => identifiers[kind] !== undefined)
  const item = named && identifiers[named]
  const isTag = named === 'epc' || named === 'tagUid' || named === 'tagId'
  const product = isTag && item !== undefined ? items.productOf(named, item) : released?.name
  const picture = isTag && item !== undefined ? items.pictureOf(named, item) : released?.picture
  return {
    kind: 'decision',
    answer,
    ...(item !== undefined && { item }),
    ...(product !== undefined && { product }),
    ...(picture !== undefined && { picture }),
    ...(next.length > 0 && { next }),
    ...(forStaff > 0 && { forStaff }),
    ...(alarmId !== undefined && { alarmId }),
    ...(item === undefined && answer.reason === 'already_redeemed' && used && { used }),
  }
}

/** Makes the result of a receipt at a device that reads the tags after it. */
export function receiptResult(items: ProductNames, rest: UnusedRights): ScanResult {
  const next = goodsOf(rest, items)
  const left = rest.unused.length
  return {
    kind: 'receipt',
    left,
    ...(next.length > 0 && { next }),
    ...(left === 0 && rest.used && { used: rest.used }),
  }
}
