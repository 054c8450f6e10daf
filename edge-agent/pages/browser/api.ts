import type { AlarmStep } from '../../../policy/vocabulary.ts'
import type { PageAlarmState, PageResult } from '../model/wire.ts'
import type { Texts } from '../texts/texts.ts'
import { request } from './platform.ts'

/** Answer of the agent to a request. `error` is in English, for technicians. */
type Answer<T> =
  | { ok: true; body: T }
  | {
      ok: false
      fault: Fault
      status: number
      code: string
      retryAfterSeconds: number
      error: string
      details: readonly FieldFault[]
    }

/** A wrong field of a request. `message` is in English, for technicians. */
export interface FieldFault {
  path: string
  message: string
}

type Fault = keyof Texts['requestFailed']

interface SignedIn {
  name: string
  idleSeconds: number
}

export interface OperatorName {
  operatorId: string
  name: string
  hasPin: boolean
}

/** Time limit of a request, ms. The agent answers a scan within 10 s after its decision. */
const LIMIT_MS = 20_000

/** Sends a scanned text and waits for the outcome. `byHand`: a person typed the text or pressed a button. */
export function sendScan(deviceId: string, text: string, byHand: boolean): Promise<Answer<PageResult>> {
  return call('POST', '/v1/scan', { deviceId, text, byHand })
}

/** Signs an operator in at the device. */
export function signIn(deviceId: string, operatorId: string, pin: string): Promise<Answer<SignedIn>> {
  return call('POST', '/v1/operator', { operatorId, pin, deviceId })
}

/** Ends the session of the operator at the device. */
export function signOut(deviceId: string): Promise<Answer<unknown>> {
  return call('DELETE', `/v1/operator?${new URLSearchParams({ deviceId })}`)
}

/** Fetches the name of the operator at the device; null if none is signed in. */
export function signedInOperator(deviceId: string): Promise<Answer<{ name: string | null }>> {
  return call('GET', `/v1/operator?${new URLSearchParams({ deviceId })}`)
}

/**
 * Acknowledges or disposes of an alarm of the gate, in the name of the operator at the gate. `seen`: what the operator
 * knows of the alarm.
 */
export function handleAlarm(
  deviceId: string,
  alarmId: string,
  { step, seen, recoveredCent }: { step: AlarmStep; seen: AlarmStep | 'none'; recoveredCent?: number | undefined },
): Promise<Answer<PageAlarmState>> {
  const unseen = seen === 'acknowledged' ? 'none' : seen
  return call('POST', '/v1/alarms', { deviceId, alarmId, step, seen: unseen, recoveredCent })
}

/** Fetches the operators of the store. */
export function listOperators(): Promise<Answer<{ operators: OperatorName[] }>> {
  return call('GET', '/v1/operators')
}

/** Sends a request to the agent. Never rejects. */
export async function call<T>(method: string, path: string, body?: object, more: RequestInit = {}): Promise<Answer<T>> {
  const headers = { ...(body && { 'content-type': 'application/json' }) }
  try {
    const response = await request(
      path,
      { ...more, method, headers, ...(body && { body: JSON.stringify(body) }) },
      LIMIT_MS,
    )
    const answer = (await response.json()) as T & { code?: string; error?: string; details?: readonly FieldFault[] }
    if (response.ok) return { ok: true, body: answer }
    // The browser is no longer paired. After a reload the page shows how to pair the browser.
    if (answer.code === 'unauthenticated') location.reload()
    const { status } = response
    return {
      ok: false,
      fault: faultOf(answer.code),
      status,
      code: answer.code ?? '',
      retryAfterSeconds: Number(response.headers.get('retry-after') ?? 0),
      error: answer.error ?? '',
      details: answer.details ?? [],
    }
  } catch {
    return { ok: false, fault: 'unreachable', status: 0, code: '', retryAfterSeconds: 0, error: '', details: [] }
  }
}

function faultOf(code: string | undefined): Fault {
  return code === 'ledger_full' || code === 'ledger_unavailable' ? code : 'other'
}
