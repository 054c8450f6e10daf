import type { PageResult } from '../model/wire.ts'
import type { Texts } from '../texts/texts.ts'
import { request } from './platform.ts'

/** What came of asking the agent for something; `error` is in English, for those who set machines up. */
export type Answer<T> =
  | { ok: true; body: T }
  | { ok: false; fault: Fault; status: number; code: string; retryAfterSeconds: number; error: string }

export type Fault = keyof Texts['requestFailed']

export interface SignedIn {
  name: string
  idleSeconds: number
}

export interface OperatorName {
  operatorId: string
  name: string
  hasPin: boolean
}

/** The agent answers a scan within 10 s and its decision's time. */
const LIMIT_MS = 20_000

/** Sends what was scanned at this page and waits for the outcome. `byHand`: typed, or a button was pressed. */
export function sendScan(deviceId: string, text: string, byHand: boolean): Promise<Answer<PageResult>> {
  return call('POST', '/v1/scan', { deviceId, text, byHand })
}

/** Signs an operator in at the device. */
export function signIn(deviceId: string, operatorId: string, pin: string): Promise<Answer<SignedIn>> {
  return call('POST', '/v1/operator', { operatorId, pin, deviceId })
}

/** Signs whoever is there out. */
export function signOut(deviceId: string): Promise<Answer<unknown>> {
  return call('DELETE', `/v1/operator?${new URLSearchParams({ deviceId })}`)
}

/** Name of the operator at the device, null for nobody. */
export function signedInOperator(deviceId: string): Promise<Answer<{ name: string | null }>> {
  return call('GET', `/v1/operator?${new URLSearchParams({ deviceId })}`)
}

/** Operators who may sign in with a PIN here. */
export function listOperators(): Promise<Answer<{ operators: OperatorName[] }>> {
  return call('GET', '/v1/operators')
}

/** Asks the agent's local HTTP; never rejects. */
export async function call<T>(method: string, path: string, body?: object, more: RequestInit = {}): Promise<Answer<T>> {
  const headers = { ...(body && { 'content-type': 'application/json' }) }
  try {
    const response = await request(
      path,
      { ...more, method, headers, ...(body && { body: JSON.stringify(body) }) },
      LIMIT_MS,
    )
    const answer = (await response.json()) as T & { code?: string; error?: string }
    if (response.ok) return { ok: true, body: answer }
    // The pairing of this browser has ended: the agent then sends the page that says how to pair it.
    if (answer.code === 'unauthenticated') location.reload()
    const { status } = response
    return {
      ok: false,
      fault: faultOf(answer.code),
      status,
      code: answer.code ?? '',
      retryAfterSeconds: Number(response.headers.get('retry-after') ?? 0),
      error: answer.error ?? '',
    }
  } catch {
    return { ok: false, fault: 'unreachable', status: 0, code: '', retryAfterSeconds: 0, error: '' }
  }
}

function faultOf(code: string | undefined): Fault {
  return code === 'ledger_full' || code === 'ledger_unavailable' ? code : 'other'
}
