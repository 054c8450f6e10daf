import type { Model } from '../history.ts'

/** Right to release one unit. */
export interface RightState {
  /** Nonce of the lease; null before the first lease. Starts with `?` if no client saw the nonce. */
  readonly nonce: string | null
  readonly device: string | null
  /** Redemption that used the right. */
  readonly usedBy: string | null
  readonly isCancelled: boolean
}

/**
 * Only one device at a time holds the lease of a unit. One redemption uses the right. After a cancellation the right
 * can no longer be leased or used.
 */
export const RIGHT: Model<RightState> = {
  initial: { nonce: null, device: null, usedBy: null, isCancelled: false },
  after(state, { operation, body, answer, outcome, reason }) {
    if (operation === 'markPurchaseCancelled') {
      if (outcome === 'done') return cancelled(state)
      return reason === 'purchase_not_cancellable' && cancelled(state) === undefined ? state : undefined
    }
    if (operation === 'verifyProtectedItem') {
      if (answer['authorized'] === true)
        return leased(state, String(body['deviceId']), String(answer['replayProtectedNonce']))
      // The cloud may refuse only a cancelled or used right, because the cloud transfers the lease of a device without
      // an agent at once.
      if (state.isCancelled) return state
      return answer['reason'] === 'already_redeemed' && state.usedBy !== null ? state : undefined
    }
    const nonce = String(body['replayProtectedNonce'])
    if (outcome === 'done') return used(state, nonce, String(body['redemptionId']))
    const isEnded = state.usedBy !== null || state.isCancelled
    if (reason === 'already_redeemed') return state.usedBy === null ? undefined : state
    return reason === 'token_revoked' && (isEnded || state.nonce !== nonce) ? state : undefined
  },
  unknown(state, { operation, body, from }) {
    if (operation === 'verifyProtectedItem') {
      const device = String(body['deviceId'])
      if (state.usedBy !== null || state.isCancelled || state.device === device) return [state]
      return [{ ...state, nonce: `?${from}`, device }]
    }
    const next =
      operation === 'markPurchaseCancelled'
        ? cancelled(state)
        : used(state, String(body['replayProtectedNonce']), String(body['redemptionId']))
    return next === undefined ? [] : [next]
  },
  // A nonce that has lost the lease never gets the lease back.
  isHopeless: (before, { nonce }, remaining) =>
    before.nonce !== null &&
    before.nonce !== nonce &&
    remaining.some(({ answer }) => answer['replayProtectedNonce'] === before.nonce),
}

/** A purchase can also be cancelled after the release of its units, until they have passed the exit. */
function cancelled(state: RightState): RightState | undefined {
  return state.isCancelled ? undefined : { ...state, isCancelled: true }
}

function leased(state: RightState, device: string, nonce: string): RightState | undefined {
  if (state.usedBy !== null || state.isCancelled) return undefined
  const isHolder = state.device === device
  if (isHolder && state.nonce === nonce) return state
  if (isHolder && state.nonce?.startsWith('?') !== true) return undefined
  return !isHolder && state.nonce === nonce ? undefined : { ...state, nonce, device }
}

function used(state: RightState, nonce: string, redemption: string): RightState | undefined {
  if (state.usedBy !== null) return state.usedBy === redemption ? state : undefined
  return state.nonce === nonce && !state.isCancelled ? { ...state, usedBy: redemption } : undefined
}
