/** JSON object of the API. */
export type Fields = Record<string, unknown>

/**
 * What a client knows about its request.
 *
 * - `done`: the cloud executed it and answered 200.
 * - `refused`: the cloud answered 4xx, so it changed nothing.
 * - `unknown`: no answer, or 5xx. The cloud may have executed the request, or may still do so.
 */
export type Outcome = 'done' | 'refused' | 'unknown'

/** One request of a client. Repetitions with the same Idempotency-Key are one step. */
export interface Step {
  readonly operation: string
  readonly body: Fields
  readonly outcome: Outcome
  /** Body of the answer; empty if the outcome is unknown. */
  readonly answer: Fields
  /** Reason or code of a refusal. */
  readonly reason: string | undefined
  /** Position of the first request in the order of all requests and answers of the run. */
  readonly from: number
  /** Position of the answer; `Infinity` if the outcome is unknown. */
  readonly to: number
}

/** Steps on one object, such as a unit or a stock row, with the rules that they must follow. */
export interface ObjectHistory {
  /** Name for reports. */
  readonly name: string
  readonly steps: readonly Step[]
  /** Returns true or false, or undefined if the search took too long. */
  isPossible(): boolean | undefined
}

/**
 * How one object may change. States are JSON values.
 *
 * `after` returns the state after a step with this answer, or undefined if the cloud cannot give this answer in this
 * state. `unknown` returns the possible states after a step whose answer is unknown and that was executed.
 */
export interface Model<S> {
  readonly initial: S
  after(state: S, step: Step): S | undefined
  unknown(state: S, step: Step): readonly S[]
  /** True if the change from `before` to `after` makes one of the remaining steps impossible. Shortens the search. */
  isHopeless?(before: S, after: S, remaining: readonly Step[]): boolean
}

/** Maximum number of states that one search visits. */
const SEARCH_LIMIT = 20_000

/**
 * True if there is an order of the steps in which each answer is right (linearizability; Wing and Gong 1993). In this
 * order, each step comes after all steps that were answered before it started. Returns undefined if the search gives
 * up.
 */
export function isLinearizable<S>(steps: readonly Step[], model: Model<S>): boolean | undefined {
  const all = steps.toSorted((a, b) => a.from - b.from)
  const visited = new Set<string>()
  let isExhausted = false

  function search(state: S, remaining: readonly Step[]): boolean {
    const open = withoutReads(state, remaining, model)
    const firstAnswer = firstAnswerOf(open)
    if (firstAnswer === Infinity) return true
    const name = `${open.map(({ from }) => from).join()} ${JSON.stringify(state)}`
    if (visited.has(name)) return false
    if (visited.size >= SEARCH_LIMIT) isExhausted = true
    if (isExhausted) return false
    visited.add(name)
    // The order of the answers is usually close to the order of the commits.
    const next = open.filter(({ from }) => from < firstAnswer).sort((a, b) => a.to - b.to)
    return next.some((step) => {
      const others = open.filter((other) => other !== step)
      return nextStates(model, state, step).some(
        (after) => model.isHopeless?.(state, after, others) !== true && search(after, others),
      )
    })
  }

  return search(model.initial, all) || (isExhausted ? undefined : false)
}

/**
 * Removes the steps that may come next in the order and do not change the state. If a valid order exists, a valid order
 * with these steps first also exists.
 */
function withoutReads<S>(state: S, steps: readonly Step[], model: Model<S>): readonly Step[] {
  for (let open = steps; ;) {
    const firstAnswer = firstAnswerOf(open)
    const others = open.filter(
      (step) => step.outcome === 'unknown' || step.from > firstAnswer || model.after(state, step) !== state,
    )
    if (others.length === open.length) return open
    open = others
  }
}

function firstAnswerOf(steps: readonly Step[]): number {
  return steps.reduce((first, { to }) => Math.min(first, to), Infinity)
}

function nextStates<S>(model: Model<S>, state: S, step: Step): readonly S[] {
  if (step.outcome === 'unknown') return model.unknown(state, step)
  const next = model.after(state, step)
  return next === undefined ? [] : [next]
}

/** The history of one object under this model. */
export function historyOf<S>(name: string, steps: readonly Step[], model: Model<S>): ObjectHistory {
  return { name, steps, isPossible: () => isLinearizable(steps, model) }
}

const STEPS_SHOWN = 60

/** One line for each step, in the order of the requests. */
export function describeSteps(steps: readonly Step[]): string {
  return steps
    .toSorted((a, b) => a.from - b.from)
    .slice(0, STEPS_SHOWN)
    .map(({ operation, body, outcome, reason, answer, from, to }) => {
      const told = outcome === 'done' ? shortOf(answer) : (reason ?? '')
      return `    ${from}–${to} ${operation} ${shortOf(body)}: ${outcome} ${told}`
    })
    .join('\n')
}

/** Fields that explain a history. */
const SHOWN =
  /^(?:deviceId|replayProtectedNonce|redemptionId|authorized|reason|newBalance|amount|status|result|productId|storeId|transactionId|quantity|items|stock|refunded)$/

function shortOf(fields: Fields): string {
  return JSON.stringify(Object.fromEntries(Object.entries(fields).filter(([name]) => SHOWN.test(name)))).slice(0, 240)
}
