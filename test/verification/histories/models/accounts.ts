import type { Model, Step } from '../history.ts'

/** State of an API key. A rolled key stays active until its overlap ends, which takes longer than a run. */
export type KeyState = 'active' | 'ended'

/** A key can be used and rolled until it ends. */
export const KEY: Model<KeyState> = {
  initial: 'active',
  after(state, step) {
    const { operation, outcome, reason } = step
    if (outcome === 'done') {
      if (operation === 'revokeApiKey') return 'ended'
      return state === 'active' ? afterRoll(state, step) : undefined
    }
    return reason === 'key_ended' || reason === 'unauthenticated' ? (state === 'ended' ? state : undefined) : state
  },
  unknown(state, step) {
    if (step.operation === 'revokeApiKey') return ['ended']
    return state === 'active' ? [afterRoll(state, step)] : []
  },
}

function afterRoll(state: KeyState, { operation, body }: Step): KeyState {
  return operation === 'rollApiKey' && body['overlapHours'] === 0 ? 'ended' : state
}

/** An offer can be changed until one request deletes it. */
export const OFFER: Model<'listed' | 'deleted'> = {
  initial: 'listed',
  after(state, { operation, outcome, reason }) {
    const isListed = state === 'listed'
    if (outcome === 'done') return isListed ? (operation === 'deleteOffer' ? 'deleted' : state) : undefined
    return reason === 'not-found' && isListed ? undefined : state
  },
  unknown(state, { operation }) {
    if (state !== 'listed') return []
    return [operation === 'deleteOffer' ? 'deleted' : state]
  },
}
