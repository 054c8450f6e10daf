import type { AgentNode } from '../nodes/agent-node.ts'
import type { Json, Merchant } from '../nodes/merchant.ts'
import { CLOUD, type TillBook, type TrackedReport } from '../oracles/till-book.ts'
import type { Chance } from '../virtual/chance.ts'
import type { Core } from '../virtual/core.ts'
import { request, type SimResponse } from '../virtual/http.ts'
import { lanHost, type Lan } from '../virtual/lan.ts'
import type { Wire } from '../virtual/wire.ts'

/** How a report is posted: to an agent by its path, and to the cloud by an operation. */
export interface Message {
  readonly path: 'sales' | 'sales/void' | 'returns'
  readonly body: Json
}

export interface TillPostsParts {
  core: Core
  lan: Lan
  wire: Wire
  merchant: Merchant
  book: TillBook
  storeId: string
  /** Credential of a till at an agent. */
  credentialOf(till: string, node: AgentNode): string
  /** Called when an agent refuses the credential of a till. */
  onUnpaired(till: string, node: AgentNode): Promise<void>
  /** True if the policy names the agent. */
  isNamed(node: AgentNode): boolean
}

const ANSWER_WITHIN_MS = 3_000
const TRIES = 10

/** Posts reports until a place has acknowledged them, as the guide tells tills: nothing is lost by a repetition. */
export class TillPosts {
  readonly #parts: TillPostsParts

  constructor(parts: TillPostsParts) {
    this.#parts = parts
  }

  /** Posts to the first place, and after a lost answer again there or elsewhere. Returns who acknowledged, and what. */
  async deliver(
    till: string,
    report: TrackedReport,
    message: Message,
    { places, chance }: { places: readonly (AgentNode | typeof CLOUD)[]; chance: Chance },
  ): Promise<{ place: AgentNode | typeof CLOUD; answer: Json } | undefined> {
    let [place] = places
    for (let n = 0; n < TRIES && place !== undefined; n++) {
      const answer = await this.once(till, report, message, place)
      if (answer === 'refused') return undefined
      if (answer) return { place, answer }
      await this.#parts.core.scheduler.pause(chance.between(100, 2_000))
      if (chance.happens(0.35)) place = chance.one(places)
    }
    return undefined
  }

  /** Posts once. Undefined: no answer, or try again. */
  async once(
    till: string,
    report: TrackedReport,
    message: Message,
    place: AgentNode | typeof CLOUD,
  ): Promise<Json | 'refused' | undefined> {
    return place === CLOUD ? this.#toCloud(report, message) : this.#toAgent(till, report, message, place)
  }

  async #toCloud(report: TrackedReport, { path, body }: Message): Promise<Json | 'refused' | undefined> {
    const { merchant, book, storeId } = this.#parts
    book.posted(report, CLOUD)
    const [operation, sent] =
      path === 'sales'
        ? (['recordSales', { storeId, sales: [body] }] as const)
        : path === 'returns'
          ? (['recordReturns', { storeId, returns: [body] }] as const)
          : (['voidSale', { storeId, ...body }] as const)
    const answer = await merchant.call(operation, sent, { tries: 4 })
    if (!answer) return undefined
    const { results = [], errors = [] } = (answer.ok ? answer.body : {}) as { results?: Json[]; errors?: Json[] }
    if (!answer.ok || errors.length > 0) {
      book.refused(report, CLOUD)
      return 'refused'
    }
    const result = path === 'sales/void' ? answer.ok && answer.body : results[0]
    if (!result) return undefined
    book.acknowledged(report, CLOUD, warnedOf(result))
    return result
  }

  async #toAgent(
    till: string,
    report: TrackedReport,
    { path, body }: Message,
    node: AgentNode,
  ): Promise<Json | 'refused' | undefined> {
    const { core, book, isNamed, onUnpaired } = this.#parts
    const isCalm = this.#parts.wire.messageFaults.twice === 0
    const wasPosted = report.posted.has(node.name)
    book.posted(report, node.name)
    const answer = await this.request(node, path, body, this.#parts.credentialOf(till, node))
    core.trace.add(
      till,
      `posts ${path} ${String(body['saleId'] ?? body['returnId'])} to ${node.name}: ${stateOf(answer)}`,
    )
    if (answer === 'undelivered') {
      if (isCalm && !wasPosted) book.undelivered(report, node.name)
      return undefined
    }
    if (!answer) return undefined
    const json = JSON.parse(answer.text) as Json
    if (answer.status === 200) {
      if (!isNamed(node)) core.violate('tills', `${node.name} records a sale, but the policy does not name it`)
      book.acknowledged(report, node.name, warnedOf(json))
      return json
    }
    if (answer.status === 401) {
      if (!wasPosted) book.undelivered(report, node.name)
      await onUnpaired(till, node)
      return undefined
    }
    // 503: nothing was recorded.
    if (answer.status === 503 || json['code'] === 'sales_not_allowed') {
      if (!wasPosted) book.undelivered(report, node.name)
      return undefined
    }
    book.refused(report, node.name)
    return 'refused'
  }

  /** Sends a request to an agent. Undefined: no answer came. */
  async request(
    node: AgentNode,
    path: string,
    body: Json,
    credential: string,
  ): Promise<SimResponse | 'undelivered' | undefined> {
    const { core, lan, wire } = this.#parts
    const { scheduler } = core
    const url = `http://${lanHost(node.name)}/v1/${path}`
    const server = lan.at(url)
    if (!server) return undefined
    const gaveUp = new AbortController()
    const cancel = scheduler.after(ANSWER_WITHIN_MS, () => gaveUp.abort())
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${credential}` }
    try {
      const message = { url, method: 'POST', headers, body: JSON.stringify(body) }
      return await request(message, { wire, server, scheduler, signal: gaveUp.signal })
    } catch (error) {
      const { message } = error as Error
      // The answer does not fit the agent's API description.
      if (message.includes('→')) core.violate('fault', `${node.name}: ${message}`)
      return message.includes('refused') ? 'undelivered' : undefined
    } finally {
      cancel()
    }
  }
}

function stateOf(answer: SimResponse | 'undelivered' | undefined): string {
  if (answer === undefined || answer === 'undelivered') return answer ?? 'no answer'
  return answer.status === 200 ? '200' : `${answer.status} ${answer.text.slice(0, 120)}`
}

/** Tags that keep their status, by the warnings of an answer. */
function warnedOf({ warnings }: Json): Set<string> {
  const warned = (warnings ?? []) as { tag?: string; code: string }[]
  return new Set(
    warned.flatMap(({ tag, code }) => (tag === undefined || code === 'sale_of_other_product' ? [] : [tag])),
  )
}
