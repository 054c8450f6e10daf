import type { LaneStates } from './lane-states.ts'
import type { SignInResult, Operators, Proof } from './operators.ts'
import type { ScanResult } from './scan-result.ts'

export interface LaneOperatorsParts {
  operators: Operators
  states: LaneStates
  /** True if the policy lists the device. */
  isKnown(deviceId: string): boolean
  onOperator(deviceId: string, name: string | null): void
  /** Called after an operator signed in at the device: denied tags may be granted now. */
  onSignIn(deviceId: string): void
}

/** The operators who are signed in at the lanes. */
export class LaneOperators {
  readonly #parts: LaneOperatorsParts

  constructor(parts: LaneOperatorsParts) {
    this.#parts = parts
  }

  signIn(deviceId: string, proof: Proof, callerId: string): SignInResult {
    const { operators, states, isKnown, onOperator, onSignIn } = this.#parts
    const opened = operators.signIn(proof, callerId)
    if (!opened.ok || !isKnown(deviceId)) return opened
    // Ends the session of the previous operator.
    const state = states.of(deviceId)
    if (state.operatorSession !== undefined) operators.close(state.operatorSession)
    state.operatorSession = opened.session
    onOperator(deviceId, opened.name)
    onSignIn(deviceId)
    return opened
  }

  /** Signs an operator in with a badge or card that a device has read. */
  signInWithProof(deviceId: string, proof: Proof, callerId = `device ${deviceId}`): ScanResult {
    const opened = this.signIn(deviceId, proof, callerId)
    if (!opened.ok) return { kind: 'not_understood', why: opened.reason === 'wrong' ? 'wrong_badge' : opened.reason }
    return { kind: 'operator', name: opened.name }
  }

  /** The operator at a device. Restarts the idle time, because the operator pressed a button. */
  actingAt(deviceId: string): { operatorId: string; name: string } | undefined {
    const { operators, states } = this.#parts
    return operators.find(states.find(deviceId)?.operatorSession)
  }

  nameAt(deviceId: string): string | undefined {
    const { operators, states } = this.#parts
    return operators.peek(states.find(deviceId)?.operatorSession)?.name
  }

  signOut(deviceId: string): void {
    const { operators, states, onOperator } = this.#parts
    const state = states.find(deviceId)
    if (state?.operatorSession === undefined) return
    operators.close(state.operatorSession)
    delete state.operatorSession
    onOperator(deviceId, null)
  }
}
