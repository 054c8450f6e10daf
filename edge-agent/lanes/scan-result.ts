import type { AuthorizeAnswer, AuthorizeRequest } from '../decisions/request.ts'
import type { PickupOrder } from '../decisions/pickup-code.ts'
import type { DeviceAlarm } from '../devices/devices.ts'
import { ITEM_IDENTIFIER_KINDS } from '../../policy/item-identifiers.ts'
import type { Caller } from './lane-state.ts'

/** Who is known to have had something scanned; without it anybody may have. */
export interface ScanOrigin {
  /** Of a session of its own. */
  operatorId?: string | undefined
  /** Somebody typed or pressed a button: whoever has signed in at the device is still there. What is scanned, shoppers scan too. */
  byHand?: boolean | undefined
  /** Over HTTP; the device's own scanner needs to be nobody. */
  caller?: Caller | undefined
}

export type ScanResult =
  /** `item`: the tag or line that was named. */
  | { kind: 'decision'; answer: AuthorizeAnswer; item?: string }
  | { kind: 'operator'; name: string }
  /** A receipt that counts for the tags that follow; `left`: units that are still to be released. */
  | { kind: 'receipt'; left: number }
  /** Something went on that nobody asked for. */
  | { kind: 'alarm'; what: DeviceAlarm }
  /** The order of a pick-up code. */
  | { kind: 'order'; order: PickupOrder }
  | {
      kind: 'not_understood'
      why:
        | 'unknown_code'
        | 'needs_connection'
        | 'product_code'
        | 'wrong_badge'
        | 'locked'
        | 'no_store_key'
        | 'out_of_order'
    }

/** A decision as pages show it, with the tag or line that the request names. */
export function decisionResult({ identifiers }: AuthorizeRequest, answer: AuthorizeAnswer): ScanResult {
  const named = ITEM_IDENTIFIER_KINDS.find((kind) => identifiers[kind] !== undefined)
  const item = named && identifiers[named]
  return { kind: 'decision', answer, ...(item !== undefined && { item }) }
}
