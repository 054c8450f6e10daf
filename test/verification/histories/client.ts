import type { Clock, Randomness } from '../../../policy/platform.ts'
import type { Cluster } from './cluster.ts'
import type { Fields, Step } from './history.ts'

/** Calls operations at random processes, and records what clients saw. */
export interface Client {
  /** Calls an operation once, without an Idempotency-Key. */
  call(operation: string, body: Fields, as?: Caller): Promise<Step>
  /**
   * Calls an operation with an Idempotency-Key. Sends `twins` equal requests at the same time to several processes, and
   * repeats them until the cloud answers or the attempts are used up. All these requests together are one step.
   */
  callOnce(operation: string, body: Fields, twins?: number, as?: Caller): Promise<Step>
  /** A whole number from 0 to below `limit`. */
  chance(limit: number): number
  /** Position of the next request or answer. */
  now(): number
  /** Violations that need no search: answers 500, and different answers to one Idempotency-Key. */
  readonly violations: string[]
  /** Number of requests by outcome. */
  readonly figures: Record<Step['outcome'], number>
  /** Number of refusals and unknown outcomes by operation and reason. */
  readonly reasons: Map<string, number>
}

/** How to call an operation. */
export interface Caller {
  /** Key or access token. Default: the secret test key. Empty: none. */
  readonly bearer?: string
  /** Number of the process that receives the request. Default: a random process for each attempt. */
  readonly process?: number
}

export interface ClientParts {
  readonly cluster: Cluster
  readonly random: Randomness
  readonly clock: Pick<Clock, 'elapsed'>
  /** Resolves after some ms. */
  pause(ms: number): Promise<void>
}

type Attempt = Omit<Step, 'operation' | 'body'> & { readonly text: string }

const ATTEMPTS = 15
const RETRY_MS = 100
/** Time limit of one request, ms. Longer than the time for which a cloud repeats a write. */
const REQUEST_MS = 70_000
const VIOLATIONS_KEPT = 100

/** Creates the client. */
export function newClient({ cluster, random, clock, pause }: ClientParts): Client {
  let position = 0
  let keys = 0
  const now = () => ++position
  const chance = (limit: number) => Buffer.from(random.bytes(4)).readUInt32LE() % limit
  const violations: string[] = []
  const figures = { done: 0, refused: 0, unknown: 0 }
  const reasons = new Map<string, number>()
  const report = (text: string) => void (violations.length < VIOLATIONS_KEPT && violations.push(text))

  async function send(operation: string, body: Fields, as: Caller, idempotencyKey?: string): Promise<Attempt> {
    const { bearer = cluster.keys.secret } = as
    const from = now()
    const deadline = clock.elapsed() + REQUEST_MS
    for (;;) {
      const address = cluster.address(as.process ?? chance(cluster.size))
      const answer =
        address === undefined ? 'down' : await post(`${address}/${operation}`, body, bearer, idempotencyKey)
      // If the process is down, no request was sent.
      if (answer === 'down' && clock.elapsed() < deadline) {
        await pause(RETRY_MS)
        continue
      }
      const attempt = attemptOf(answer, from, now())
      if (typeof answer === 'object' && answer.status >= 500 && answer.status !== 503)
        report(`${operation} ${JSON.stringify(body)} answered ${answer.status}: ${answer.text}`)
      return attempt
    }
  }

  function note(step: Step): Step {
    figures[step.outcome]++
    if (step.outcome !== 'done') {
      const name = `${step.operation} ${step.reason}`
      reasons.set(name, (reasons.get(name) ?? 0) + 1)
    }
    return step
  }

  async function repeat(operation: string, body: Fields, as: Caller, idempotencyKey: string): Promise<Attempt> {
    let isUnknown = false
    for (let tries = 1; ; tries++) {
      const attempt = await send(operation, body, as, idempotencyKey)
      const isRunning = attempt.reason === 'idempotency_in_progress'
      if (attempt.outcome === 'unknown') isUnknown = true
      if (attempt.outcome === 'done') return attempt
      // An earlier attempt may still be executed after this refusal.
      if (attempt.outcome === 'refused' && !isRunning) return isUnknown ? { ...attempt, outcome: 'unknown' } : attempt
      if (tries >= ATTEMPTS) return { ...attempt, outcome: 'unknown' }
      await pause(RETRY_MS)
    }
  }

  return {
    now,
    chance,
    violations,
    figures,
    reasons,
    async call(operation, body, as = {}) {
      return note({ operation, body, ...(await send(operation, body, as)) })
    },
    async callOnce(operation, body, twins = 1, as = {}) {
      const from = now()
      const idempotencyKey = `key-${++keys}`
      const attempts = await Promise.all(
        Array.from({ length: twins }, () => repeat(operation, body, as, idempotencyKey)),
      )
      const done = attempts.filter(({ outcome }) => outcome === 'done')
      if (new Set(done.map(({ text }) => text)).size > 1)
        report(
          `${operation} ${JSON.stringify(body)} with one key has answers ${done.map(({ text }) => text).join(' and ')}`,
        )
      const first = done.toSorted((a, b) => a.to - b.to)[0] ?? attempts.find(({ outcome }) => outcome === 'unknown')
      const { text: _text, ...seen } = first ?? (attempts[0] as Attempt)
      return note({ operation, body, ...seen, from, to: seen.outcome === 'unknown' ? Infinity : seen.to })
    },
  }
}

type Answer = { readonly status: number; readonly text: string } | 'down' | 'lost'

async function post(url: string, body: Fields, key: string, idempotencyKey: string | undefined): Promise<Answer> {
  const headers = {
    ...(key !== '' && { authorization: `Bearer ${key}` }),
    'content-type': 'application/json',
    ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }),
  }
  try {
    const signal = AbortSignal.timeout(REQUEST_MS)
    const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body), signal })
    return { status: answer.status, text: await answer.text() }
  } catch (error) {
    const { code } = ((error as Error).cause ?? {}) as { code?: string }
    return code === 'ECONNREFUSED' ? 'down' : 'lost'
  }
}

function attemptOf(answer: Answer, from: number, to: number): Attempt {
  if (typeof answer !== 'object')
    return { outcome: 'unknown', answer: {}, reason: answer, from, to: Infinity, text: '' }
  const { status, text } = answer
  const body = parsed(text)
  const reason = String(body['reason'] ?? body['code'])
  if (status === 200) return { outcome: 'done', answer: body, reason: undefined, from, to, text }
  if (status >= 500) return { outcome: 'unknown', answer: {}, reason, from, to: Infinity, text: '' }
  return { outcome: 'refused', answer: {}, reason, from, to, text: '' }
}

function parsed(text: string): Fields {
  try {
    return JSON.parse(text) as Fields
  } catch {
    return {}
  }
}
